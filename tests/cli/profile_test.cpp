#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

std::vector<std::string> profile_into(const TemporaryFolder& folder, std::initializer_list<std::string> more) {
    std::vector<std::string> all{"profile", "-o", folder.file("run.pftrace")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

Json json_of(const Result& result) {
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.err);
    return Json::parse(result.out);
}

const Json* find_row(const Json& report, const std::string& phase, const std::string& action) {
    for (const Json& row : report["rows"])
        if (row["phase"] == phase && row["action"] == action)
            return &row;
    return nullptr;
}

/// Waits until the recording has at least `bytes`, by when everything is set up. False: the program ended before.
bool wait_for_recording(Program& program, const std::string& file, std::uintmax_t bytes) {
    std::error_code ignored;
    while (program.running()) {
        const auto size = std::filesystem::file_size(file, ignored);
        if (!ignored && size >= bytes)
            return true;
        std::this_thread::yield();
    }
    return false;
}

BOOST_AUTO_TEST_SUITE(profile)

BOOST_AUTO_TEST_CASE(photographs_are_trained_on_and_every_nanosecond_is_accounted_for) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    const Json report =
        json_of(run_program(profile_into(folder, {"--data", folder.file("photos"), "--image-size", "32", "--batch-size",
                                                  "4", "--epochs", "2", "--num-workers", "2", "--json"})));
    BOOST_TEST(report["schema"] == "drawpoint.report/1");
    BOOST_TEST(report["run"]["steps"] == 10);   // 18 photographs make 5 batches per epoch
    BOOST_TEST(report["run"]["samples"] == 36);
    BOOST_TEST(report["run"]["epochs"] == 2);
    BOOST_TEST(report["run"]["batch_size"] == 4);
    BOOST_TEST(report["run"]["num_workers"] == 2);
    BOOST_TEST(report["run"]["stopped"].is_null());
    BOOST_TEST(report["conservation"]["max_residual_ns"] == 0);
    BOOST_TEST(report["conservation"]["steps"] == 10);
    BOOST_TEST(report["recording"]["dropped"] == 0);
    BOOST_TEST(report["recording"]["file"] == folder.file("run.pftrace"));
    BOOST_TEST(report["recording"]["bytes"] == std::filesystem::file_size(folder.file("run.pftrace")));
    BOOST_TEST(report["machine"]["cores_usable"].get<int>() >= 1);
    BOOST_TEST(report["machine"]["libraries"].contains("libtorch"));
    BOOST_TEST(report["model"]["loss_first"].is_number());
    BOOST_TEST(report["model"]["accuracy"].is_number());
    BOOST_TEST(report["memory"]["peak_bytes"].get<double>() > 1e6);
    BOOST_REQUIRE(report["stages"].size() == 2u);
    BOOST_TEST(report["stages"][0]["stage"] == "read");
    BOOST_TEST(report["stages"][1]["calls"] == 36);
    for (const std::string action :
         {"step", "draw", "batch", "forward", "loss", "backward", "opt_step", "zero_grad", "other", "between"}) {
        const Json* row = find_row(report, "train", action);
        BOOST_REQUIRE_MESSAGE(row, action);
        BOOST_TEST((*row)["calls"] == 9, action);
    }
}

BOOST_AUTO_TEST_CASE(tar_shards_give_the_steps_of_the_folder_they_were_packed_from) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    for (const std::string compress : {"none", "zst"}) {
        const std::string shards = folder.file(compress);
        const Result packed = run_program(
            {"dataset", "pack", "--from", folder.file("photos"), "--out", shards, "--compress", compress, "--shuffle"});
        BOOST_TEST_REQUIRE(packed.code == 0, packed.err);
        const Json report =
            json_of(run_program(profile_into(folder, {"--data", shards, "--image-size", "16", "--model", "none",
                                                      "--batch-size", "4", "--num-workers", "1", "--json"})));
        BOOST_TEST(report["run"]["samples"] == 18, compress);
        BOOST_TEST(report["conservation"]["max_residual_ns"] == 0, compress);
    }
}

BOOST_AUTO_TEST_CASE(a_pair_of_npy_files_is_trained_on) {
    const TemporaryFolder folder;
    const auto write = [&](const char* name, const std::string& type, const std::string& shape, const auto& values) {
        std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
        header.resize(117, ' ');   // 128 bytes with what precedes it
        std::ofstream{folder.path() / name, std::ios::binary}
            << std::string_view{"\x93NUMPY\x01\x00\x76\x00", 10} << header << '\n'
            << std::string_view{reinterpret_cast<const char*>(values.data()), sizeof(values)};
    };
    std::array<float, 8 * 3> values{};
    values[3] = 1;
    write("x.npy", "<f4", "8, 3", values);
    write("y.npy", "<i8", "8,", std::array<std::int64_t, 8>{0, 1, 2, 0, 1, 2, 0, 1});
    const Json report = json_of(
        run_program(profile_into(folder, {"--data", folder.file("x.npy"), "--targets", folder.file("y.npy"), "--model",
                                          "mlp", "--batch-size", "2", "--valid", "0.25", "--json"})));
    BOOST_TEST(report["run"]["steps"] == 3 + 1);
    BOOST_TEST(report["model"]["loss_first"].is_number());
}

BOOST_AUTO_TEST_CASE(batches_come_in_the_order_that_is_asked_for) {
    const TemporaryFolder folder;
    for (const std::string order : {"in", "out", "2"}) {
        const Json report = json_of(
            run_program(profile_into(folder, {"--data", "synthetic:40", "--image-size", "8", "--model", "none",
                                              "--batch-size", "4", "--num-workers", "2", "--order", order, "--json"})));
        BOOST_TEST(report["run"]["order"] == order);
        BOOST_TEST(report["run"]["samples"] == 40);
    }
}

BOOST_AUTO_TEST_CASE(a_cache_is_hit_from_the_second_epoch_on_and_both_loaders_share_it_and_the_budget) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    // One worker: a second one may need a sample of the second epoch while the first is just putting it there.
    const auto profiled = [&](const std::string& cache, const std::string& budget, const std::string& decoder) {
        return run_program(
            profile_into(folder, {"--data", folder.file("photos"), "--image-size", "32", "--batch-size", "4",
                                  "--num-workers", "1", "--epochs", "2", "--valid", "0.25", "--cache", cache,
                                  "--memory-budget", budget, "--jpeg-decoder", decoder, "--json"}));
    };
    const Json report = json_of(profiled("4MiB", "64MiB", "library"));
    BOOST_TEST(report["cache"]["hits"] == 18);
    BOOST_TEST(report["cache"]["misses"] == 18);
    BOOST_TEST(report["memory"]["planned_bytes"].get<double>() <= 64.0 * 1024 * 1024);
    BOOST_TEST(json_of(profiled("4MiB", "64MiB", "own"))["model"]["loss_first"] == report["model"]["loss_first"]);
    // Larger than half of the budget: each loader counts all of it, although the process holds it only once.
    const Json large = json_of(profiled("60MiB", "100MiB", "library"));
    BOOST_TEST(large["memory"]["planned_bytes"].get<double>() <= 100.0 * 1024 * 1024);
    check_complaint(profiled("64MiB", "64MiB", "library"), 2, {"--memory-budget 64MiB", "--cache 64MiB"});
}

BOOST_AUTO_TEST_CASE(a_report_made_later_has_the_rows_of_the_live_one) {
    const TemporaryFolder folder;
    const Json live = json_of(
        run_program(profile_into(folder, {"--data", "synthetic:50", "--image-size", "8", "--batch-size", "8", "--model",
                                          "none", "--valid", "0.2", "--epochs", "3", "--num-workers", "2", "--json"})));
    const Json later = json_of(run_program({"report", folder.file("run.pftrace"), "--json"}));
    for (const std::string part : {"machine", "run", "rows", "draw", "device", "stages", "workers", "queue", "memory",
                                   "conservation", "headroom", "recording", "trust", "model", "errors"})
        BOOST_TEST(live[part] == later[part], part << ": " << live[part] << " against " << later[part]);
    BOOST_TEST((*find_row(live, "valid", "predict"))["calls"] ==
               5);   // two batches of the 10 samples held out, three times, less the first
    for (const std::string style : {"simple", "simple-old", "throughput"})
        BOOST_TEST(run_program({"report", folder.file("run.pftrace"), "--style", style}).out.find("Profil") !=
                       std::string::npos,
                   style);
}

BOOST_AUTO_TEST_CASE(what_is_delivered_does_not_depend_on_workers_or_depth) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    const auto digest = [&](const std::string& workers, const std::string& depth, const std::string& seed) {
        return json_of(run_program(profile_into(
            folder, {"--data", folder.file("photos"), "--model", "none", "--image-size", "16", "--batch-size", "4",
                     "--num-workers", workers, "--prefetch-depth", depth, "--seed", seed, "--json"})))["run"]["digest"]
            .get<std::string>();
    };
    const std::string alone = digest("0", "1", "5");
    BOOST_TEST(alone.size() == 16u);
    BOOST_TEST(digest("3", "7", "5") == alone);
    BOOST_TEST(digest("0", "1", "6") != alone);
}

BOOST_AUTO_TEST_CASE(forms_of_output_are_chosen_and_files_written_beside) {
    const TemporaryFolder folder;
    const std::string json = folder.file("run.json");
    const Result text = run_program(profile_into(folder, {"--data", "synthetic:8", "--image-size", "8", "--model",
                                                          "none", "--batch-size", "2", "--full", "--json=" + json}));
    BOOST_TEST(text.code == 0, text.err);
    for (const std::string part :
         {"samples/s", "starved", "handoff", "if the draw were free", "stage", "workers", "clock", "machine"})
        BOOST_TEST(text.out.find(part) != std::string::npos, part);
    BOOST_TEST(text.out.find('\x1b') == std::string::npos);
    std::ifstream file{json};
    BOOST_TEST(Json::parse(file)["run"]["steps"] == 4);
    const std::string recording = folder.file("run.pftrace");
    BOOST_TEST(run_program({"report", recording, "--csv"}).out.starts_with("phase,action,calls,"));
    BOOST_TEST(run_program({"report", recording, "--markdown"}).out.find("|:--|") != std::string::npos);
    BOOST_TEST(run_program({"report", recording, "--color", "always"}).out.find('\x1b') != std::string::npos);
    check_complaint(run_program({"report", recording, "--json=" + folder.file("no/such.json")}), 1, {"no/such.json"});
    const Result full = run_program({"report", recording, "--json=/dev/full"});
    check_complaint(full, 1, {"/dev/full"});
    BOOST_TEST(full.out.find("samples/s") != std::string::npos);   // the output requested first is not lost
}

BOOST_AUTO_TEST_CASE(a_json_file_that_cannot_be_written_is_refused_before_training) {
    const TemporaryFolder folder;
    check_complaint(run_program(profile_into(
                        folder, {"--data", "synthetic:8", "--model", "none", "--json=" + folder.file("no/such.json")})),
                    1, {"no/such.json"});
    BOOST_TEST(!std::filesystem::exists(folder.file("run.pftrace")));
}

BOOST_AUTO_TEST_CASE(the_share_held_out_is_the_share_asked_for) {
    const TemporaryFolder folder;
    for (const auto& [share, batches] : {std::pair{"0.4", 20}, std::pair{"0.3", 15}, std::pair{"0.02", 1}}) {
        const Json report = json_of(run_program(
            profile_into(folder, {"--data", "synthetic:50", "--image-size", "8", "--batch-size", "1", "--model", "none",
                                  "--valid", share, "--drop-first-batch=off", "--json"})));
        BOOST_TEST((*find_row(report, "train", "step"))["calls"] == 50 - batches);
        BOOST_TEST((*find_row(report, "valid", "predict"))["calls"] == batches);
        const Json later = json_of(run_program({"report", folder.file("run.pftrace"), "--json"}));
        BOOST_TEST(later["rows"] == report["rows"]);
    }
}

BOOST_AUTO_TEST_CASE(an_unwritable_stderr_does_not_end_a_run) {
    const TemporaryFolder folder;
    for (const std::string err : {"closed", "/dev/full"}) {
        const Result result =
            run_program(profile_into(folder, {"--data", "synthetic:800", "--image-size", "8", "--batch-size", "1",
                                              "--model", "none", "--compute-ms", "8", "--json"}),
                        {.err = err});   // long enough for a progress line
        BOOST_TEST(result.code == 0, err);
        BOOST_TEST(Json::parse(result.out)["run"]["steps"] == 800, err);
        BOOST_TEST(run_program({"report", folder.file("run.pftrace")}).code == 0, err);
        BOOST_TEST(run_program({}, {.err = err}).code == 2, err);
        BOOST_TEST(run_program({"report", folder.file("none")}, {.err = err}).code == 1, err);
    }
}

BOOST_AUTO_TEST_CASE(a_batch_of_one_sample_is_said_where_a_model_cannot_take_it) {
    const TemporaryFolder folder;
    check_complaint(run_program(profile_into(folder, {"--data", "synthetic:1", "--image-size", "32", "--model",
                                                      "resnet18", "--batch-size", "1"})),
                    1, {"--drop-last"});
}

BOOST_AUTO_TEST_CASE(a_run_is_also_written_as_a_page_and_as_logs) {
    const TemporaryFolder folder;
    const std::string page = folder.file("run.html"), metrics = folder.file("run.prom"), runs = folder.file("runs");
    const Result result = run_program(
        profile_into(folder, {"--data", "synthetic:40", "--image-size", "8", "--model", "none", "--batch-size", "4",
                              "--html", page, "--log", "prometheus=" + metrics, "--log", "tensorboard=" + runs}));
    BOOST_TEST(result.code == 0, result.err);
    BOOST_TEST(bytes_in(page).find("Why the draw waits") != std::string::npos);
    BOOST_TEST(bytes_in(metrics).find("drawpoint_samples_total 40") != std::string::npos);
    BOOST_TEST(!std::filesystem::is_empty(runs));
    BOOST_TEST(result.err.find("wrote " + page) != std::string::npos, result.err);
    check_complaint(run_program({"profile", "--data", "synthetic:40", "--html", folder.file("none/x.html")}), 1,
                    {folder.file("none/x.html")});
    check_complaint(run_program({"profile", "--data", "synthetic:40", "-o", page, "--html", page}), 2,
                    {"--html", "same file"});
    check_complaint(run_program({"profile", "--data", "synthetic:40", "-o", page, "--log", "csv=" + page}), 2,
                    {"--log csv", "same file"});
    const std::string config = folder.file("c.toml");
    std::ofstream{config} << "model = \"none\"\n";
    check_complaint(run_program({"profile", "--data", "synthetic:40", "--config", config, "--html", config}), 2,
                    {"--config", "--html", "same file"});
    check_complaint(run_program({"profile", "--data", config, "--html", config}), 2, {"--data", "--html", "same file"});
    check_complaint(run_program({"profile", "--data", "synthetic:40", "-o", folder.file("a.summary.csv"), "--log",
                                 "csv=" + folder.file("a.csv")}),
                    2, {"-o", "--log csv", "same file"});
    check_complaint(run_program({"profile", "--data", "synthetic:40", "--model", "none", "--precision", "bf16-mixed"}),
                    2, {"--precision bf16-mixed", "--model none"});
    // What cannot be written is said before the training, and what cannot be written any more costs nothing else.
    check_complaint(run_program({"profile", "--data", "synthetic:40", "--log", "csv=/proc/none/x"}), 1,
                    {"/proc/none/x"});
    const Result partial = run_program(
        profile_into(folder, {"--data", "synthetic:40", "--image-size", "8", "--model", "none", "--batch-size", "4",
                              "--json", "--log", "prometheus=/dev/full", "--html", page}));
    BOOST_TEST(partial.code == 1);
    BOOST_TEST(partial.err.find("/dev/full") != std::string::npos, partial.err);
    BOOST_TEST(Json::parse(partial.out)["run"]["steps"] == 10);
    BOOST_TEST(partial.err.find("wrote " + page) != std::string::npos, partial.err);
    check_complaint(run_program({"tune", "--data", "synthetic:40", "--report", "tree"}), 2,
                    {"--report", "no effect on tune"});
    check_complaint(run_program({"tune", "--data", "synthetic:40", "--log", "csv=" + folder.file("x.csv")}), 2,
                    {"--log csv", "each trial"});
    const std::string trials = folder.file("trials"), tuned = folder.file("tuned.html");
    const auto tune_into = [&](const std::string& file) {
        return run_program({"tune",
                            "--data",
                            "synthetic:400",
                            "--image-size",
                            "8",
                            "--model",
                            "none",
                            "--batch-size",
                            "8",
                            "--num-workers",
                            "1",
                            "--most-workers",
                            "2",
                            "--most-steps",
                            "200",
                            "--html",
                            tuned,
                            "--log",
                            "tensorboard=" + trials,
                            "-o",
                            file,
                            "--json"});
    };
    BOOST_TEST(tune_into("/proc/none/tuned.toml").code == 1);   // refused before it trains
    BOOST_TEST(!std::filesystem::exists(tuned));
    const Result written = tune_into(folder.file("tuned.toml"));
    BOOST_TEST(written.code == 0, written.err);
    const std::size_t tried = Json::parse(written.out)["log"].size();
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{trials})
        files += entry.is_regular_file() ? 1 : 0;
    BOOST_TEST(files == tried);
    BOOST_TEST(std::filesystem::file_size(tuned) > 5000u);
}

BOOST_AUTO_TEST_CASE(steps_end_the_run_early_and_it_says_so) {
    const TemporaryFolder folder;
    const Json report =
        json_of(run_program(profile_into(folder, {"--data", "synthetic:40", "--image-size", "8", "--model", "none",
                                                  "--batch-size", "4", "--steps", "3", "--epochs", "9", "--json"})));
    BOOST_TEST(report["run"]["steps"] == 3);
    BOOST_TEST(report["run"]["stopped"] == "--steps 3");
    BOOST_TEST(report["conservation"]["max_residual_ns"] == 0);
}

BOOST_AUTO_TEST_CASE(faults_take_the_time_they_are_told_to) {
    const TemporaryFolder folder;
    const Json report = json_of(run_program(
        profile_into(folder, {"--data", "synthetic:8", "--image-size", "8", "--model", "none", "--compute-ms", "2",
                              "--batch-size", "2", "--inject", "read-latency=3ms", "--inject", "compute=4ms",
                              "--inject", "drop-events=100%", "--no-drop-first-batch", "--json"})));
    BOOST_TEST((*find_row(report, "train", "forward"))["mean_s"].get<double>() >= 0.006);
    BOOST_TEST((*find_row(report, "train", "forward"))["calls"] == 4);
    BOOST_TEST(report["recording"]["dropped"].get<int>() >= 8);
    check_complaint(
        run_program(profile_into(folder, {"--data", "synthetic:8", "--model", "none", "--inject", "decode=x2"})), 2,
        {"--inject", "decode"});
    BOOST_TEST(run_program({"profile", "--data", "synthetic:8", "--inject", "decode=3"}).err.find("decode=3", 30) ==
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_too_long_is_told_who_is_at_what) {
    const TemporaryFolder folder;
    const Result result = run_program(
        profile_into(folder, {"--data", "synthetic:1", "--image-size", "8", "--model", "none", "--num-workers", "1",
                              "--inject", "read-latency=6s", "--stall-timeout", "1", "--json"}));
    BOOST_TEST(result.code == 0);
    BOOST_TEST(result.err.starts_with("drawpoint: loader train: the loop has waited "), result.err);
    BOOST_TEST(result.err.find("worker 0 makes sample 0") != std::string::npos, result.err);
}

BOOST_AUTO_TEST_CASE(ctrl_c_leaves_a_whole_recording_and_a_partial_report) {
    const TemporaryFolder folder;
    Program program{profile_into(folder, {"--data", "synthetic:4000", "--image-size", "8", "--model", "none",
                                          "--compute-ms", "1", "--batch-size", "2", "--epochs", "1000", "--json"})};
    BOOST_REQUIRE(wait_for_recording(program, folder.file("run.pftrace"), 60'000));
    program.interrupt();
    const Result result = program.wait();
    BOOST_TEST(result.code == 130, result.err);
    const Json report = Json::parse(result.out);
    BOOST_TEST(report["run"]["stopped"] == "Ctrl-C");
    BOOST_TEST(report["run"]["steps"].get<int>() > 0);
    BOOST_TEST(report["conservation"]["max_residual_ns"] == 0);
    const Result later = run_program({"report", folder.file("run.pftrace"), "--json"});
    BOOST_TEST(later.code == 0);
    BOOST_TEST(later.err.empty(), later.err);   // the file is complete
    BOOST_TEST(Json::parse(later.out)["rows"] == report["rows"]);
}

BOOST_AUTO_TEST_CASE(a_run_that_sigterm_stopped_says_so) {
    const TemporaryFolder folder;
    Program program{profile_into(folder, {"--data", "synthetic:64", "--image-size", "8", "--model", "none",
                                          "--compute-ms", "1", "--batch-size", "1", "--epochs", "1000000", "--json"})};
    BOOST_REQUIRE(wait_for_recording(program, folder.file("run.pftrace"), 60'000));
    program.interrupt(SIGTERM);
    const Result result = program.wait();
    BOOST_TEST(result.code == 130, result.err);
    BOOST_TEST(Json::parse(result.out)["run"]["stopped"] == "SIGTERM");
}

BOOST_AUTO_TEST_CASE(a_second_ctrl_c_ends_at_once) {
    const TemporaryFolder folder;
    Program program{profile_into(
        folder, {"--data", "synthetic:64", "--image-size", "8", "--model", "none", "--inject", "read-latency=500s"})};
    BOOST_REQUIRE(wait_for_recording(program, folder.file("run.pftrace"), 0));
    while (program.running()) {
        program.interrupt();
        std::this_thread::yield();
    }
    BOOST_TEST(program.wait().code == 130);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
