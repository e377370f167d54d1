#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/machine.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/results.hpp>
#include <drawpoint/diagnosis/comparison/replay_explanation.hpp>
#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

namespace drawpoint::cli {
namespace {

/// Whether a file is one of results: of drawpoint's experiments, or Google Benchmark's.
bool holds_results(const std::string& name) {
    std::array<char, 4096> room{};
    std::ifstream file{name, std::ios::binary};
    file.read(room.data(), room.size());
    const std::string_view head{room.data(), static_cast<std::size_t>(file.gcount())};
    return head.find("\"drawpoint.experiment/1\"") != head.npos ||
           (head.find("\"context\"") != head.npos && head.find("\"num_cpus\"") != head.npos);
}

bench::Results read_results(const std::string& name) {
    try {
        std::ifstream file{name, std::ios::binary};
        return bench::results_in(name, nlohmann::json::parse(file));
    } catch (const std::exception& error) {
        throw Failure{fmt::format("{}: {}", name, error.what())};
    }
}

void compare_results(const std::vector<std::string>& files, bool markdown, const OutputOptions& output,
                     const Invocation& invocation) {
    std::vector<bench::Results> all;
    for (const std::string& file : files)
        all.push_back(read_results(file));
    print_output(
        markdown ? bench::results_to_markdown(all) : bench::results_to_text(all),
        bench::results_to_json(all, {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine()),
        output);
}

void compare_recordings(const std::string& before, const std::string& after, bool markdown, const OutputOptions& output,
                        const Invocation& invocation) {
    const Ledger a = read_steps(before, false, true), b = read_steps(after, false, true);
    for (const auto& [file, ledger] : {std::pair{before, &a}, {after, &b}})
        if (ledger->folded.steps != 0)
            complain(fmt::format("{} has only totals of its first {} steps, which are in rows of their own", file,
                                 ledger->folded.steps));
    const RunComparison found = compare_runs(a, b);
    const ReplayExplanation replayed = explain_by_replay(a, b);
    auto document =
        to_json(found, {.version = DRAWPOINT_VERSION, .command = invocation.line}, summary_of(b, true).machine);
    document["replay"] = to_json(replayed);
    print_output((markdown ? to_markdown(found) : to_text(found)) + "\n" + to_text(replayed), document, output);
}

}   // namespace

int compare(const Invocation& invocation) {
    CommandLine line{invocation,
                     "Explains the difference of two runs' wall times, to the nanosecond, or shows files of "
                     "results beside one another."};
    std::vector<std::string> files;
    bool markdown = false;
    line.app().add_option("FILES", files,
                          "two recordings (.pftrace files, or PyTorch Chrome traces), or two or more files of results: "
                          "JSON of `bench`, `gate`, a suite, or Google Benchmark");
    line.app().add_flag("--markdown", markdown, "prints Markdown instead of text")->configurable(false);
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    if (markdown && output.form == OutputOptions::Form::json)
        throw UsageError{
            "--json and --markdown choose the form of one output: give one of them (--json=FILE writes beside)"};
    if (files.size() < 2)
        throw UsageError{
            fmt::format("{} is missing: two recordings, or files of results, to compare", files.empty() ? "A" : "B")};
    for (const std::string& file : files)
        check_files(output, "FILES", file);
    const auto results = static_cast<std::size_t>(std::ranges::count_if(files, holds_results));
    if (results == files.size())
        compare_results(files, markdown, output, invocation);
    else if (results != 0)
        throw UsageError{fmt::format("{} of the {} files hold results, the others do not: they cannot be compared",
                                     results, files.size())};
    else if (files.size() == 2)
        compare_recordings(files[0], files[1], markdown, output, invocation);
    else
        throw UsageError{fmt::format("two recordings can be compared, got {}", files.size())};
    return exit_ok;
}

}   // namespace drawpoint::cli
