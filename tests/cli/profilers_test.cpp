// What `--profiler`, `--report` and `--resume` add to a run.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

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
         std::vector<std::pair<std::string, std::string>>{{"drawpoint", "why the draw waits"},
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
    BOOST_TEST(run.out.starts_with("why the draw waits"), run.out);
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
    BOOST_TEST((bytes_in(resumed) == bytes_in(whole)));
}

std::string digest_of(const Result& run) { return Json::parse(run.out)["run"]["digest"].get<std::string>(); }

/// Trains three epochs of 6 steps on 17 photographs, on one thread, so that sums are made in the same order.
std::vector<std::string> photo_run(const TemporaryFolder& folder, const std::string& checkpoint,
                                   std::vector<std::string> more) {
    std::vector<std::string> all{"profile",
                                 "--data",
                                 folder.file("photos"),
                                 "--batch-size",
                                 "3",
                                 "--image-size",
                                 "32",
                                 "--epochs",
                                 "3",
                                 "--valid",
                                 "0.1",
                                 "--seed",
                                 "5",
                                 "--json",
                                 "-o",
                                 folder.file("run.pftrace"),
                                 "--checkpoint",
                                 checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}
const Environment one_thread{.variables = {"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}};

BOOST_AUTO_TEST_CASE(a_run_stopped_within_epochs_and_resumed_with_other_workers_ends_with_the_same_weights) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    const std::string whole = folder.file("whole.ckpt"), parts = folder.file("parts.ckpt");
    const Result straight = run_program(photo_run(folder, whole, {}), one_thread);
    BOOST_REQUIRE_MESSAGE(straight.code == 0, straight.err);
    std::vector<std::string> resume;
    Result last;
    const std::vector<std::vector<std::string>> links{
        {"--num-workers", "2", "--steps", "2"},                            // within epoch 0
        {"--num-workers", "0", "--steps", "4"},                            // at its end, before its validation
        {"--num-workers", "3", "--prefetch-depth", "7", "--steps", "4"},   // within epoch 1
        {"--num-workers", "1", "--read-concurrency", "0"}};
    for (std::vector<std::string> link : links) {
        link.insert(link.end(), {"--checkpoint-every", "1"});
        link.insert(link.end(), resume.begin(), resume.end());
        const Result part = run_program(photo_run(folder, parts, link), one_thread);
        BOOST_REQUIRE_MESSAGE(part.code == 0, part.err);
        resume = {"--resume", parts};
        last = part;
    }
    BOOST_TEST(digest_of(last) == digest_of(straight));
    BOOST_TEST((bytes_in(parts) == bytes_in(whole)));
    // Another data set of the same size, and another order of the same one.
    std::filesystem::rename(folder.path() / "photos", folder.path() / "moved");
    std::filesystem::create_directories(folder.path() / "photos");
    for (const auto& of_class : std::filesystem::directory_iterator{folder.path() / "moved"})
        std::filesystem::copy(of_class.path(),
                              folder.path() / "photos" / ("other_" + of_class.path().filename().string()));
    check_complaint(run_program(photo_run(folder, whole, {"--resume", parts, "--epochs", "4"})), 1,
                    {parts, "another data set"});
    check_complaint(run_program(photo_run(
                        folder, parts, {"--resume", parts, "--epochs", "4", "--checkpoint-every", "1", "--seed", "6"})),
                    1, {parts, "--seed is 5, here it is 6"});
}

BOOST_AUTO_TEST_CASE(a_run_killed_again_and_again_ends_with_the_same_weights) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    const std::string whole = folder.file("whole.ckpt"), parts = folder.file("parts.ckpt");
    const Result straight = run_program(photo_run(folder, whole, {}), one_thread);
    BOOST_REQUIRE_MESSAGE(straight.code == 0, straight.err);
    std::string seen;
    for (int kills = 0; kills < 5;
         ++kills) {   // each after its first new checkpoint; decoding is slow, so that there are steps left
        std::vector<std::string> more{"--checkpoint-every",      "1",        "--num-workers",
                                      std::to_string(kills % 3), "--inject", "decode=x60"};
        if (!seen.empty())
            more.insert(more.end(), {"--resume", parts});
        Program program{photo_run(folder, parts, more), one_thread};
        while (program.running() && (!std::filesystem::exists(parts) || bytes_in(parts) == seen))
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        program.interrupt(SIGKILL);
        BOOST_REQUIRE(program.wait().code != 0);
        seen = bytes_in(parts);
    }
    const Result last = run_program(photo_run(folder, parts, {"--resume", parts}), one_thread);
    BOOST_REQUIRE_MESSAGE(last.code == 0, last.err);
    BOOST_TEST(digest_of(last) == digest_of(straight));
    BOOST_TEST((bytes_in(parts) == bytes_in(whole)));
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
