#include "cli/gate_counts.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/github.hpp"
#include "cli/machine.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/result_files.hpp"
#include <drawpoint/bench/experiment/counts.hpp>
#include <drawpoint/diagnosis/comparison/run_comparison.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::string_view of_times =
    "of times there is no verdict: the two were not measured in the same rounds, so a difference is also what changed "
    "on the machine meanwhile; --base and --new race two commands";

/// What was not the same, a line each: their counts may differ because of it.
std::string differences_of(const Ledger& base, const Ledger& candidate) {
    std::string text;
    for (const RunDifference& one : compare_runs(base, candidate).differences)
        text += fmt::format("not the same: {}: {}, {}\n", printable(one.name), one.a.empty() ? "-" : printable(one.a),
                            one.b.empty() ? "-" : printable(one.b));
    return text;
}

}   // namespace

int gate_counts(const std::string& base, const std::string& candidate, double error, bool for_github,
                const OutputOptions& output, const Invocation& invocation) {
    const bool holds = holds_results(base);
    if (holds != holds_results(candidate))
        throw UsageError{fmt::format("{} holds results, {} does not: they cannot be compared", holds ? base : candidate,
                                     holds ? candidate : base)};
    std::vector<bench::CountComparison> rows;
    std::string text;
    if (holds) {
        rows = bench::compare_counts(read_results(base), read_results(candidate), error);
    } else {
        const Ledger before = read_steps(base, false, true), after = read_steps(candidate, false, true);
        rows = bench::compare_counts(before, after, error);
        text = differences_of(before, after);
    }
    const auto names_of = [&](bench::CountFinding finding) {
        std::vector<std::string> names;
        for (const bench::CountComparison& row : rows)
            if (row.finding == finding)
                names.push_back(printable(row.name));
        return names;
    };
    const std::vector<std::string> more = names_of(bench::CountFinding::more);
    const bool is_judged = !std::ranges::all_of(rows, bench::says_nothing, &bench::CountComparison::finding);
    const std::string verdict = !is_judged     ? "no verdict, because nothing that both count can be judged"
                                : more.empty() ? "nothing more is counted"
                                               : fmt::format("more: {}", fmt::join(more, ", "));
    auto document =
        bench::counts_to_json(rows, {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine());
    document["verdict"] = !is_judged ? "none" : more.empty() ? "not more" : "more";
    document["verdict_text"] = verdict;
    document["no_verdict_on_times"] = of_times;
    const bool markdown = output.form == OutputOptions::Form::markdown;
    text += (markdown ? bench::counts_to_markdown(rows) : bench::counts_to_text(rows)) +
            fmt::format("\n{}\n{}\n", verdict, of_times);
    print_output(text, document, output);
    if (for_github)
        tell_github(is_judged && more.empty(), verdict, bench::counts_to_markdown(rows));
    if (!is_judged)
        throw Failure{fmt::format("gate: {}", verdict)};
    return more.empty() ? exit_ok : exit_slower;
}

}   // namespace drawpoint::cli
