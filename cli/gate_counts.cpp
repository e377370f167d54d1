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
        const bench::Results before = read_results(base), after = read_results(candidate);
        if (!after.failure.empty())
            throw Failure{fmt::format("gate: no verdict, because {}: {}", candidate, printable(after.failure))};
        for (const auto& [name, digest] : after.outputs)
            if (const auto was = std::ranges::find(before.outputs, name, [](const auto& of) { return of.first; });
                was != before.outputs.end() && was->second != digest)
                throw Failure{fmt::format("gate: no verdict, because {} makes another output in {}: {}, not {}",
                                          printable(name), candidate, printable(digest), printable(was->second))};
        for (const std::string& name : bench::counted_by_one(before, after))
            complain(fmt::format("gate: only one file counts {}: left out", printable(name)));
        rows = bench::compare_counts(before, after, error);
    } else {
        const Ledger before = read_steps(base, false, true), after = read_steps(candidate, false, true);
        rows = bench::compare_counts(before, after, error);
        text = differences_of(before, after);
    }
    const auto names_of = [&](auto&& is_wanted) {
        std::vector<std::string> names;
        for (const bench::CountComparison& row : rows)
            if (is_wanted(row.finding))
                names.push_back(printable(row.name));
        return names;
    };
    const auto more = names_of([](bench::CountFinding finding) { return finding == bench::CountFinding::more; });
    const auto unjudged = names_of(bench::says_nothing);
    const bool is_judged = unjudged.size() < rows.size();
    std::string verdict = !is_judged     ? "no verdict, because nothing that both count can be judged"
                          : more.empty() ? "nothing more is counted"
                                         : fmt::format("more: {}", fmt::join(more, ", "));
    if (is_judged && !unjudged.empty())
        verdict += fmt::format("; not judged: {}", fmt::join(unjudged, ", "));
    auto document =
        bench::counts_to_json(rows, {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine());
    document["verdict"] = !is_judged ? "none" : more.empty() ? "not more" : "more";
    document["verdict_text"] = verdict;
    document["no_verdict_on_times"] = of_times;
    const bool markdown = output.form == OutputOptions::Form::markdown;
    text += (markdown ? bench::counts_to_markdown(rows) : bench::counts_to_text(rows, output.text_options())) +
            fmt::format("\n{}\n{}\n", verdict, of_times);
    print_output(text, document, output);
    const bool is_told =
        !for_github || tell_github(is_judged && more.empty(), verdict, bench::counts_to_markdown(rows));
    if (!is_judged)
        throw Failure{fmt::format("gate: {}", verdict)};
    return !more.empty() ? exit_slower : is_told ? exit_ok : exit_failed;
}

}   // namespace drawpoint::cli
