#include <drawpoint/diagnosis/verdict/verdict.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnosis/demands/wake_times.hpp"
#include "diagnosis/verdict/evidence.hpp"
#include "diagnosis/verdict/interventions.hpp"
#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>

namespace drawpoint {
namespace {

constexpr std::size_t least_steps = 50;
constexpr std::size_t least_timed = 30;    // of these steps, on a device
constexpr double least_change = 1.25;      // factor between a step's time in the warm-up and after it that is no noise
constexpr double most_unexplained = 0.1;   // of a step's time
constexpr double least_exposed = 0.02;     // of a device's time, that waiting for data costs if it is not compute-bound
constexpr double most_warm_up = 0.45;      // share of the steps; the search for its end covers half of them

/// No verdict, and why.
struct Abstention {
    Verdict verdict = Verdict::undecided;
    std::string reason{};
    std::size_t more_steps_needed = 0;
};

void abstain(Diagnosis& diagnosis, Abstention abstention) {
    diagnosis.verdict = abstention.verdict;
    diagnosis.abstained = std::move(abstention.reason);
    diagnosis.more_steps_needed = abstention.more_steps_needed;
}

Abstention needs_more_steps(std::size_t more, std::string_view why) {
    return {.reason = fmt::format("needs {} more step{}: {}", more, more == 1 ? "" : "s", why),
            .more_steps_needed = more};
}

Abstention cannot_be_replayed(std::string_view why) {
    return {.reason = fmt::format("the run cannot be replayed: {}", why)};
}

/// Of those that are replayed: other loaders' are not, nor what came before the last change of the setting.
std::optional<Abstention> too_few_steps(const Evidence& found, const RecordedRun& run) {
    const std::size_t replayed = run.unusable.empty() ? std::min(found.steps, run.steps.size()) : found.steps;
    if (replayed >= least_steps)
        return std::nullopt;
    return needs_more_steps(
        least_steps - replayed,
        fmt::format("{} came after the {}, {} are the least", replayed,
                    replayed < found.steps
                        ? fmt::format("warm-up of {} and the last change of its setting", run.pipeline)
                        : "warm-up",
                    least_steps));
}

/// A run that becomes steady this late may not be steady yet, unless it was the prefetch window that had to fill.
std::optional<Abstention> too_long_a_warm_up(const Evidence& found, const RecordedRun& run) {
    const std::size_t warm_up = found.all_steps - found.steps;
    const double all = static_cast<double>(warm_up) / most_warm_up;
    const double slower =
        (found.all_wall_s - found.wall_s) / static_cast<double>(std::max<std::size_t>(warm_up, 1)) / found.mean_step_s;
    if (warm_up <= run.setting.prefetch_depth || static_cast<double>(found.all_steps) >= all ||
        (slower <= least_change && slower >= 1 / least_change))
        return std::nullopt;
    return needs_more_steps(static_cast<std::size_t>(std::ceil(all)) - found.all_steps,
                            fmt::format("the warm-up took {} of {}", warm_up, found.all_steps));
}

std::optional<Abstention> distrust(const Trust& trust) {
    if (trust.trusted)
        return std::nullopt;
    const bool outside = std::ranges::any_of(trust.reasons, is_interference, &Doubt::reason);
    return Abstention{.verdict = outside ? Verdict::interference : Verdict::undecided,
                      .reason = fmt::format("the recording is not trustworthy: {}", fmt::join(trust.texts(), "; "))};
}

/// A replay that is wrong about the recorded setting says nothing about others.
std::optional<Abstention> replay_is_off(const Diagnosis& diagnosis) {
    if (std::abs(diagnosis.unexplained) <= most_unexplained)
        return std::nullopt;
    return Abstention{
        .reason = fmt::format("the replay of the recorded setting makes {:.3g} batches/s where {:.3g} were measured: "
                              "{}",
                              diagnosis.replayed_batches_per_s, diagnosis.batches_per_s,
                              diagnosis.unexplained > 0 ? "something unrecorded limited the run"
                                                        : "the run was faster than its own records allow")};
}

/// The first reason to give no verdict that is known before anything is predicted.
std::optional<Abstention> abstention(const SteadyRun& steady, const Evidence& found) {
    if (auto few = too_few_steps(found, steady.run))
        return few;
    if (auto late = too_long_a_warm_up(found, steady.run))
        return late;
    if (auto doubt = distrust(steady.trust))
        return doubt;
    const bool on_device = found.device.steps > 0 || steady.run.device_buffers != 0;
    if (on_device && found.device.steps < least_timed)
        return needs_more_steps(found.steps * (least_timed - found.device.steps) /
                                    std::max<std::size_t>(found.device.steps, 1),
                                fmt::format("{} of the steady steps were timed on the device, {} are the least",
                                            found.device.steps, least_timed));
    if (!steady.run.unusable.empty() && (found.device.steps == 0 || found.data_share() >= least_exposed))
        return cannot_be_replayed(steady.run.unusable);
    return std::nullopt;
}

/// As many replications, of as many steps, as `replays` of them can afford within `most_samples`.
PredictOptions within(const DiagnosisOptions& options, const RecordedRun& run, std::size_t replays) {
    constexpr std::size_t least_steps_replayed = 40, least_replications = 6;
    PredictOptions predict = options.predict;
    const std::size_t recorded = predict.steps > 0 ? predict.steps : std::max<std::size_t>(1, run.steps.size());
    const std::size_t least = std::min(least_steps_replayed, recorded);
    const std::size_t affordable =   // steps, of all replications of one replay
        options.most_samples / std::max<std::size_t>(1, replays * std::max<std::size_t>(1, run.setting.batch_size));
    predict.replications = std::clamp(affordable / (predict.warm_up_steps + least),
                                      std::min(least_replications, predict.replications), predict.replications);
    const std::size_t each = affordable / std::max<std::size_t>(1, predict.replications);
    predict.steps = std::clamp(each - std::min(each, predict.warm_up_steps), least, recorded);
    return predict;
}

/// Predicts all changes with a few replications, and again with all replications those that may gain most.
void predict_gains(std::vector<Intervention>& changes, const RecordedRun& run, const DiagnosisOptions& options) {
    constexpr std::size_t few = 6, finalists = 6;
    constexpr std::size_t baseline = 1;   // what all gains are measured against
    PredictOptions predict =
        within(options, run,
               changes.size() * few / std::max<std::size_t>(1, options.predict.replications) + finalists + baseline);
    const std::size_t all = predict.replications;
    const std::vector<double> recorded = recorded_rates(run, predict);
    predict.replications = std::min(few, all);
    const auto by_gain = [](const Intervention& change) { return -change.gain.median; };
    const auto predicted = [&](Intervention& change) {
        change.gain = predict_gain(run, change.setting, change.what, predict, recorded);
    };
    std::ranges::for_each(changes, predicted);
    std::ranges::stable_sort(changes, {}, by_gain);
    predict.replications = all;
    if (all > few)
        for (std::size_t i = 0; i < std::min(finalists, changes.size()); ++i)
            if (changes[i].gain.high >= options.least_gain)
                predicted(changes[i]);
    std::ranges::stable_sort(changes, {}, by_gain);
}

/// The share of the wall time that was lost because the loop resumed late although its batch was there: as much of the
/// late resumptions as the replay, in which there are none, is too fast. A loop that had to wait anyway lost nothing.
double late_share(const Evidence& found, double unexplained) {
    const double least_s = 1e-9 * longest_wake_ns * static_cast<double>(found.steps);
    if (found.handoff_s <= least_s || found.handoff_s < 0.1 * found.draw_s || found.handoff_s >= found.wall_s)
        return 0;
    return std::clamp(unexplained, 0.0, found.handoff_s / found.wall_s);
}

/// What it costs that the loop resumed late. Measured; needs no replay.
std::optional<Intervention> delivery(double late, const RecordedRun& run) {
    if (late <= 0)
        return std::nullopt;
    const double gain = late / (1 - late);
    return Intervention{.lever = Lever::delivery,
                        .stage = {},
                        .change = "the loop resumes as soon as its batch is there",
                        .verdict = Verdict::delivery,
                        .setting = run.setting,
                        .what = {},
                        .gain = {gain, gain, gain}};   // measured, not predicted
}

/// Whether it gains enough, and gains anything in four cases out of five: the 90 % interval reaches 1.64 standard
/// deviations down.
bool is_cause(const Intervention& change, const DiagnosisOptions& options) {
    return change.gain.median > options.least_gain && change.gain.low > -change.gain.median;
}

bool is_of_the_loop(Lever lever) noexcept { return lever == Lever::compute || lever == Lever::no_sync; }

/// What it says of the loop if a faster step gains most.
Verdict cause_of_compute(const std::vector<Intervention>& changes, const RecordedRun& run,
                         const DiagnosisOptions& options) {
    if (std::ranges::any_of(changes, [&](const Intervention& change) {
            return change.lever == Lever::no_sync && is_cause(change, options);
        }))
        return Verdict::synchronised;
    const auto launch_bound =
        std::ranges::count_if(run.steps, [](const StepDemand& step) { return step.device.is_launch_bound; });
    return 2 * static_cast<std::size_t>(launch_bound) > run.steps.size() ? Verdict::launch_bound
                                                                         : Verdict::compute_bound;
}

void name_the_cause(Diagnosis& diagnosis, const Evidence& found, const DiagnosisOptions& options) {
    const auto counts = [&](const Intervention& change) {
        return change.lever != Lever::cores && is_cause(change, options);   // nobody has more cores
    };
    const auto& all = diagnosis.interventions;
    const auto top = std::ranges::find_if(all, counts);   // the largest gain comes first
    if (top == all.end()) {
        const bool unclear = std::ranges::any_of(all, [&](const Intervention& change) {
            return change.lever != Lever::cores && change.gain.median > 2 * options.least_gain;
        });
        diagnosis.verdict = Verdict::balanced;
        if (unclear)   // half the width takes four times the steps
            abstain(diagnosis, needs_more_steps(3 * diagnosis.steady_steps, "no change's gain is known well enough"));
        return;
    }
    diagnosis.verdict = top->verdict;
    bool loader = false, compute = is_of_the_loop(top->lever);
    for (auto change = top + 1; change != all.end(); ++change) {
        if (!counts(*change) || change->gain.median < top->gain.median - options.tie_points)
            continue;
        (is_of_the_loop(change->lever) ? compute : loader) = true;
        if (change->verdict != diagnosis.verdict &&
            std::ranges::find(diagnosis.co_verdicts, change->verdict) == diagnosis.co_verdicts.end())
            diagnosis.co_verdicts.push_back(change->verdict);
    }
    loader = loader || !is_of_the_loop(top->lever);
    if (loader && compute && found.data_share() <= 0.1) {
        diagnosis.co_verdicts.insert(diagnosis.co_verdicts.begin(), diagnosis.verdict);
        diagnosis.verdict = Verdict::balanced;
    }
    const double warm_up_s = found.all_draw_s - found.draw_s;
    if (is_of_the_loop(top->lever) && diagnosis.verdict != Verdict::balanced && found.data_share() < 0.03 &&
        warm_up_s > 0.7 * found.all_draw_s && warm_up_s > 0.1 * found.all_wall_s)
        diagnosis.verdict = Verdict::warm_up;
}

/// Whether the change can be made by a user, although it is no setting.
bool can_be_made(Lever lever) noexcept {
    return lever == Lever::stage || lever == Lever::read || lever == Lever::collate || lever == Lever::transfer ||
           lever == Lever::sampler || lever == Lever::delivery || lever == Lever::uint8 || lever == Lever::pinned ||
           lever == Lever::no_sync;
}

/// Advises the cheapest of the settings whose gains tie with the largest; if none gains, the part of the loader to
/// speed up, or the wait to leave out.
void advise(Diagnosis& diagnosis, const DiagnosisOptions& options) {
    const Intervention* best = nullptr;
    double most = 0;
    for (const Intervention& change : diagnosis.interventions)   // the largest gain comes first
        if (change.can_be_set() && is_cause(change, options)) {
            most = std::max(most, change.gain.median);
            if (!best || (change.gain.median >= most - options.tie_points && change.lever < best->lever))   // cheaper
                best = &change;
        }
    if (!best)
        for (const Intervention& change : diagnosis.interventions)
            if (!best && can_be_made(change.lever) && is_cause(change, options))
                best = &change;
    if (best)
        diagnosis.advice = *best;
}

/// What is measured, whether or not there will be a verdict.
Diagnosis measured(const Ledger& ledger, const SteadyRun& steady, const Evidence& found) {
    Diagnosis diagnosis;
    diagnosis.blame = steady.blame;
    diagnosis.blame_rows = blame_table(ledger, steady.blame);
    diagnosis.steady_steps = found.steps;
    diagnosis.draw_share = found.draw_share();
    diagnosis.batches_per_s = found.wall_s > 0 ? static_cast<double>(found.steps) / found.wall_s : 0;
    diagnosis.interference = steady.interference;
    diagnosis.trust = steady.trust;
    return diagnosis;
}

/// Fills in every change with its predicted gain, the largest gain first. `late`: of the wall time.
void weigh(Diagnosis& diagnosis, const SteadyRun& steady, const Evidence& found, double late,
           const DiagnosisOptions& options) {
    const Traits traits{.bandwidth = steady.line || found.reads_grow_with_bytes,
                        .bursty_compute =
                            found.compute_variation > 0.5 && found.compute_variation > found.sample_variation};
    std::vector<Intervention> changes = unit_interventions(steady.run, traits);
    predict_gains(changes, steady.run, options);
    const Verdict of_compute = cause_of_compute(changes, steady.run, options);
    for (Intervention& change : changes)
        if (change.lever == Lever::compute)
            change.verdict = of_compute;
    if (auto resumes = delivery(late, steady.run)) {
        changes.push_back(std::move(*resumes));
        std::ranges::stable_sort(changes, std::ranges::greater{},
                                 [](const Intervention& change) { return change.gain.median; });
    }
    diagnosis.interventions = std::move(changes);
}

/// Weighs the changes, names the cause and advises, or abstains.
void decide(Diagnosis& diagnosis, const SteadyRun& steady, const Evidence& found, const DiagnosisOptions& options) {
    diagnosis.batches_per_s = steady.run.batches_per_s;
    diagnosis.replayed_batches_per_s = steady.replayed_batches_per_s;
    diagnosis.assumed_of_scheduler = steady.run.scheduler.assumed;
    double late = 0;
    if (steady.replayed_batches_per_s > 0) {
        diagnosis.unexplained = 1 - steady.run.batches_per_s / steady.replayed_batches_per_s;
        diagnosis.unexplained -= late = late_share(found, diagnosis.unexplained);
    }
    if (auto off = replay_is_off(diagnosis))
        return abstain(diagnosis, std::move(*off));
    try {
        weigh(diagnosis, steady, found, late, options);
    } catch (const std::invalid_argument& error) {
        return abstain(diagnosis, cannot_be_replayed(error.what()));
    }
    name_the_cause(diagnosis, found, options);
    if (!diagnosis.abstained)
        advise(diagnosis, options);
}

}   // namespace

Diagnosis diagnose(const Ledger& ledger, const DiagnosisOptions& options) {
    const SteadyRun steady = prepare(ledger);
    const Evidence found = evidence_of(ledger, steady);
    Diagnosis diagnosis = measured(ledger, steady, found);
    if (auto none = abstention(steady, found))
        abstain(diagnosis, std::move(*none));
    else if (!steady.run.unusable.empty())
        diagnosis.verdict = Verdict::compute_bound;   // measured: the loader has nothing to gain
    else
        decide(diagnosis, steady, found, options);
    if (diagnosis.advice)
        diagnosis.how_to_refute = how_to_refute(ledger, *diagnosis.advice, options.defaults);
    diagnosis.evidence = evidence_text(found, steady, diagnosis.blame_rows, diagnosis.verdict);
    return diagnosis;
}

}   // namespace drawpoint
