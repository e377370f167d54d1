#include <fstream>

#include <sys/stat.h>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;

/// `profile` with data that need not exist, since usage is checked first.
std::vector<std::string> profile(std::initializer_list<std::string> more) {
    std::vector<std::string> all{"profile", "--data", "synthetic:8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

BOOST_AUTO_TEST_SUITE(usage)

BOOST_AUTO_TEST_CASE(a_value_out_of_range_is_named_with_its_option) {
    for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{{"--batch-size", "0"},
                                                                                        {"--batch-size", "-3"},
                                                                                        {"--batch-size", "many"},
                                                                                        {"--prefetch-depth", "0"},
                                                                                        {"--prefetch-depth", "56"},
                                                                                        {"--num-workers", "-1"},
                                                                                        {"--epochs", "0"},
                                                                                        {"--steps", "-1"},
                                                                                        {"--image-size", "0"},
                                                                                        {"--seed", "-1"},
                                                                                        {"--learning-rate", "0"},
                                                                                        {"--learning-rate", "nan"},
                                                                                        {"--recording-limit", "lots"},
                                                                                        {"--valid", "0.9"},
                                                                                        {"--model", "vgg"},
                                                                                        {"--optimizer", "lion"},
                                                                                        {"--precision", "16"},
                                                                                        {"--log", "tensorbord=x"},
                                                                                        {"--log", "wandb"},
                                                                                        {"--resize-filter", "cubic"},
                                                                                        {"--format", "zip"},
                                                                                        {"--order", "random"},
                                                                                        {"--order", "0"},
                                                                                        {"--memory-budget", "much"},
                                                                                        {"--cache", "-1"},
                                                                                        {"--read-concurrency", "-1"},
                                                                                        {"--device", "tpu"},
                                                                                        {"--device", "cpu:0"},
                                                                                        {"--device", "cuda:"},
                                                                                        {"--device", "cuda:1.5"},
                                                                                        {"--device-prefetch", "-1"},
                                                                                        {"--device-prefetch", "56"},
                                                                                        {"--device-memory-budget", "x"},
                                                                                        {"--report", "long"},
                                                                                        {"--profiler", "yappi"},
                                                                                        {"--color", "pink"},
                                                                                        {"--inject", "gravity=x2"},
                                                                                        {"--data", "synthetic:0"}})
        check_complaint(run_program(profile({option, value})), 2, {option, value});
    const std::string too_long = "99999999999999999999";
    check_complaint(run_program(profile({"--seed", too_long})), 2, {"--seed", too_long});
    check_complaint(run_program({"profile"}), 2, {"--data"});
    check_complaint(run_program(profile({"--compute-ms", "5"})), 2, {"--compute-ms", "--model none"});
}

BOOST_AUTO_TEST_CASE(what_is_not_delivered_yet_is_refused_by_name) {
    check_complaint(run_program(profile({"--allow-inexact", "fast-dct"})), 2,
                    {"--allow-inexact fast-dct", "not delivered yet"});
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused_before_anything_is_written) {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / "drawpoint_no_device.pftrace";
    std::filesystem::remove(file);
    const auto refused = run_program(profile({"--device", "cuda:99", "-o", file.string()}));
    check_complaint(refused, 2, {"--device", "there is no cuda:99"});
    const auto says = [&refused](const char* why) { return refused.err.find(why) != std::string::npos; };
    BOOST_TEST((says("this LibTorch is built for") || says("LibTorch finds no device") || says("numbered from 0")));
    BOOST_TEST(!std::filesystem::exists(file));
    check_complaint(run_program(profile({"--device-prefetch", "1"})), 2, {"--device-prefetch", "--device cpu"});
    check_complaint(run_program(profile({"--device-memory-budget", "1GiB"})), 2,
                    {"--device-memory-budget", "--device cpu"});
    check_complaint(run_program(profile({"--device", "cuda", "--model", "none"})), 2,
                    {"--device cuda", "--model none"});
    check_complaint(run_program({"tune", "--data", "synthetic:100", "--device", "cuda"}), 2, {"--device", "tune"});
}

BOOST_AUTO_TEST_CASE(an_option_that_another_option_makes_useless_is_refused) {
    for (const std::string option :
         {"--schedule=active=1", "--record-shapes", "--profile-memory", "--with-stack", "--with-flops"})
        check_complaint(run_program(profile({option})), 2,
                        {option.substr(0, option.find('=')), "--profiler pytorch", "simple"});
    check_complaint(run_program(profile({"--profiler", "pytorch", "--schedule", "wait=1"})), 2,
                    {"--schedule wait=1", "active"});
    check_complaint(run_program(profile({"--profiler", "pytorch", "--schedule", "active=-2"})), 2,
                    {"--schedule", "active=-2"});
    check_complaint(run_program(profile({"--model", "none", "--resume", "a.ckpt"})), 2,
                    {"--resume a.ckpt", "--model none"});
    check_complaint(run_program(profile({"--report", "op"})), 2, {"--report op", "--profiler pytorch"});
    check_complaint(run_program({"report", "run.pftrace", "--style", "op", "--csv"}), 2, {"--csv", "op"});
    check_complaint(run_program({"report", "run.pftrace", "--style", "op", "--sort-by", "speed"}), 2,
                    {"--sort-by", "speed", "self_cpu_time_total"});
    check_complaint(run_program({"report", "run.pftrace", "--style", "op", "--row-limit", "-2"}), 2,
                    {"--row-limit", "-2"});
    check_complaint(run_program({"report", "run.pftrace", "--sort-by", "count"}), 2, {"--sort-by", "--style op"});
    check_complaint(run_program({"report", "run.pftrace", "--style", "tree", "--row-limit", "3"}), 2,
                    {"--row-limit", "tree"});
}

BOOST_AUTO_TEST_CASE(what_data_has_no_use_for_is_refused_with_it) {
    check_complaint(run_program(profile({"--inject", "collate=x5"})), 2,
                    {"--inject collate=x5", "no stage collates", "--data synthetic:8", "one shape"});
    check_complaint(run_program(profile({"--cache", "64MiB"})), 2, {"--cache 64MiB", "--data synthetic:8"});
    check_complaint(run_program(profile({"--targets", "y.npy"})), 2, {"--targets y.npy", "--data synthetic:8"});
    check_complaint(run_program(profile({"--record", "uint8:4"})), 2, {"--record uint8:4", "--format raw"});
    for (const std::string record : {"uint8:4+", "uint8:3x", "uint8:", "label:uint8", "uint8:4+uint8:4"})
        check_complaint(run_program({"profile", "--data", "x.bin", "--format", "raw", "--record", record}), 2,
                        {"--record", record});
    check_complaint(run_program({"profile", "--data", "x.npy", "--targets", "y.npy", "--cache", "64MiB"}), 2,
                    {"--cache 64MiB", "--data x.npy"});
    for (const std::string format : {"npy", "idx", "raw"})
        check_complaint(run_program({"profile", "--data", "x", "--format", format, "--record", "uint8:2", "--targets",
                                     "y.npy", "--valid", "v.npy"}),
                        2, {"--valid v.npy", "--targets y.npy", "share"});
}

BOOST_AUTO_TEST_CASE(a_path_that_is_not_what_its_format_takes_is_told_what_to_give) {
    const TemporaryFolder folder;
    const std::string file = folder.file("raw.bin");
    std::ofstream{file} << "some bytes";
    check_complaint(run_program({"profile", "--data", file}), 1, {"--data " + file, "--format", "--record"});
    check_complaint(run_program({"profile", "--data", file, "--record", "uint8:2"}), 2, {"--record", "--format raw"});
    check_complaint(run_program({"profile", "--data", file, "--format", "cifar"}), 1, {file, "not a folder"});
    for (const std::string format : {"auto", "folder", "tar", "idx", "cifar", "npy"})
        check_complaint(run_program({"profile", "--data", folder.file("none"), "--format", format}), 1,
                        {"--data " + folder.file("none"), "no such file or folder"});
    check_complaint(run_program({"profile", "--data", folder.path().string(), "--format", "npy", "--targets", "y.npy"}),
                    1, {folder.path().string(), "--format npy takes a file"});
    check_complaint(run_program({"profile", "--data", "/dev/zero"}), 1, {"/dev/zero", "neither a file nor a folder"});

    BOOST_REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
             {folder.file("none"), "no such file or folder"},
             {folder.path().string(), "a folder, and --format raw takes a file"},
             {folder.file("pipe"), "neither a file nor a folder"}}) {
        check_complaint(run_program({"profile", "--data", path, "--format", "raw", "--record", "uint8:2"}), 1,
                        {"--data " + path + ": " + why});
        check_complaint(
            run_program({"profile", "--data", file, "--format", "raw", "--record", "uint8:2", "--valid", path}), 1,
            {"--valid " + path + ": " + why});
    }
    for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
             {folder.file("none"), "no such file or folder"},
             {folder.path().string(), "a folder, and --format npy takes a file"},
             {folder.file("pipe"), "neither a file nor a folder"}})
        check_complaint(run_program({"profile", "--data", file, "--format", "npy", "--targets", path}), 1,
                        {"--targets " + path + ": " + why});
}

BOOST_AUTO_TEST_CASE(an_unknown_option_or_command_is_named_and_the_nearest_one_offered) {
    check_complaint(run_program(profile({"--bach-size", "3"})), 2, {"unknown option --bach-size", "--batch-size"});
    check_complaint(run_program(profile({"--xyzzy=1"})), 2, {"unknown option --xyzzy"});
    check_complaint(run_program(profile({"stray"})), 2, {"'stray'"});
    check_complaint(run_program({"profil"}), 2, {"unknown command profil", "profile"});
    check_complaint(run_program({"dataset", "crop"}), 2, {"crop", "crops"});
    check_complaint(run_program({"dataset", "pack"}), 2, {"--from"});
    check_complaint(run_program({"bench", "sped"}), 2, {"sped"});
    BOOST_TEST(run_program({}).code == 2);
}

BOOST_AUTO_TEST_CASE(help_and_version_go_to_stdout) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--help"},
                                               {"--version"},
                                               {"profile", "--help"},
                                               {"report", "--help"},
                                               {"doctor", "--help"},
                                               {"dataset", "crops", "--help"}}) {
        const Result result = run_program(arguments);
        BOOST_TEST(result.code == 0);
        BOOST_TEST(!result.out.empty());
        BOOST_TEST(result.err.empty(), result.err);
    }
    const std::string help = run_program({"profile", "--help"}).out;
    for (const std::string option :
         {"--data", "--num-workers", "--prefetch-depth", "--valid", "--inject", "--output", "--json"})
        BOOST_TEST(help.find(option) != std::string::npos, option);
}

BOOST_AUTO_TEST_CASE(the_command_line_wins_over_the_environment_and_that_over_the_file) {
    const TemporaryFolder folder;
    const std::string config = folder.file("run.toml");
    std::ofstream{config}
        << "batch-size = 3\nnum-workers = 3\nepochs = 3\ndrop-last = true\ninject = [\"decode=x2\", \"compute=1ms\"]\n"
        << "[report]\nstyle = \"simple\"\n";
    const Result result = run_program(profile({"--config", config, "--print-config", "--batch-size", "1"}),
                                      {.variables = {"DRAWPOINT_BATCH_SIZE=2", "DRAWPOINT_NUM_WORKERS=2"}});
    BOOST_TEST(result.code == 0, result.err);
    const auto has = [&](const std::string& line) {
        BOOST_TEST(("\n" + result.out).find("\n" + line + "\n") != std::string::npos, line << " is missing in:\n"
                                                                                           << result.out);
    };
    has("batch-size = 1");
    has("num-workers = 2");
    has("epochs = 3");
    has("drop-last = true");
    has("prefetch-depth = 4");
    has("inject = [\"decode=x2\", \"compute=1ms\"]");
    for (const std::string off : {"0", "off", "no", "false"}) {
        const std::string flag = "drop-first-batch = false\n";
        BOOST_TEST(run_program(profile({"--drop-first-batch=" + off, "--print-config"})).out.find(flag) !=
                   std::string::npos);
        BOOST_TEST(run_program(profile({"--print-config"}), {.variables = {"DRAWPOINT_DROP_FIRST_BATCH=" + off}})
                       .out.find(flag) != std::string::npos);
    }
    BOOST_TEST(run_program(profile({"--checkpoint", "a \"b\"", "--print-config"})).out.find("'a \"b\"'") !=
               std::string::npos);
    std::ofstream{folder.file("again.toml")} << result.out;
    BOOST_TEST(run_program({"profile", "--config", folder.file("again.toml"), "--print-config"}).out == result.out);
}

BOOST_AUTO_TEST_CASE(a_bad_configuration_is_named) {
    const TemporaryFolder folder;
    check_complaint(run_program(profile({"--config", folder.file("none.toml")})), 2, {"--config", "none.toml"});
    std::ofstream{folder.file("bad.toml")} << "bach-size = 3\n";
    check_complaint(run_program(profile({"--config", folder.file("bad.toml")})), 2, {"bad.toml", "bach-size"});
    check_complaint(run_program(profile({"--config", folder.path().string()})), 2, {"--config", "a folder"});
    std::ofstream{folder.file("none_of_one.toml")} << "inject = []\nbatch-size = []\n";
    check_complaint(run_program(profile({"--config", folder.file("none_of_one.toml")})), 2,
                    {"none_of_one.toml", "batch-size has no value"});
    std::ofstream{folder.file("typing.toml")} << "[profil]\nbatch-size = 3\n";
    check_complaint(run_program(profile({"--config", folder.file("typing.toml")})), 2,
                    {"typing.toml", "unknown section [profil]", "did you mean profile"});
    check_complaint(run_program(profile({"--print-config"}), {.variables = {"DRAWPOINT_BATCH_SIZE=few"}}), 2,
                    {"--batch-size", "few", "DRAWPOINT_BATCH_SIZE"});
}

BOOST_AUTO_TEST_CASE(a_configuration_is_a_text_file_of_bounded_length) {
    const TemporaryFolder folder;
    const std::string file = folder.file("a.toml");
    const auto with = [&](std::string_view text) {
        std::ofstream{file, std::ios::binary} << text;
        return run_program(profile({"--config", file, "--print-config"}));
    };
    for (const std::string text : {"epochs = 3\r\nbatch-size = 4\r\n", "\xEF\xBB\xBF"
                                                                       "epochs = 3\nbatch-size = 4"}) {
        const Result read = with(text);
        BOOST_TEST(read.code == 0, read.err);
        BOOST_TEST(read.out.find("epochs = 3\n") != std::string::npos);
        BOOST_TEST(read.out.find("batch-size = 4\n") != std::string::npos);
    }
    const std::string long_word(100'000, 'a');
    check_complaint(with(std::string_view{"epochs = 3\nmodel = \"no\0ne\"\n", 27}), 2, {file, "line 2: a NUL byte"});
    for (const std::string& text : {long_word + " = 3", "[" + long_word + "]\nx = 1"}) {
        const Result refused = with(text);
        check_complaint(refused, 2, {file, "aaa… (100000 bytes)"});
        BOOST_TEST(refused.err.size() < 1000u);
    }
    std::string two_byte_letters = "a";   // so that the message would be cut in the middle of a letter
    for (int i = 0; i < 1000; ++i)
        two_byte_letters += "é";
    check_complaint(with("[" + two_byte_letters + "]\nx = 1"), 2, {file, "aé", "é… (2001 bytes)"});
    check_complaint(with(std::string((1 << 20) + 1, '#')), 2, {"--config " + file, "longer than 1 MiB"});
    BOOST_TEST(with("epochs = 3 #" + std::string((1 << 20) - 12, 'x')).code == 0);
    BOOST_REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    for (const std::string& endless : {std::string{"/dev/zero"}, folder.file("pipe")})
        check_complaint(run_program(profile({"--config", endless})), 2, {"--config " + endless, "not a regular file"});
}

BOOST_AUTO_TEST_CASE(two_outputs_do_not_share_a_file) {
    const TemporaryFolder folder;
    const std::string file = folder.file("both"), other = (folder.path() / "." / "both").string();
    check_complaint(run_program(profile({"-o", file, "--json=" + other})), 2, {file, other});
    BOOST_TEST(!std::filesystem::exists(file));
    std::ofstream{file} << "a recording";
    check_complaint(run_program({"report", file, "--json=" + other}), 2, {file, other});
    BOOST_TEST(std::filesystem::file_size(file) == 11u);
    check_complaint(run_program(profile({"-o", ""})), 2, {"-o"});
    check_complaint(run_program(profile({"--json=" + folder.file("c"), "--checkpoint", folder.file("c")})), 2,
                    {"--checkpoint", folder.file("c")});
}

BOOST_AUTO_TEST_CASE(one_form_of_output_at_a_time) {
    check_complaint(run_program(profile({"--json", "--csv"})), 2, {"--json", "--csv"});
    check_complaint(run_program(profile({"--json", "--report", "simple"})), 2, {"--json", "simple"});
    check_complaint(run_program(profile({"--json", "file.json"})), 2,
                    {"file.json"});   // the word after --json is not taken for a file
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
