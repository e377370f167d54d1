#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_page.hpp"
#include <drawpoint/diagnosis/blame/explain.hpp>
#include <drawpoint/diagnosis/run_page/run_page.hpp>
#include <drawpoint/diagnosis/traces/trace_split.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>

namespace drawpoint::cli {
namespace {

using Form = OutputOptions::Form;
using Json = nlohmann::ordered_json;

Json seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

Json split_json(const TraceSplit& split) {
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
    Json json{{"steps", split.steps.size()},
              {"has_draws", split.has_draws},
              {"num_workers_0", split.iterator == LoaderIterator::unknown
                                    ? Json()
                                    : Json(split.iterator == LoaderIterator::single_process)},
              {"warm_up_steps", split.warm_up_steps},
              {"boundaries", split.boundaries},
              {"steady_steps", split.steady_steps},
              {"draw_p50_s", seconds(split.steady_draw.p50_ns)},
              {"draw_p90_s", seconds(split.steady_draw.p90_ns)},
              {"draw_p99_s", seconds(split.steady_draw.p99_ns)},
              {"draw_max_s", seconds(split.steady_draw.max_ns)},
              {"step_p50_s", seconds(split.steady_step_p50_ns)},
              {"draw_share", split.draw_share},
              {"draw_share_of_all", split.draw_share_of_all},
              {"warm_up_share", split.warm_up_share},
              {"boundary_share", split.boundary_share},
              {"between_share", split.between_share},
              {"hidden_share", or_null(split.hidden_share)},
              {"period", or_null(split.period)},
              {"throughput_gain_if_draw_were_zero", or_null(split.headroom)},
              {"low", split.headroom_90 ? Json(split.headroom_90->first) : Json()},
              {"high", split.headroom_90 ? Json(split.headroom_90->second) : Json()},
              {"profiler_s", seconds(split.profiler_ns)},
              {"hint", split.hint},
              {"notes", split.notes},
              {"cannot_tell", split.cannot_tell},
              {"actions", Json::array()}};
    for (const TraceAction& action : split.actions)
        json["actions"].push_back({{"action", action.name}, {"total_s", seconds(action.ns)}});
    return json;
}

bool is_chrome_trace(const std::string& file) { return file.ends_with(".json") || file.ends_with(".json.gz"); }

/// Prints the split of a PyTorch trace into draws and compute. There is no verdict, for lack of records of the loader.
void print_split(const std::string& file, const Invocation& invocation, const OutputOptions& output) {
    ImportedTrace trace = import_chrome_trace(file, {.operators = false});
    if (!trace.warnings.empty())
        complain(fmt::format("{}", fmt::join(trace.warnings, "; ")));
    const TraceSplit split = split_trace(trace.ledger);
    if (split.steps.empty())
        throw Failure{file + ": no steps"};
    Diagnosis none;
    none.abstained = "a PyTorch trace has no records of its loader: it tells how long the draws were, not why";
    if (!split.hint.empty())
        none.evidence.push_back(split.hint);
    none.steady_steps = split.steady_steps;
    none.draw_share = split.draw_share;
    Json document = to_json(none, {.version = DRAWPOINT_VERSION, .command = invocation.line},
                            summary_of(trace.ledger, true).machine);
    document["trust"] = nullptr;   // the trace says nothing of the machine
    document["split"] = split_json(split);
    print_output(to_text(split, output.text_options()), document, output);
}

}   // namespace

int diagnose_run(const Invocation& invocation) {
    CommandLine line{invocation, "Says what holds a run back, with evidence and the predicted gain of each change."};
    std::string file, step_text;
    bool markdown = false;
    line.app().add_option("RUN", file, "the recording: a .pftrace file, or a PyTorch Chrome trace (.json, .json.gz)");
    const CLI::Option* const explained =
        line.app()
            .add_option("--explain", step_text, "shows why one step's draw waited, sample by sample [the longest]")
            ->expected(0, 1)
            ->type_name("[STEP]")
            ->configurable(false);
    line.app().add_flag("--markdown", markdown, "prints Markdown instead of text")->configurable(false);
    std::string html;
    bool svg = false;
    line.app()
        .add_option("--html", html, "also writes the run as a page of HTML with pictures to this file")
        ->type_name("FILE");
    line.app().add_flag("--svg", svg, "with --explain: prints a picture as SVG instead of text")->configurable(false);
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    if (markdown && output.form == Form::json)
        throw UsageError{
            "--json and --markdown choose the form of one output: give one of them (--json=FILE writes beside)"};
    const bool explains = explained->count() > 0;
    if (svg && (!explains || markdown || output.form == Form::json || !output.json_files.empty()))
        throw UsageError{"--svg prints the picture of --explain, in no other form"};
    const auto step = number_in<std::uint32_t>(step_text);
    if (explains && !step && !step_text.empty()) {
        if (!file.empty())
            throw UsageError{fmt::format("--explain must be the number of a step, got '{}'", step_text)};
        file = step_text;   // --explain RUN
    }
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to diagnose"};
    check_files(output, "RUN", file);
    check_page(html, "RUN", file);
    for (const std::string& json : output.json_files)
        check_page(html, "--json", json);

    if (is_chrome_trace(file)) {
        if (explains)
            throw UsageError{fmt::format("--explain needs a recording of drawpoint's own (.pftrace), got {}", file)};
        if (!html.empty())
            throw UsageError{
                fmt::format("--html: {} has no records of a loader; drawpoint report makes its page", file)};
        print_split(file, invocation, output);
        return exit_ok;
    }
    const Ledger ledger = read_steps(file);
    std::string chain, shown;   // as it is, and in the form asked for
    if (explains) {
        try {
            const Blame found = blame(ledger);
            chain = svg ? explain_svg(ledger, found, step) : explain(ledger, found, step);
            if (!svg)
                shown = explain(ledger, found, step,
                                {.colour = output.colour_on_stdout(),
                                 .width = std::min<std::size_t>(output.text_options().width, 100)});
        } catch (const std::invalid_argument& error) {
            throw UsageError{fmt::format("--explain {}: {}", step_text, error.what())};
        }
        if (svg || markdown)
            shown = markdown ? fmt::format("```\n{}```\n", chain) : chain;
        if (output.form != Form::json && output.json_files.empty() && html.empty()) {
            print(shown);
            return exit_ok;
        }
    }
    const Diagnosis found = drawpoint::diagnose(ledger, {.defaults = profile_defaults()});
    Summary summary = summary_of(ledger, drops_first_batch(ledger));
    summary.recording.file = file;
    if (!html.empty())
        write_run_page(html, ledger, summary, &found, invocation.line);
    Json document = to_json(found, {.version = DRAWPOINT_VERSION, .command = invocation.line}, summary.machine);
    if (explains)
        document["explain"] = chain;
    print_output(explains   ? shown
                 : markdown ? to_markdown(found)
                            : to_text(found, output.text_options()),
                 document, output);
    return exit_ok;
}

}   // namespace drawpoint::cli
