#include "cli/experiment.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/machine.hpp"
#include "cli/option_values.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {

ExperimentFlags::ExperimentFlags(CLI::App& app) : output_flags_{app, true} {
    add_number(app, "--turn-ms", turn_ms_, 0, 1e6, "a turn is as many runs as take so many milliseconds");
    add_number(app, "--error", error_percent_, 1e-6, 50, "probability in % that any bound, or the gate, is wrong");
    const auto seed = [](std::string_view option, std::string_view text) -> std::uint64_t {
        if (text.empty())
            return std::random_device{}();
        const auto number = number_in<std::uint64_t>(text);
        if (!number)
            throw UsageError{fmt::format("{} must be a whole number, got '{}'", option, text)};
        return *number;
    };
    add_read(app, "--seed", seed_, "", seed, "of the orders of turns [drawn anew]")->type_name("N");
    add_read(app, "--reports", reports_, "nothing",
             one_of<bench::Reports>({"nothing", "google-benchmark", "numbers", "suite", "row"}),
             "what the commands write to stdout and are compared by; nothing: by their time");
    app.add_option("--html", html_, "also writes a page of HTML with a picture of the ratios; as --to html=FILE")
        ->type_name("FILE");
    app.add_option("--to", to_,
                   fmt::format("FORMAT=FILE, repeatable: writes a file for another program; FORMAT is {}",
                               fmt::join(bench::experiment_formats(), ", ")))
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name(fmt::format("{}=FILE", fmt::join(bench::experiment_formats(), "=FILE|")));
}

void ExperimentFlags::read() {
    output_ = output_flags_.read();
    check_files(output_, "--json", "");
    std::vector<std::pair<std::string_view, std::string>> wishes;   // the option, and FORMAT=FILE
    for (const std::string& text : to_)
        wishes.emplace_back("--to", text);
    if (!html_.empty())
        wishes.emplace_back("--html", "html=" + html_);
    for (const auto& [option, text] : wishes) {
        const auto [format, file] = [&] {
            try {
                return bench::export_file_in(text);
            } catch (const std::invalid_argument& error) {
                throw UsageError{fmt::format("{} {}", option, error.what())};
            }
        }();
        if (format == "google-benchmark" &&
            (reports_ == bench::Reports::google_benchmark || reports_ == bench::Reports::numbers))
            throw UsageError{"--to google-benchmark needs wall times, which --reports replaces"};
        check_files({.json_files = {file}}, option, "");   // throws if it cannot be written
        check_files(output_, option, file);
        for (const bench::ExportFile& one : exports_)
            if (same_file(one.file, file))
                throw UsageError{
                    fmt::format("{} {} and --to {}={} name the same file", option, text, one.format, one.file)};
        exports_.push_back({format, file});
    }
}

bench::ExperimentOptions ExperimentFlags::options() const {
    return {.least_turn = std::chrono::nanoseconds{static_cast<std::int64_t>(turn_ms_ * 1e6)}, .seed = seed_};
}

void ExperimentFlags::check_not_written(const std::string& file) const {
    check_files(output_, "FILES", file);
    for (const bench::ExportFile& one : exports_)
        if (same_file(file, one.file))
            throw UsageError{fmt::format("{} is read and written", file)};
}

const OutputOptions& ExperimentFlags::output_without_exports() const {
    if (!exports_.empty() || output_.form == OutputOptions::Form::csv)
        throw UsageError{
            fmt::format("{} needs rounds: two files are judged by what they count", exports_.empty() ? "--csv"
                                                                                    : html_.empty()  ? "--to"
                                                                                                     : "--html")};
    return output_;
}

ExperimentFlags::Report ExperimentFlags::report(const bench::Measurements& measured, double error,
                                                const Invocation& invocation) const {
    Report report{.comparisons = bench::compare(measured, error)};
    report.text = to_text(measured, report.comparisons, error, output_.text_options());
    report.document = to_json(measured, report.comparisons, error,
                              {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine());
    return report;
}

bool ExperimentFlags::print(const Report& report, const bench::Measurements& measured) const {
    using Form = OutputOptions::Form;
    const auto exported = [&](std::string_view format) {
        return bench::export_experiment(format, measured, report.comparisons);
    };
    const std::vector<std::string> failures = bench::write_exports(exports_, measured, report.comparisons);
    for (const std::string& failure : failures)
        complain(failure);
    const std::string end = report.conclusion.empty() ? "" : "\n" + report.conclusion + "\n";
    print_output(output_.form == Form::csv        ? exported("csv")
                 : output_.form == Form::markdown ? exported("markdown") + end
                                                  : report.text + end,
                 report.document, output_);
    return failures.empty();
}

void ExperimentFlags::write_failure(const bench::Measurements& measured) const {
    for (const bench::ExportFile& one : exports_)
        if (one.format == "junit")
            for (const std::string& failure : bench::write_exports({&one, 1}, measured, {}))
                complain(failure);
}

bool run(bench::InterruptibleExperiment& experiment, const std::function<void(const bench::Measurements&)>& prepared,
         const std::function<bool(const bench::Measurements&)>& enough) {
    try {
        return experiment.run(prepared, enough, [](std::size_t rounds) { complain(fmt::format("{} rounds", rounds)); });
    } catch (const bench::NotRun& reason) {
        if (experiment.measurements().rounds.empty())
            throw Failure{reason.what()};
        return false;
    }
}

}   // namespace drawpoint::cli
