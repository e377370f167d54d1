#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <ratio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/experiment.hpp"
#include "cli/gate_counts.hpp"
#include "cli/github.hpp"
#include "cli/option_values.hpp"
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
    std::vector<std::string> files;   ///< rounds; or two whose counts are judged
    bool self_test = false;
    double at_least = 1, at_most = 2, most_foreign = 40;   // in %
    double minutes = 10;
    std::size_t rounds = 200;
    bool for_github = false;

    void add_to(CLI::App& app) {
        app.add_option(
               "FILES", files,
               "in place of --base: one file judges the rounds that `bench --command --json=FILE`, a suite or a gate "
               "wrote; two judge what both count: recordings, or results")
            ->expected(0, -1);
        app.add_option("--base", base, "the command that the new one is to replace")->type_name("COMMAND");
        app.add_option("--new", candidate, "the new command; with FILE: the name of a contender there")
            ->type_name("COMMAND");
        app.add_flag(
            "--self-test", self_test,
            "runs --base against itself, and says how often gates like this one are wrong or miss a slow-down");
        add_number(app, "--at-least", at_least, 0, 99, "% by which new must be slower to fail");
        add_number(app, "--at-most", at_most, 0, 99, "% by which new must surely not be slower to pass early");
        add_number(app, "--minutes", minutes, 0.01, 1e5,
                   "begins no other round after this time, and passes if it is not sure");
        add_number(app, "--rounds", rounds, 1, 10'000, "the same, after this number of rounds");
        add_number(app, "--most-foreign", most_foreign, 0, 100,
                   "gives no verdict if other processes use more than this % of the cores in most rounds");
        app.add_flag("--github", for_github,
                     "prints the verdict as an annotation, and adds the table to $GITHUB_STEP_SUMMARY");
    }

    /// After parsing: throws UsageError.
    void check(const ExperimentFlags& flags) const {
        if (!files.empty() && !base.empty())
            throw UsageError{fmt::format("--base has no place beside {}: the base is {}", files[0],
                                         files.size() == 1 ? "its first contender" : "the first file")};
        if (files.size() > 2)
            throw UsageError{
                fmt::format("unexpected argument '{}': two files are judged, a base and a new one", files[2])};
        if (files.size() == 2 && !candidate.empty())
            throw UsageError{fmt::format("--new has no place beside two files: {} is the new one", files[1])};
        if (files.empty() && base.empty())
            throw UsageError{"--base is missing: the command that the new one is to replace"};
        if (const auto is_blank =
                [](const std::string& line) { return !line.empty() && line.find_first_not_of(" \t") == line.npos; };
            is_blank(base) || is_blank(candidate))
            throw UsageError{fmt::format("{} has no command line", is_blank(base) ? "--base" : "--new")};
        if (self_test && for_github)
            throw UsageError{"--github tells a verdict, and --self-test has none"};
        if (self_test && (!candidate.empty() || !files.empty()))
            throw UsageError{"--self-test races --base against itself: leave out --new, and files"};
        if (files.empty() && !self_test && candidate.empty())
            throw UsageError{"--new is missing: the command to compare with --base"};
        using Form = OutputOptions::Form;
        if (for_github && (flags.form() == Form::json || flags.form() == Form::csv))
            throw UsageError{"--github prints an annotation, which --json and --csv leave no place for"};
        if (at_most <= at_least)
            throw UsageError{fmt::format("--at-most must be above --at-least, got {} and {}", at_most, at_least)};
    }
    [[nodiscard]] bench::GateOptions options(double error) const {
        return {.at_least = at_least / 100, .at_most = at_most / 100, .error = error};
    }
};

/// The metrics that the gate judges: those that both commands measure. Others are named on stderr.
std::vector<std::size_t> judged_metrics(const bench::Measurements& measured) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < measured.metrics.size(); ++i) {
        if (!measured.metrics[i].compared)
            continue;
        const bool of_base = measured.measures[0][i], of_new = measured.measures[1][i];
        if (of_base && of_new)
            rows.push_back(i);
        else if (of_base || of_new)
            complain(fmt::format("gate: only {} measures {}: left out", of_base ? "base" : "new",
                                 printable(measured.metrics[i].name)));
    }
    return rows;
}

/// A gate on the rounds of two contenders.
class Judge {
public:
    /// Throws UsageError if so few rounds cannot be judged.
    Judge(const bench::Measurements& measured, const GateRequest& request, const bench::GateOptions& options)
        : rows_{judged_metrics(measured)}, options_{options}, self_test_{request.self_test} {
        prepare_gate();
        if (request.rounds < least_rounds_)
            throw UsageError{fmt::format("--rounds {}: {}", request.rounds, too_few())};
    }

    /// Takes the rounds that it has not seen, up to its verdict, or, in a self-test, all. Throws Failure if no row is
    /// left. Returns whether there is a verdict.
    bool look(const bench::Measurements& measured) {
        while (rounds_.size() < measured.rounds.size() &&
               (self_test_ || gate_->verdict() == bench::GateVerdict::undecided)) {
            const std::vector<double>& ratios = measured.rounds[rounds_.size()].log_ratios[1];
            leave_out_without_ratio(measured, ratios);
            std::vector<double>& round = rounds_.emplace_back();
            for (const std::size_t metric : rows_)
                round.push_back(ratios[metric]);
            gate_->add_round(round);
        }
        return gate_->verdict() != bench::GateVerdict::undecided;
    }
    [[nodiscard]] bool has_too_few() const {
        return rounds_.size() < least_rounds_ && (self_test_ || gate_->verdict() == bench::GateVerdict::undecided);
    }
    [[nodiscard]] std::string too_few() const {
        return fmt::format("a gate with this --error, or its self-test, needs {}", least_rounds_);
    }
    [[nodiscard]] const bench::Gate& gate() const noexcept { return *gate_; }
    [[nodiscard]] const std::vector<std::size_t>& rows() const noexcept { return rows_; }
    [[nodiscard]] const std::vector<std::vector<double>>& rounds() const noexcept { return rounds_; }
    /// The metric by which new is slower, if the gate says so.
    [[nodiscard]] std::size_t slowest() const { return rows_[gate_->slowest()]; }

private:
    void prepare_gate() {
        if (rows_.empty())
            throw Failure{"gate: there is no metric that both are compared by"};
        least_rounds_ = bench::least_rounds(rows_.size(), options_);
        if (self_test_)   // of fewer no gates can be drawn
            least_rounds_ = std::max<std::size_t>(least_rounds_, 10);
        gate_.emplace(rows_.size(), options_);
    }

    /// A metric by item may have no item in a round that both have a value of. It is left out of the rounds before,
    /// too.
    void leave_out_without_ratio(const bench::Measurements& measured, const std::vector<double>& ratios) {
        const std::size_t rows_before = rows_.size();
        for (std::size_t row = rows_before; row-- > 0;) {
            if (std::isfinite(ratios[rows_[row]]))
                continue;
            complain(fmt::format("gate: {} has no ratio in round {}: left out",
                                 printable(measured.metrics[rows_[row]].name), rounds_.size() + 1));
            rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
            for (std::vector<double>& round : rounds_)
                round.erase(round.begin() + static_cast<std::ptrdiff_t>(row));
        }
        if (rows_.size() == rows_before)
            return;
        prepare_gate();
        for (const std::vector<double>& round : rounds_)
            gate_->add_round(round);
    }

    std::vector<std::size_t> rows_;
    bench::GateOptions options_;
    bool self_test_;
    std::size_t least_rounds_ = 0;
    std::optional<bench::Gate> gate_;
    std::vector<std::vector<double>> rounds_;   // [round][row], log(new / base)
};

std::string verdict_text(const bench::Gate& gate, const bench::Measurements& measured,
                         std::span<const std::size_t> rows, double at_most_percent) {
    const auto percent = [](double log_ratio) { return std::expm1(log_ratio) * 100; };
    if (gate.verdict() == bench::GateVerdict::slower) {
        const Interval found = gate.log_ratio(gate.slowest());
        return fmt::format("slower: {} by {:.1f} %, surely by more than {:.1f} %",
                           printable(measured.metrics[rows[gate.slowest()]].name), percent(found.median),
                           std::max(percent(found.low), 0.0));
    }
    if (gate.verdict() == bench::GateVerdict::not_slower)
        return fmt::format("not slower: surely by less than {} %", at_most_percent);
    std::string text = "not separated:";
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const Interval found = gate.log_ratio(row);
        text += fmt::format("{} {} {:+.1f} %, ", row == 0 ? "" : ";", printable(measured.metrics[rows[row]].name),
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

/// Reports what a gate says of rounds, and returns the exit code.
int conclude(const Judge& judge, const bench::Measurements& measured, const GateRequest& request,
             const ExperimentFlags& flags, const Invocation& invocation) {
    const bench::Gate& gate = judge.gate();
    // Each bound of the table is wrong with the probability with which the gate is.
    ExperimentFlags::Report report = flags.report(measured, 2 * flags.error(), invocation);
    const std::vector<std::string> differing = bench::differing_parts(measured, 1);
    const std::string reason = printable(differing.empty() ? bench::unfit(measured) : differing.front());
    const bool closes = reason.empty() && gate.verdict() == bench::GateVerdict::slower;
    for (bench::Comparison& one : report.comparisons)
        one.is_failure =
            closes && !request.self_test &&
            (one.metric == judge.slowest() || (one.is_failure && one.ratio.median >= 1 + request.at_least / 100));
    const std::string verdict = reason.empty() ? verdict_text(gate, measured, judge.rows(), request.at_most)
                                               : fmt::format("no verdict, because {}", reason);
    report.document["verdict"] = reason.empty() ? verdict_name(gate.verdict()) : "none";
    report.document["verdict_text"] = verdict;
    if (request.self_test && !differing.empty())   // it has stopped before it could know its power
        throw Failure{fmt::format("gate: {}", verdict)};
    if (request.self_test) {
        constexpr std::array planted{0.01, 0.02, 0.05};
        const std::size_t most_rounds = std::min<std::size_t>(judge.rounds().size(), 500);
        const auto power = bench::gate_power(judge.rounds(), planted, most_rounds, request.options(flags.error()));
        report.conclusion = fmt::format("base against itself: {}\n\ngates of up to {} rounds, drawn from these:\n{}",
                                        verdict, most_rounds, to_text(power));
        report.document["self_test"] = to_json(power);
        return flags.print(report, measured) ? exit_ok : exit_failed;
    }
    report.conclusion = verdict;
    const bool is_written = flags.print(report, measured);
    const bool passes = reason.empty() && !closes;
    const bool is_told =
        !request.for_github ||
        tell_github(passes, verdict, bench::export_experiment("markdown", measured, report.comparisons));
    if (!reason.empty())
        throw Failure{fmt::format("gate: {}", verdict)};
    return closes ? exit_slower : is_written && is_told ? exit_ok : exit_failed;
}

/// Reports what was measured until an interrupt.
void report_interrupted(const bench::Measurements& measured, ExperimentFlags& flags, const Invocation& invocation) {
    if (measured.rounds.empty())
        return;
    ExperimentFlags::Report report = flags.report(measured, 2 * flags.error(), invocation);
    for (bench::Comparison& one : report.comparisons)
        one.is_failure = false;
    report.conclusion = "no verdict, because it was interrupted";
    report.document["verdict"] = "none";
    report.document["verdict_text"] = report.conclusion;
    (void)flags.print(report, measured);
}

/// The rounds of a file, with two of its contenders: the first one, and the one that --new names.
bench::Measurements recorded_rounds(const GateRequest& request) {
    bench::Measurements measured;
    try {
        std::ifstream file{request.files[0], std::ios::binary};
        if (!file)
            throw std::runtime_error{std::generic_category().message(errno)};
        measured = bench::measurements_from_json(nlohmann::json::parse(file));
    } catch (const std::exception& error) {
        throw Failure{fmt::format("{}: {}", request.files[0], error.what())};
    }
    const auto& names = measured.contenders;
    if (names.size() < 2)
        throw Failure{fmt::format("{}: it has only one contender", request.files[0])};
    if (names.size() > 2 && request.candidate.empty())
        throw UsageError{
            fmt::format("--new is missing: {} has the contenders {}", request.files[0], fmt::join(names, ", "))};
    const std::vector<std::string_view> others{names.begin() + 1, names.end()};
    const std::size_t candidate = request.candidate.empty() ? 1 : position_in(others, "--new", request.candidate) + 1;
    if (!measured.not_run[candidate].empty())
        throw Failure{fmt::format("{}: not run: {}", request.files[0], measured.not_run[candidate])};
    return measured.pair(candidate);
}

/// Races two commands until the gate is sure. Returns whether it was interrupted.
bool race(bench::InterruptibleExperiment& experiment, std::optional<Judge>& judge, const GateRequest& request,
          const bench::GateOptions& options) {
    const auto prepared = [&](const bench::Measurements& measured) { judge.emplace(measured, request, options); };
    const auto begin = std::chrono::steady_clock::now();
    return run(experiment, prepared, [&](const bench::Measurements& measured) {
        const std::chrono::duration<double, std::ratio<60>> minutes = std::chrono::steady_clock::now() - begin;
        const bool decided = (judge->look(measured) && !request.self_test) || !differing_parts(measured, 1).empty();
        return decided || measured.rounds.size() >= request.rounds || minutes.count() >= request.minutes;
    });
}

}   // namespace

int gate_run(const Invocation& invocation) {
    CommandLine line{
        invocation,
        "Says whether a command is slower than another, by racing them until it is sure, or whether a file counts "
        "more than another."};
    GateRequest request;
    request.add_to(line.app());
    ExperimentFlags flags{line.app()};
    if (!line.parse())
        return exit_ok;
    flags.read();
    request.check(flags);
    for (const std::string& file : request.files)
        flags.check_not_written(file);
    if (request.files.size() == 2)
        return gate_counts(request.files[0], request.files[1], flags.error(), request.for_github,
                           flags.output_without_exports(), invocation);
    const bench::GateOptions options = request.options(flags.error());
    if (request.files.size() == 1) {
        bench::Measurements measured = recorded_rounds(request);
        measured.most_foreign = request.most_foreign / 100;
        request.rounds = std::max(request.rounds, measured.rounds.size());
        Judge judge{measured, request, options};
        judge.look(measured);
        if (judge.has_too_few())
            throw Failure{fmt::format("gate: no verdict, because {} has {} rounds: {}", request.files[0],
                                      judge.rounds().size(), judge.too_few())};
        measured.rounds.resize(judge.gate().rounds());   // those that it took, as in a race
        return conclude(judge, measured, request, flags, invocation);
    }
    std::vector<std::unique_ptr<bench::Contender>> contenders;
    contenders.push_back(bench::make_command("base", request.base, flags.reports()));
    contenders.push_back(
        bench::make_command("new", request.self_test ? request.base : request.candidate, flags.reports()));
    bench::ExperimentOptions turns = flags.options();
    turns.has_equal_turns = true;
    turns.most_foreign = request.most_foreign / 100;
    bench::InterruptibleExperiment experiment{std::move(contenders), turns};
    std::optional<Judge> judge;
    try {
        if (race(experiment, judge, request, options)) {
            report_interrupted(experiment.measurements(), flags, invocation);
            return exit_interrupted;
        }
    } catch (const Failure& failure) {   // before the first round
        if (request.for_github)
            (void)tell_github(false, fmt::format("no verdict, because {}", failure.what()), "");
        flags.write_failure(experiment.measurements());
        throw;
    }
    bench::Measurements measured = experiment.measurements();
    if (measured.failure.empty() && judge->has_too_few() && differing_parts(measured, 1).empty())
        measured.failure = fmt::format("--minutes {} allowed {} rounds: {}", request.minutes, judge->rounds().size(),
                                       judge->too_few());
    return conclude(*judge, measured, request, flags, invocation);
}

}   // namespace drawpoint::cli
