#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

namespace drawpoint::cli {

int compare(const Invocation& invocation) {
    CommandLine line{invocation, "Explains the difference of two runs' wall times, to the nanosecond."};
    std::string before, after;
    bool markdown = false;
    line.app().add_option("A", before, "a recording: a .pftrace file, or a PyTorch Chrome trace (.json, .json.gz)");
    line.app().add_option("B", after, "the recording to compare with it");
    line.app().add_flag("--markdown", markdown, "prints Markdown instead of text")->configurable(false);
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    if (markdown && output.form == OutputOptions::Form::json)
        throw UsageError{
            "--json and --markdown choose the form of one output: give one of them (--json=FILE writes beside)"};
    if (before.empty() || after.empty())
        throw UsageError{fmt::format("{} is missing: two recordings to compare", before.empty() ? "A" : "B")};
    check_files(output, "A", before);
    check_files(output, "B", after);
    const Ledger a = read_steps(before, false, true), b = read_steps(after, false, true);
    for (const auto& [file, ledger] : {std::pair{before, &a}, {after, &b}})
        if (ledger->folded.steps != 0)
            complain(fmt::format("{} has only totals of its first {} steps, which are in rows of their own", file,
                                 ledger->folded.steps));
    const RunComparison found = compare_runs(a, b);
    print_output(
        markdown ? to_markdown(found) : to_text(found),
        to_json(found, {.version = DRAWPOINT_VERSION, .command = invocation.line}, summary_of(b, true).machine),
        output);
    return exit_ok;
}

}   // namespace drawpoint::cli
