#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/machine.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/result_files.hpp"
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/results.hpp>
#include <drawpoint/diagnosis/comparison/replay_explanation.hpp>
#include <drawpoint/diagnosis/comparison/run_comparison.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

void compare_results(const std::vector<std::string>& files, bool markdown, const OutputOptions& output,
                     const Invocation& invocation) {
    std::vector<bench::Results> all;
    for (const std::string& file : files)
        all.push_back(read_results(file));
    print_output(
        markdown ? bench::results_to_markdown(all) : bench::results_to_text(all, output.text_options()),
        bench::results_to_json(all, {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine()),
        output);
}

/// Files with charts; empty: none.
struct Charts {
    std::string html, svg;
};

Ledger read_recording(const std::string& file) {
    Ledger ledger = read_steps(file, false, true);
    if (ledger.folded.steps != 0)
        complain(fmt::format("{} has only totals of its first {} steps, which are in rows of their own", file,
                             ledger.folded.steps));
    return ledger;
}

/// Compares each recording with the first one.
void compare_recordings(const std::vector<std::string>& files, bool markdown, const Charts& charts,
                        const OutputOptions& output, const Invocation& invocation) {
    const bool several = files.size() > 2;
    const JsonHead head{.version = DRAWPOINT_VERSION, .command = invocation.line};
    const Ledger base = read_recording(files[0]);
    std::string text;
    auto documents = nlohmann::ordered_json::array();
    for (const std::string& file : std::span{files}.subspan(1)) {
        const Ledger other = read_recording(file);
        const RunComparison found = compare_runs(base, other);
        const ReplayExplanation replayed = explain_by_replay(base, other);
        auto& document = documents.emplace_back(to_json(found, head, summary_of(other, true).machine));
        document["replay"] = to_json(replayed);
        if (several)
            text += fmt::format("{}{}{} and {}\n\n", text.empty() ? "" : "\n", markdown ? "## " : "",
                                printable(files[0]), printable(file));
        text += (markdown ? to_markdown(found) : to_text(found, output.text_options())) + "\n" + to_text(replayed);
        if (!charts.html.empty())
            write_file(charts.html, to_html(found, fmt::format("{} and {}", files[0], file), to_text(replayed)));
        if (!charts.svg.empty())
            write_file(charts.svg, to_svg(found));
    }
    if (!several)
        return print_output(text, documents[0], output);
    auto document = json_document("drawpoint.run-comparisons/1", head, this_machine());
    document["files"] = files;
    document["comparisons"] = std::move(documents);
    print_output(text, document, output);
}

}   // namespace

int compare(const Invocation& invocation) {
    CommandLine line{invocation,
                     "Explains the difference of two runs' wall times, to the nanosecond, or shows files of "
                     "results beside one another."};
    std::vector<std::string> files;
    bool markdown = false;
    Charts charts;
    line.app().add_option(
        "FILES", files,
        "two or more, compared with the first: recordings (.pftrace files, or PyTorch Chrome traces), or results "
        "(JSON of `bench`, `gate`, a suite, or Google Benchmark)");
    line.app().add_flag("--markdown", markdown, "prints Markdown instead of text")->configurable(false);
    line.app()
        .add_option("--html", charts.html, "of recordings: writes a page with a chart to this file")
        ->type_name("FILE");
    line.app().add_option("--svg", charts.svg, "of recordings: writes the chart to this file")->type_name("FILE");
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
    if (same_file(charts.html, charts.svg))
        throw UsageError{fmt::format("--html and --svg name the same file {}", charts.html)};
    for (const std::string& chart : {charts.html, charts.svg}) {
        if (chart.empty())
            continue;
        for (const std::string& file : files)
            if (same_file(file, chart))
                throw UsageError{fmt::format("{} is read and written", file)};
        check_files(output, chart == charts.html ? "--html" : "--svg", chart);
        check_files({.json_files = {chart}}, "FILES", "");   // throws if it cannot be written
    }
    const auto results = static_cast<std::size_t>(std::ranges::count_if(files, holds_results));
    if (results != 0 && !(charts.html.empty() && charts.svg.empty()))
        throw UsageError{"--html and --svg show where the time of two recordings went, not files of results"};
    if (results == files.size())
        compare_results(files, markdown, output, invocation);
    else if (results != 0)
        throw UsageError{fmt::format("{} of the {} files hold results, the others do not: they cannot be compared",
                                     results, files.size())};
    else if (files.size() > 2 && !(charts.html.empty() && charts.svg.empty()))
        throw UsageError{fmt::format("--html and --svg show two recordings, got {}", files.size())};
    else
        compare_recordings(files, markdown, charts, output, invocation);
    return exit_ok;
}

}   // namespace drawpoint::cli
