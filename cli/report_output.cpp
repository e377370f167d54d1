#include "cli/report_output.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/run_page.hpp"
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/advanced.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/text/detail/shell.hpp>

namespace drawpoint::cli {

using Form = OutputOptions::Form;

namespace {

std::optional<ProfileMode> fastxtend_mode(std::string_view style) {
    return style == "throughput"   ? std::optional{ProfileMode::throughput}
           : style == "simple"     ? std::optional{ProfileMode::simple}
           : style == "simple-old" ? std::optional{ProfileMode::simple_old}
                                   : std::nullopt;
}

/// The report in a style of another program.
std::string text_of(const Ledger& ledger, const ReportRequest& request) {
    if (request.style == "op")
        return to_op_report(ledger, {.group = {.group_by_input_shape = request.group_by_input_shape},
                                     .table = {.sort_by = request.sort_by, .row_limit = request.row_limit}});
    if (request.style == "advanced" && ledger.stack_samples.empty())
        return "No stack sample was recorded: drawpoint profile --profiler advanced takes them.\n";
    if (request.style == "advanced")
        return advanced_report(ledger,
                               {.line_count_restriction =
                                    request.row_limit < 0 ? LineRestriction{1.0} : LineRestriction{request.row_limit}});
    if (request.style == "tree")
        return action_tree_text(action_tree(ledger));
    return to_lightning(lightning_actions(ledger),
                        {.extended = request.style != "lightning", .hannah = request.style == "hannah"});
}

/// Turns what the library throws of a file into what a command ends with.
template <class F>
void as_failure(F&& action) {
    try {
        action();
    } catch (const std::runtime_error& error) {
        throw Failure{error.what()};
    }
}

}   // namespace

bool needs_every_row(std::string_view style) noexcept { return style != "drawpoint" && style != "throughput"; }

bool drops_first_batch(const Ledger& ledger) {
    return ledger.fact(std::string{facts::option_prefix} + "drop-first-batch") != "false";
}

Summary summary_of(const Ledger& ledger, bool drop_first_batch) {
    Summary summary = summarize(ledger, {.drop_first_batch = drop_first_batch});
    if (ledger.fact(std::string{facts::option_prefix} + "profiler") == "throughput")
        std::erase_if(summary.rows, [](const SummaryRow& row) {
            return row.phase != "fit" && row.action != Action::step && row.action != Action::draw &&
                   row.action != Action::batch;
        });
    return summary;
}

void check_request(const ReportRequest& request, const OutputOptions& output) {
    const std::string& style = request.style;
    if (style != "drawpoint" && (output.form == Form::json || !output.json_files.empty()))
        throw UsageError{fmt::format("--json has drawpoint's own report alone, not the style {}", style)};
    if (style != "drawpoint" && !fastxtend_mode(style) && output.form != Form::text)
        throw UsageError{fmt::format("--{} has no style {}", output.form == Form::csv ? "csv" : "markdown", style)};
    if (request.full && (style != "drawpoint" || output.form != Form::text))
        throw UsageError{"--full prints all of drawpoint's own report as text: no other style or form has more"};
    if (!request.sort_by.empty() && std::ranges::find(sort_keys(), request.sort_by) == sort_keys().end())
        throw UsageError{
            fmt::format("--sort-by must be one of {}, got '{}'", fmt::join(sort_keys(), ", "), request.sort_by)};
    if (request.row_limit < -1)
        throw UsageError{fmt::format("--row-limit must be at least -1 (all), got {}", request.row_limit)};
}

std::optional<Diagnosis> quick_diagnosis(const Ledger& ledger) {
    constexpr std::size_t quick_samples = 500'000;   // about 0.2 s
    if (ledger.pipelines.empty() || ledger.steps.empty())
        return std::nullopt;
    return drawpoint::diagnose(ledger, {.most_samples = quick_samples, .defaults = profile_defaults()});
}

std::optional<Diagnosis> diagnosis_of(const Ledger& ledger) {
    try {
        return quick_diagnosis(ledger);
    } catch (const std::exception& error) {
        complain(fmt::format("no verdict: {}", error.what()));
        return std::nullopt;
    }
}

void add_diagnosis(Summary& summary, const Diagnosis& diagnosis) {
    summary.blame.emplace();
    for (const BlameRow& row : diagnosis.blame_rows)
        summary.blame->push_back({row.cause, static_cast<double>(row.ns) / 1e9, row.share});
    const Trust& trust = diagnosis.trust;
    summary.trust = TrustSummary{trust.trusted, trust.interference_share, trust.steal_share, trust.texts()};
}

namespace {

std::string where_there_is_more(const Summary& summary) {
    if (summary.recording.file.empty())
        return "more: --full";
    std::string file = shell_word(summary.recording.file);
    if (constexpr std::size_t most = 30; columns_of(file) > most || printable(file) != file)
        file = "RUN";   // the line is to be short, and to be copied
    return fmt::format("more: drawpoint report --full {0}; why: drawpoint diagnose {0}", file);
}

void print_on_stdout(const Ledger& ledger, const Summary& summary, const std::optional<Diagnosis>& diagnosis,
                     const ReportRequest& request, const OutputOptions& output, const std::string& document) {
    if (request.picture) {
        const auto picture = to_svg(ledger, summary, diagnosis ? &*diagnosis : nullptr, *request.picture);
        if (!picture)
            throw Failure{fmt::format("--svg {}: the recording has nothing to draw", name_of(*request.picture))};
        return print(*picture);
    }
    if (const auto mode = fastxtend_mode(request.style)) {
        const FastxtendReport report = fastxtend_report(fastxtend_values(ledger), *mode, request.drop_first_batch);
        return print(output.form == Form::csv        ? to_csv(report)
                     : output.form == Form::markdown ? to_markdown(report)
                                                     : to_plain(report, width_of_stdout()));
    }
    if (request.style != "drawpoint")
        return print_style(ledger, request);
    switch (output.form) {
    case Form::json: return print(document);
    case Form::csv: return print(to_csv(summary));
    case Form::markdown:
        return print(to_markdown(summary) + (diagnosis ? "\n## Diagnosis\n\n" + to_markdown(*diagnosis) : ""));
    case Form::text: {
        const TextOptions options = output.text_options();
        const std::string verdict = diagnosis ? fitted(verdict_lines(*diagnosis, options), options.width) : "";
        if (request.full)
            return print_text(verdict + (verdict.empty() ? "" : "\n") + to_text(summary, options));
        return print_text(to_short_text(summary, verdict, options) +
                          styled(where_there_is_more(summary), TextStyle::dim, options.colour) + "\n");
    }
    }
}

}   // namespace

std::string report_document(const Summary& summary, const Diagnosis* diagnosis, const std::string& command_line) {
    const JsonHead head{.version = DRAWPOINT_VERSION, .command = command_line};
    nlohmann::ordered_json json = to_json(summary, head);
    if (diagnosis) {
        const nlohmann::ordered_json found = to_json(*diagnosis, head, summary.machine);
        for (const char* const key : {"verdict", "co_verdicts", "abstained", "advice"})
            json["diagnosis"][key] = found[key];
    }
    return json_text(json);
}

void print_report(const Ledger& ledger, Summary summary, const ReportRequest& request, const OutputOptions& output) {
    check_request(request, output);
    const bool is_own = request.style == "drawpoint";
    const bool needs_diagnosis = is_own && (output.form != Form::csv || !output.json_files.empty());
    const auto diagnosis = needs_diagnosis || !request.html.empty() || !request.logs.empty() || request.picture
                               ? diagnosis_of(ledger)
                               : std::nullopt;
    if (diagnosis)
        add_diagnosis(summary, *diagnosis);
    const Diagnosis* const found = diagnosis ? &*diagnosis : nullptr;
    const std::string document = output.form == Form::json || !output.json_files.empty()
                                     ? report_document(summary, found, request.command_line)
                                     : std::string{};
    // What cannot be written must not cost the rest, which an hour of training may have made; stdout comes last, whose
    // reader may be gone.
    FirstFailure failures;
    for (const std::string& file : output.json_files)
        failures.run([&] { write_file(file, document); });
    for (const RunLog& log : request.logs)
        failures.run([&] { write_run_log(log, ledger, summary, found); });
    if (!request.html.empty())
        failures.run([&] { write_run_page(request.html, ledger, summary, found, request.command_line); });
    print_on_stdout(ledger, summary, diagnosis, request, output, document);
    failures.rethrow();
}

void FirstFailure::run(const std::function<void()>& action) {
    try {
        action();
    } catch (const Failure&) {
        if (!first_)
            first_ = std::current_exception();
    }
}

void FirstFailure::rethrow() const {
    if (first_)
        std::rethrow_exception(first_);
}

void print_output(std::string_view text, const nlohmann::ordered_json& document, const OutputOptions& output) {
    const std::string json = json_text(document);
    FirstFailure failures;
    for (const std::string& file : output.json_files)   // before stdout, whose reader may be gone
        failures.run([&] { write_file(file, json); });
    if (output.form == Form::text)
        print_text(text);
    else
        print(output.form == Form::json ? json : text);
    failures.rethrow();
}

void check_files(const OutputOptions& output, std::string_view option, const std::string& other) {
    for (const std::string& file : output.json_files) {
        if (same_file(file, other) && (!std::filesystem::exists(file) || std::filesystem::is_regular_file(file)))
            throw UsageError{fmt::format("{} {} and --json={} name the same file", option, other, file)};
        as_failure([&] { check_output_file(file); });
    }
}

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void print_style(const Ledger& ledger, const ReportRequest& request) {
    const std::string text = text_of(ledger, request);
    const auto width = width_of_stdout();
    if (!width)
        return print(text);
    if (request.style != "advanced")
        return print(fitted_tables(text, *width));
    std::string all;
    for (const std::string_view line : split(std::string_view{text}.substr(0, text.size() - 1), '\n'))
        all.append(cut(line, *width)) += '\n';   // the name of a function may be a thousand columns wide
    print(all);
}

void print_text(std::string_view text) {
    const auto width = width_of_stdout();
    print(width ? fitted(text, *width) : text);
}

void write_file(const std::string& file, std::string_view text) {
    as_failure([&] { write_output_file(file, text); });
}

}   // namespace drawpoint::cli
