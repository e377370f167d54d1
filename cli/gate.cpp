#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/experiment.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/gate.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

struct GateRequest {
    std::string base, candidate;
    bool self_test = false;
    double at_least = 1, at_most = 2, most_foreign = 40;   // in %
    double minutes = 10;
    std::size_t rounds = 200;
    bool for_github = false;

    void add_to(CLI::App& app) {
        app.add_option("--base", base, "the command that the new one is to replace");
        app.add_option("--new", candidate, "the new command");
        app.add_flag(
            "--self-test", self_test,
            "runs --base against itself, and says how often gates like this one are wrong or miss a slow-down");
        add_number(app, "--at-least", at_least, 0, 99, "% by which new must be slower to fail");
        add_number(app, "--at-most", at_most, 0, 99, "% by which new must surely not be slower to pass early");
        add_number(app, "--minutes", minutes, 0.01, 1e5, "passes after this time if it is not sure");
        add_number(app, "--rounds", rounds, 1, 10'000, "the same, after this number of rounds");
        add_number(app, "--most-foreign", most_foreign, 0, 100,
                   "gives no verdict if other processes use more than this % of the cores in most rounds");
        app.add_flag("--github", for_github,
                     "prints the verdict as an annotation, and adds the table to $GITHUB_STEP_SUMMARY");
    }

    /// After parsing: throws UsageError.
    void check(const ExperimentFlags& flags) const {
        if (base.empty())
            throw UsageError{"--base is missing: the command that the new one is to replace"};
        if (self_test != candidate.empty())
            throw UsageError{self_test ? "--self-test runs --base against itself: leave out --new"
                                       : "--new is missing: the command to compare with --base"};
        using Form = OutputOptions::Form;
        if (for_github && (flags.form() == Form::json || flags.form() == Form::csv))
            throw UsageError{"--github prints an annotation, which --json and --csv leave no place for"};
        if (at_most <= at_least)
            throw UsageError{fmt::format("--at-most must be above --at-least, got {} and {}", at_most, at_least)};
    }
    /// Of fewer than 10 rounds no gates can be drawn for a self-test.
    [[nodiscard]] std::size_t least_rounds(std::size_t rows, const bench::GateOptions& options) const {
        const std::size_t of_gate = bench::least_rounds(rows, options);
        return self_test ? std::max<std::size_t>(of_gate, 10) : of_gate;
    }
};

/// The metrics that the gate judges.
std::vector<std::size_t> compared_metrics(std::span<const bench::Metric> metrics) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < metrics.size(); ++i)
        if (metrics[i].compared)
            rows.push_back(i);
    return rows;
}

std::string too_few_text(std::size_t least_rounds) {
    return fmt::format("a gate with this --error, or its self-test, needs {}", least_rounds);
}

/// log(new / base) of the last round, by row.
std::vector<double> last_log_ratios(const bench::Measurements& measured, std::span<const std::size_t> rows) {
    const bench::Round& round = measured.rounds.back();
    std::vector<double> log_ratios;
    for (const std::size_t metric : rows)
        log_ratios.push_back(std::log(round.values[1][metric] / round.values[0][metric]));
    return log_ratios;
}

std::string verdict_text(const bench::Gate& gate, const bench::Measurements& measured,
                         std::span<const std::size_t> rows, double at_most_percent) {
    const auto percent = [](double log_ratio) { return std::expm1(log_ratio) * 100; };
    if (gate.verdict() == bench::GateVerdict::slower) {
        const Interval found = gate.log_ratio(gate.slowest());
        return fmt::format("slower: {} by {:.1f} %, surely by more than {:.1f} %",
                           measured.metrics[rows[gate.slowest()]].name, percent(found.median),
                           std::max(percent(found.low), 0.0));
    }
    if (gate.verdict() == bench::GateVerdict::not_slower)
        return fmt::format("not slower: surely by less than {} %", at_most_percent);
    std::string text = "not separated:";
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const Interval found = gate.log_ratio(row);
        text += fmt::format("{} {} {:+.1f} %, ", row == 0 ? "" : ";", measured.metrics[rows[row]].name,
                            percent(found.median));
        text += std::isfinite(found.high) ? fmt::format("surely slower by less than {:.1f} %", percent(found.high))
                                          : std::string{"too few rounds to say more"};
    }
    return text;
}

std::string_view verdict_name(bench::GateVerdict verdict) {
    constexpr std::array<std::string_view, 3> names{"not separated", "slower", "not slower"};
    return names[static_cast<std::size_t>(verdict)];
}

/// Prints the verdict as an annotation of a GitHub workflow, and adds it with the table to the summary of its step.
void tell_github(bool passes, const std::string& verdict, const std::string& table) {
    print(fmt::format("::{} title=drawpoint gate::{}\n", passes ? "notice" : "error", printable(verdict)));
    const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
    if (!summary || *summary == '\0')
        return;
    std::ofstream file{summary, std::ios::app};
    file << "**drawpoint gate: " << verdict << "**\n\n" << table << "\n";
    if (!file.flush())
        throw Failure{fmt::format("{}: cannot be written", summary)};
}

}   // namespace

int gate_run(const Invocation& invocation) {
    CommandLine line{invocation, "Says whether a command is slower than another, by racing them until it is sure."};
    GateRequest request;
    request.add_to(line.app());
    ExperimentFlags flags{line.app()};
    if (!line.parse())
        return exit_ok;
    flags.read();
    request.check(flags);
    const bench::GateOptions options{
        .at_least = request.at_least / 100, .at_most = request.at_most / 100, .error = flags.error()};
    std::vector<std::unique_ptr<bench::Contender>> contenders;
    contenders.push_back(bench::make_command("base", request.base, flags.reports()));
    contenders.push_back(
        bench::make_command("new", request.self_test ? request.base : request.candidate, flags.reports()));
    InterruptibleExperiment experiment{std::move(contenders), flags.options()};
    const bench::Measurements& measured = experiment.measurements();
    std::vector<std::size_t> rows;
    std::size_t least_rounds = 0;
    std::optional<bench::Gate> gate;
    std::vector<std::vector<double>> rounds;
    const auto prepared = [&](const bench::Measurements&) {
        rows = compared_metrics(measured.metrics);
        least_rounds = request.least_rounds(rows.size(), options);
        if (request.rounds < least_rounds)
            throw UsageError{fmt::format("--rounds {}: {}", request.rounds, too_few_text(least_rounds))};
        gate.emplace(rows.size(), options);
    };
    const bool interrupted = experiment.run(prepared, [&](const bench::Measurements&) {
        rounds.push_back(last_log_ratios(measured, rows));
        const bool decided = gate->add_round(rounds.back()) != bench::GateVerdict::undecided;
        return (decided && !request.self_test) || rounds.size() >= request.rounds ||
               measured.seconds() >= request.minutes * 60;
    });
    if (interrupted)
        return exit_interrupted;
    if (rounds.size() < least_rounds && (request.self_test || gate->verdict() == bench::GateVerdict::undecided))
        throw Failure{fmt::format("gate: no verdict, because --minutes {} allowed {} rounds: {}", request.minutes,
                                  rounds.size(), too_few_text(least_rounds))};

    // Each bound of the table is wrong with the probability with which the gate is.
    ExperimentFlags::Report report = flags.report(measured, 2 * flags.error(), invocation);
    const std::string reason = bench::unfit(measured, request.most_foreign / 100);
    const bool closes = reason.empty() && gate->verdict() == bench::GateVerdict::slower;
    for (bench::Comparison& one : report.comparisons)
        one.is_failure = one.is_failure && closes && one.ratio.median >= 1 + options.at_least && !request.self_test;
    const std::string verdict = reason.empty() ? verdict_text(*gate, measured, rows, request.at_most)
                                               : fmt::format("no verdict, because {}", reason);
    report.document["verdict"] = reason.empty() ? verdict_name(gate->verdict()) : "none";
    report.document["verdict_text"] = verdict;
    if (request.self_test) {
        constexpr std::array planted{0.01, 0.02, 0.05};
        const std::size_t most_rounds = std::min<std::size_t>(rounds.size(), 500);
        const auto power = bench::gate_power(rounds, planted, most_rounds, options);
        report.conclusion = fmt::format("base against itself: {}\n\ngates of up to {} rounds, drawn from these:\n{}",
                                        verdict, most_rounds, to_text(power));
        report.document["self_test"] = to_json(power);
        flags.print(report, measured);
        return exit_ok;
    }
    report.conclusion = verdict;
    flags.print(report, measured);
    const bool passes = reason.empty() && !closes;
    if (request.for_github)
        tell_github(passes, verdict, bench::export_experiment("markdown", measured, report.comparisons));
    if (!reason.empty())
        throw Failure{fmt::format("gate: {}", verdict)};
    return passes ? exit_ok : exit_slower;
}

}   // namespace drawpoint::cli
