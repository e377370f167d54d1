// What `--profiler`, `--report` and `--resume` add to a run.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

/// Runs 5 training steps of a small model.
Result run_small(const TemporaryFolder& folder, std::initializer_list<std::string> more) {
    std::vector<std::string> all{"profile",
                                 "--data",
                                 "synthetic:20",
                                 "--batch-size",
                                 "4",
                                 "--image-size",
                                 "32",
                                 "--num-workers",
                                 "1",
                                 "-o",
                                 folder.file("run.pftrace")};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1))
        ++n;
    return n;
}

BOOST_AUTO_TEST_SUITE(profilers)

BOOST_AUTO_TEST_CASE(the_operators_of_the_scheduled_steps_are_in_the_recording_and_in_no_other_step) {
    const TemporaryFolder folder;
    const Result run = run_small(folder, {"--profiler", "pytorch", "--schedule", "wait=1,warmup=1,active=2,repeat=1"});
    BOOST_REQUIRE_MESSAGE(run.code == 0, run.err);
    BOOST_TEST(run.out.find("ProfilerStep*") != std::string::npos, run.out);
    BOOST_TEST(run.out.find("Self CPU time total") != std::string::npos);
    const Result table =
        run_program({"report", folder.file("run.pftrace"), "--style", "op", "--sort-by", "count", "--row-limit", "-1"});
    BOOST_TEST(table.code == 0, table.err);
    // Two steps of one call each, whatever else is recorded.
    BOOST_TEST(table.out.find("ProfilerStep*") != std::string::npos, table.out);
    BOOST_TEST(table.out.find("aten::conv2d") != std::string::npos, table.out);
    const Result trace = run_program({"export", folder.file("run.pftrace"), "--to", "chrome", "-o", "-"});
    BOOST_REQUIRE_MESSAGE(trace.code == 0, trace.err);
    std::size_t convolutions = 0, annotated = 0;
    const Json document = Json::parse(trace.out);
    for (const Json& event : document["traceEvents"]) {
        convolutions += event.value("name", "") == "aten::conv2d";
        annotated += event.value("name", "").starts_with("ProfilerStep#");
    }
    BOOST_TEST(convolutions == 8u);   // the small network has four, each in both recorded steps
    BOOST_TEST(annotated == 5u);      // one per step, whether the step is recorded or not
}

BOOST_AUTO_TEST_CASE(every_style_of_report_is_printed_from_one_recording) {
    const TemporaryFolder folder;
    BOOST_REQUIRE(run_small(folder, {}).code == 0);
    for (const auto& [style, words] :
         std::vector<std::pair<std::string, std::string>>{{"drawpoint", "ns unaccounted for"},
                                                          {"throughput", "Profiling Results:"},
                                                          {"simple", "zero_grad"},
                                                          {"simple-old", "Simple Profiler Results"},
                                                          {"lightning", "[_TrainingEpochLoop].train_dataloader_next"},
                                                          {"lightning-extended", "Num calls"},
                                                          {"hannah", "get_train_batch"},
                                                          {"op", "No operator was recorded"},
                                                          {"advanced", "No stack sample was recorded"},
                                                          {"tree", "starved"}}) {
        const Result report = run_program({"report", folder.file("run.pftrace"), "--style", style});
        BOOST_TEST(report.code == 0, style << ": " << report.err);
        BOOST_TEST(report.out.find(words) != std::string::npos, style << " lacks '" << words << "':\n" << report.out);
    }
}

BOOST_AUTO_TEST_CASE(the_advanced_profiler_says_what_each_action_ran_and_what_sampling_cost) {
    const TemporaryFolder folder;
    const Result run = run_small(folder, {"--profiler", "advanced", "--epochs", "3"});
    BOOST_REQUIRE_MESSAGE(run.code == 0, run.err);
    BOOST_TEST(count(run.out, "Ordered by: cumulative time") >= 1u, run.out);
    BOOST_TEST(run.out.find("own cost") != std::string::npos, run.out);
    BOOST_TEST(run.out.find("0 ns unaccounted for") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_ends_where_an_uninterrupted_one_does) {
    const TemporaryFolder folder;
    const std::string half = folder.file("half.ckpt"), resumed = folder.file("resumed.ckpt"),
                      whole = folder.file("whole.ckpt");
    BOOST_REQUIRE(run_small(folder, {"--epochs", "2", "--checkpoint", half}).code == 0);
    const Result second = run_small(folder, {"--epochs", "4", "--resume", half, "--checkpoint", resumed, "--json"});
    BOOST_REQUIRE_MESSAGE(second.code == 0, second.err);
    const Result straight = run_small(folder, {"--epochs", "4", "--checkpoint", whole, "--json"});
    BOOST_REQUIRE_MESSAGE(straight.code == 0, straight.err);
    BOOST_TEST(Json::parse(second.out)["run"]["steps"] == 10);
    BOOST_TEST(Json::parse(second.out)["model"]["loss_last"] == Json::parse(straight.out)["model"]["loss_last"]);
    const auto bytes = [](const std::string& file) {
        std::ifstream stream{file, std::ios::binary};
        return std::string{std::istreambuf_iterator<char>{stream}, {}};
    };
    BOOST_TEST((bytes(resumed) == bytes(whole)));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_does_not_fit_is_refused_by_name_and_so_is_one_with_nothing_left_to_train) {
    const TemporaryFolder folder;
    const std::string file = folder.file("a.ckpt");
    BOOST_REQUIRE(run_small(folder, {"--checkpoint", file}).code == 0);
    check_complaint(run_small(folder, {"--resume", file, "--epochs", "2", "--model", "mlp"}), 1, {file, "--model"});
    check_complaint(run_small(folder, {"--resume", file, "--epochs", "1"}), 1,
                    {file, "epochs finished: 1", "--epochs 1"});
    check_complaint(run_small(folder, {"--resume", folder.file("none.ckpt"), "--epochs", "2"}), 1, {"none.ckpt"});
    check_complaint(run_small(folder, {"--checkpoint", folder.file("none/a.ckpt")}), 1,
                    {"--checkpoint", "none/a.ckpt"});
    check_complaint(run_small(folder, {"--checkpoint", folder.path().string()}), 1, {"--checkpoint", "not a file"});
    check_complaint(run_small(folder, {"--resume", file, "--epochs", "2", "-o", file}), 2, {file, "the same file"});
    check_complaint(run_small(folder, {"--resume", file, "--epochs", "2", "--valid", "0.2"}), 1, {file, "--valid"});
    const std::string cut = folder.file("cut.ckpt");
    BOOST_REQUIRE(run_small(folder, {"--checkpoint", cut, "--steps", "3"}).code == 0);
    BOOST_TEST(!std::filesystem::exists(cut));   // no epoch was completed
    std::ofstream{file} << "not a checkpoint";
    check_complaint(run_small(folder, {"--resume", file, "--epochs", "2"}), 1, {file});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
