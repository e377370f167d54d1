#include "score.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <random>

#include <fmt/format.h>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "baselines.hpp"

namespace drawpoint::bench {
namespace {

/// The real gain of settings, of the truth where it has them, else measured now, once each.
class RealGains {
public:
    RealGains(const Case& of, const Truth& truth, Rig& rig) : of_{&of}, truth_{&truth}, rig_{&rig} {}

    [[nodiscard]] double of(const LoaderSetting& setting) {
        if (setting == of_->setting)
            return 0;
        if (const std::optional<std::string> key = key_of(of_->setting, setting))
            if (const MeasuredGain* const measured = truth_->find(*key))
                return measured->gain.median;
        if (const std::optional<double> gain = of_grid(setting))
            return *gain;
        Case other = *of_;
        other.setting = setting;
        if (!fits_memory(other))
            return 0;   // the loader refuses it: nothing changes
        for (const auto& [known, gain] : measured_)
            if (known == setting)
                return gain;
        measured_.emplace_back(setting, measure_gain(*of_, setting, *rig_, 2).median);
        return measured_.back().second;
    }

    [[nodiscard]] double best() const {
        double best = 0;
        for (const MeasuredGain& measured : truth_->gains)
            if (can_be_set(measured.key))
                best = std::max(best, measured.gain.median);
        return best;
    }

private:
    /// Of the truth's grid, where nothing but its two numbers differs.
    [[nodiscard]] std::optional<double> of_grid(const LoaderSetting& setting) const {
        LoaderSetting other = of_->setting;
        other.num_workers = setting.num_workers;
        other.prefetch_depth = setting.prefetch_depth;
        const auto rate = [&](const LoaderSetting& at) -> double {
            for (const MeasuredCell& cell : truth_->grid)
                if (cell.num_workers == at.num_workers && cell.prefetch_depth == at.prefetch_depth)
                    return cell.batches_per_s.median;
            return 0;
        };
        if (!(other == setting) || rate(setting) <= 0 || rate(of_->setting) <= 0)
            return std::nullopt;
        return rate(setting) / rate(of_->setting) - 1;
    }

    const Case* of_;
    const Truth* truth_;
    Rig* rig_;
    std::vector<std::pair<LoaderSetting, double>> measured_;
};

constexpr std::uint32_t recorded_samples = 1;   // the truth has those of set 0: nobody records tomorrow's

/// The file that says why there is no recording.
std::filesystem::path failure_of(std::filesystem::path recording) { return recording.replace_extension(".failed"); }

Ledger recording_of(const Case& of, Rig& rig, const ScoreOptions& options) {
    CaseRunOptions running{
        .passes = of.kind == "adversarial" ? 1 : options.passes, .recording = {}, .neighbour = options.neighbour};
    if (!options.recordings.empty()) {
        // Of this case as it is, recorded like this.
        const std::filesystem::path kept =
            options.recordings / fmt::format("{}-{:016x}-{}-{:g}-{}.pftrace", of.name, of.digest, running.passes,
                                             options.neighbour, recorded_samples);
        if (std::filesystem::exists(kept))
            return recorded_case(of, kept);
        if (const auto failed = failure_of(kept); std::filesystem::exists(failed))
            throw std::runtime_error{read_text(failed)};
        std::filesystem::create_directories(options.recordings);
        running.recording = kept.string() + ".part";
        if (std::filesystem::exists(running.recording)) {
            const std::string died = "the program ended while it recorded this case";
            write_text(failure_of(kept), died);
            throw std::runtime_error{died};
        }
    }
    Case recorded = of;
    recorded.sample_set = recorded_samples;
    Ledger ledger;
    try {
        ledger = run_case(recorded, rig, running).ledger;
    } catch (const std::exception& error) {
        if (!options.recordings.empty())   // there is no second chance
            write_text(failure_of(std::filesystem::path{running.recording}.replace_extension()), error.what());
        throw;
    }
    if (!options.recordings.empty())   // whole, or not there
        std::filesystem::rename(running.recording, std::filesystem::path{running.recording}.replace_extension());
    return ledger;
}

void ask_ours(Scored& scored, const Ledger& ledger, const ScoreOptions& options) {
    const Diagnosis diagnosis = diagnose(ledger);
    Answer answer{.rule = "drawpoint", .verdict = diagnosis.verdict, .abstained = diagnosis.abstained};
    if (diagnosis.advice)
        answer.advice = diagnosis.advice->setting;
    scored.answers.push_back(std::move(answer));
    const Intervention* largest = nullptr;
    for (const Intervention& change : diagnosis.interventions) {   // the largest gain comes first
        if (change.lever == Lever::cores)
            continue;
        if (!largest)
            largest = &change;
        else if (!scored.gap && change.verdict != largest->verdict)
            scored.gap = 100 * (largest->gain.median - change.gain.median);
    }
    if (scored.truth)
        scored.speed = diagnosis.batches_per_s / scored.truth->batches_per_s.median;
    if (!scored.truth)
        return;
    const bool is_alone = options.neighbour <= 0;
    for (const Intervention& intervention : diagnosis.interventions)
        if (const MeasuredGain* const real = scored.truth->find(intervention.key());
            real && is_alone && !diagnosis.abstained)
            scored.gains.push_back({intervention.key(), intervention.gain, real->gain.median});
    if (scored.truth->grid.empty())
        return;
    RecordedRun run = steady_run(ledger);
    if (!run.unusable.empty())
        return;
    if (!is_alone) {   // what is predicted is the run without the neighbour
        const double as_it_was = predict(run, run.setting).batches_per_s.median;
        run.foreign_cores = run.foreign_cores_spread = 0;
        run.batches_per_s *= predict(run, run.setting).batches_per_s.median / as_it_was;
    }
    const Whatif predicted =
        whatif(run, {.num_workers = scored.of.grid_workers, .prefetch_depth = scored.of.grid_depths});
    for (const MeasuredCell& cell : scored.truth->grid)
        for (const WhatifRow& row : predicted.rows) {
            if (row.recorded || row.setting.num_workers != cell.num_workers ||
                row.setting.prefetch_depth != cell.prefetch_depth)   // only what was never run
                continue;
            const std::string setting = to_string(row.setting);
            scored.cells.push_back({setting, row.prediction.batches_per_s, cell.batches_per_s.median});
            const auto peak = static_cast<double>(row.prediction.peak_bytes);
            scored.peaks.push_back({setting, {peak, peak, peak}, static_cast<double>(cell.peak_bytes)});
        }
}

/// The truth in the confusion matrix: what was said if that is right, else what gains most.
std::string_view true_word(const Scored& scored, const Answer& said) {
    const Truth& truth = *scored.truth;
    if (!said.declined() && truth.verdicts.contains(said.verdict))
        return to_string(said.verdict);
    if (!truth.gains.empty() && !truth.changes.empty())
        for (const Verdict verdict : verdicts_of(scored.of, truth.gains.front().key))
            return to_string(verdict);
    return truth.verdicts.empty() ? "none" : to_string(*truth.verdicts.begin());
}

/// The 95 % interval of the mean error of settings' rates, by drawing cases: the settings of one case are alike.
std::optional<std::pair<double, double>> interval_of_mean_error(const std::vector<Scored>& all) {
    std::vector<std::pair<double, double>> sums;   // of each case: of its errors, and their number
    for (const Scored& scored : all) {
        std::pair<double, double> sum{};
        for (const Predicted& cell : scored.cells)
            sum = {sum.first + cell.error(), sum.second + 1};
        if (sum.second > 0)
            sums.push_back(sum);
    }
    if (sums.empty())
        return std::nullopt;
    std::mt19937_64 random{1};
    std::vector<double> means(2000);
    for (double& mean : means) {
        double errors = 0, count = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            const auto& [error, number] = sums[random() % sums.size()];
            errors += error;
            count += number;
        }
        mean = errors / count;
    }
    return std::pair{statistics::quantile(means, 0.025), statistics::quantile(means, 0.975)};
}

}   // namespace

void record_case(const Case& of, Rig& rig, const ScoreOptions& options) { (void)recording_of(of, rig, options); }

bool Answer::declined() const noexcept {
    return abstained.has_value() || verdict == Verdict::undecided || verdict == Verdict::interference;
}

bool Scored::is_right(const Answer& answer) const {
    if (!truth || answer.abstained)
        return false;
    const bool is_ours = &answer == answers.data();
    return truth->verdicts.contains(answer.verdict) ||
           (!is_ours && answer.verdict == Verdict::read_latency && truth->verdicts.contains(Verdict::read_bandwidth));
}

bool Answer::names_a_cause() const noexcept {
    return !declined() && verdict != Verdict::compute_bound && verdict != Verdict::balanced &&
           verdict != Verdict::warm_up;
}

Scored score_case(const Case& of, const std::optional<Truth>& truth, Rig& rig, const ScoreOptions& options) {
    Scored scored{.of = of, .truth = truth};
    Ledger ledger;
    try {
        ledger = recording_of(of, rig, options);
        ask_ours(scored, ledger, options);
        if (options.neighbour > 0)
            scored.speed = 0;
    } catch (const std::exception& error) {
        scored.error = error.what();
        scored.answers.resize(1);
        scored.answers.front() = {.rule = "drawpoint", .abstained = scored.error};
    }
    if (ledger.steps.empty()) {   // there is no recording to judge, and the setting stays
        if (scored.truth)
            scored.answers.front().regret = RealGains{of, *scored.truth, rig}.best();
        return scored;
    }
    const RunFigures figures = figures_of(ledger, warm_up_steps(of), usable_cores());
    for (const Rule& rule : rules()) {
        RuleAnswer said = rule.answer(figures);
        scored.answers.push_back({.rule = std::string{rule.name}, .verdict = said.verdict, .advice = said.advice});
    }
    if (!scored.truth)
        return scored;
    const double measured_rate = 1e6 / std::max(figures.draw_us + figures.compute_us, 1e-3);
    for (const MeasuredCell& cell : scored.truth->grid) {
        LoaderSetting setting = of.setting;
        setting.num_workers = cell.num_workers;
        setting.prefetch_depth = cell.prefetch_depth;
        if (options.neighbour > 0 ||   // which this rule knows nothing of
            std::ranges::find(scored.cells, to_string(setting), &Predicted::what) == scored.cells.end())
            continue;   // both predict the same
        const double rate = measured_rate * one_line_step_us(figures) / one_line_step_us(figures, setting);
        scored.one_line_cells.push_back({to_string(setting), {rate, rate, rate}, cell.batches_per_s.median});
    }
    if (!scored.truth->grid.empty() && options.tunes && options.neighbour <= 0) {
        try {
            scored.tuned = tune_case(of, *scored.truth, rig);
        } catch (const std::exception& error) {
            scored.tuning_failed = true;
            scored.error = fmt::format("not tuned: {}", error.what());
        }
    }
    RealGains gains{of, *scored.truth, rig};
    try {
        for (Answer& answer : scored.answers) {
            const double gain = answer.advice ? gains.of(*answer.advice) : 0;
            answer.real_gain = gain;
            answer.regret = gains.best() - gain;
        }
    } catch (const std::exception& error) {   // e.g. a setting that the loader refuses
        scored.error = fmt::format("an advised setting could not be measured: {}", error.what());
    }
    return scored;
}

namespace {

/// What the setting that a tuner starts from loses against the best of the grid, as `TunedCase::regret`.
double regret_of_start(const Truth& truth) {
    double best = truth.batches_per_s.median;
    for (const MeasuredCell& cell : truth.grid)
        best = std::max(best, cell.batches_per_s.median);
    return best > 0 ? 1 - truth.batches_per_s.median / best : 0;
}

}   // namespace

Score score_of(std::vector<Scored> all) {
    Score score;
    for (const Scored& scored : all) {
        ++score.cases;
        const bool adversarial = scored.of.kind == "adversarial";
        if (!adversarial && !scored.truth)
            ++score.not_measured;
        for (const Answer& answer : scored.answers) {
            auto found = std::ranges::find(score.rules, answer.rule, &RuleScore::rule);
            if (found == score.rules.end())
                found = score.rules.insert(found, RuleScore{.rule = answer.rule});
            if (adversarial) {
                const bool is_ours = &answer == &scored.answers.front();
                found->abstained_correctly.count(answer.declined() && !(is_ours && !scored.error.empty()));
                continue;
            }
            if (!scored.truth)
                continue;
            found->right.count(scored.is_right(answer));
            found->abstained_wrongly.count(answer.declined());
            if (is_control(*scored.truth))
                found->false_alarms.count(answer.names_a_cause());
            if (answer.regret)
                found->regrets.push_back(*answer.regret);
        }
        if (scored.truth && !scored.answers.empty()) {
            const Answer& ours = scored.answers.front();
            const std::string_view said = ours.declined() ? "abstained" : to_string(ours.verdict);
            ++score.confusion[{std::string{true_word(scored, ours)}, std::string{said}}];
            score.right_words += scored.truth->verdicts.size();
            if (scored.gap)
                score.right_by_gap[*scored.gap < 5 ? 0 : *scored.gap < 15 ? 1 : 2].count(scored.is_right(ours));
        }
        for (const Predicted& cell : scored.cells) {
            score.whatif_errors.push_back(cell.error());
            score.intervals.count(cell.covered());
            if (scored.speed > 0)
                score.ratio_errors.push_back(std::abs(cell.predicted.median / scored.speed - cell.real) / cell.real);
        }
        for (const Predicted& cell : scored.one_line_cells)
            score.one_line_errors.push_back(cell.error());
        for (const Predicted& peak : scored.peaks)
            score.peak_errors.push_back(peak.error());
        if (scored.tuning_failed) {   // it came to nothing, in no time, and the setting stays
            score.tuner_regrets.push_back(regret_of_start(*scored.truth));
            score.tuner_in_time.count(false);
            if (scored.of.setting.memory_budget != 0)
                score.budgets_kept.count(false);
        }
        if (const auto& tuned = scored.tuned) {
            constexpr double large_effect = 0.05;
            constexpr std::size_t large_effect_steps = 400, most_steps = 1000;
            score.tuner_regrets.push_back(tuned->regret);
            score.tuner_steps.push_back(static_cast<double>(tuned->steps_used));
            score.tuner_in_time.count(tuned->steps_used <=
                                      (tuned->effect > large_effect ? large_effect_steps : most_steps));
            if (const std::uint64_t budget = scored.of.setting.memory_budget; budget != 0)
                score.budgets_kept.count(tuned->peak_bytes <= budget);
        }
        for (const Predicted& gain : scored.gains) {
            score.gain_errors.push_back(std::abs(gain.predicted.median - gain.real));
            score.gain_intervals.count(gain.covered());
        }
    }
    score.whatif_error_mean = interval_of_mean_error(all);
    score.scored = std::move(all);
    return score;
}

}   // namespace drawpoint::bench
