#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>

namespace drawpoint {

TimeRange steady_window(const Ledger& ledger, std::size_t first_steady_step) {
    TimeRange window;
    bool any = false;
    for (std::size_t i = first_steady_step; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        if (step.phase != Phase::train || step.size == 0)
            continue;
        if (!std::exchange(any, true))
            window.from_ns = window.to_ns = step.draw_begin_ns;
        window.to_ns = std::max(window.to_ns, end_ns(end_ns(step), between_ns(ledger, step)));
    }
    return window;
}

std::int64_t between_ns(const Ledger& ledger, const StepRow& step) {
    std::int64_t ns = 0;
    for (const SpanRow& span : ledger.spans_of(step))
        ns += span.span == Span::between ? span.ns : 0;
    return ns;
}

namespace {

/// What `replay_recorded` may change in a run.
struct Fitted {
    std::vector<StepDemand> steps;
    double least_loop_work = 1;
    bool loop_waits_first = false, helpers_yield = false;
    double foreign_cores = 0, foreign_cores_spread = 0;
};

Fitted fitted(const RecordedRun& run) {
    return {run.steps,         run.least_loop_work, run.loop_waits_first,
            run.helpers_yield, run.foreign_cores,   run.foreign_cores_spread};
}

void set_fitted(RecordedRun& run, const Fitted& to) {
    run.steps = to.steps;
    run.least_loop_work = to.least_loop_work;
    run.loop_waits_first = to.loop_waits_first;
    run.helpers_yield = to.helpers_yield;
    run.foreign_cores = to.foreign_cores;
    run.foreign_cores_spread = to.foreign_cores_spread;
}

constexpr double close = 0.01;   // to the recorded rate

/// Replays the recorded setting and returns its rate. Chooses what the recording does not tell of the loop so that the
/// replay comes nearest.
double choose_loop(RecordedRun& run, const ReplayOptions& options) {
    double rate = replay(run, options).batches_per_s;
    const auto off = [&run](double replayed) { return std::abs(replayed - run.batches_per_s); };
    const auto choose = [&](bool RecordedRun::* what, auto may) {
        if (off(rate) <= close * run.batches_per_s || !std::ranges::any_of(run.steps, may))
            return;
        run.*what = true;
        const double other = replay(run, options).batches_per_s;
        run.*what = off(other) < off(rate);
        rate = run.*what ? other : rate;
    };
    choose(&RecordedRun::loop_waits_first,
           [](const StepDemand& step) { return step.compute.cpu_ns > 0 && step.compute.wait_ns > 0; });
    choose(&RecordedRun::helpers_yield, [](const StepDemand& step) { return step.spins; });
    return rate;
}

void set_loop_work(RecordedRun& run, const Fitted& as_recorded, double share) {
    for (std::size_t step = 0; step < run.steps.size(); ++step)
        run.steps[step].compute.cpu_ns =
            std::llround(static_cast<double>(as_recorded.steps[step].compute.cpu_ns) * share);
    run.least_loop_work = as_recorded.least_loop_work / share;
}

/// Replays the recorded setting and returns its rate. If the replay is too slow and the loop's threads spin, takes less
/// of their CPU time for work, as far as that is possible and makes the error less than half: nothing tells spinning
/// from work, but a replay may be slow for another reason.
double fit_spinning_loop(RecordedRun& run, const ReplayOptions& options) {
    constexpr int replays = 5;
    double rate = choose_loop(run, options);
    if (run.least_loop_work >= 1 || rate >= (1 - close) * run.batches_per_s)
        return rate;
    const auto off = [&run](double replayed) { return std::abs(replayed - run.batches_per_s); };
    const Fitted as_recorded = fitted(run);
    const double with_all = rate;
    double least = run.least_loop_work, most = 1, best = 1;
    for (int i = 0; i < replays; ++i) {
        const double share = (least + most) / 2;
        set_loop_work(run, as_recorded, share);
        const double replayed = replay(run, options).batches_per_s;
        (replayed < run.batches_per_s ? most : least) = share;
        if (off(replayed) < off(rate)) {
            rate = replayed;
            best = share;
        }
    }
    if (off(rate) > off(with_all) / 2) {
        rate = with_all;
        best = 1;
    }
    set_loop_work(run, as_recorded, best);
    return rate;
}

}   // namespace

double replay_recorded(RecordedRun& run, const Interference& others, std::size_t most_samples) {
    constexpr std::size_t least_steps = 50;
    constexpr double most_of_line = 0.02;   // error of the replay that is accepted with a read line
    ReplayOptions options;
    options.setting = run.setting;
    options.steps = std::min(run.steps.size(),
                             std::max(least_steps, most_samples / std::max<std::size_t>(1, run.setting.batch_size)));
    options.warm_up_steps = PredictOptions{}.warm_up_steps;              // the run was in full flow
    options.bootstrap_seed = options.steps < run.steps.size() ? 1 : 0;   // from all parts of a long run
    if (others.measured) {
        run.foreign_cores = std::min(others.foreign_cores + others.steal_cores, run.cores);
        run.foreign_cores_spread = std::hypot(others.foreign_cores_spread, others.steal_cores_spread);
    }
    const bool waited = !run.cpu_measured || others.run_queue_share >= 0.05;   // for a core
    const auto settled = [&] {
        Fitted unfitted = fitted(run);
        const double rate = fit_spinning_loop(run, options);
        if (run.foreign_cores <= 0 || waited || rate >= 0.9 * run.batches_per_s)
            return rate;
        unfitted.foreign_cores = unfitted.foreign_cores_spread = 0;
        set_fitted(run, unfitted);
        return fit_spinning_loop(run, options);
    };
    const auto off = [&run](double rate) { return std::abs(rate - run.batches_per_s); };
    const Fitted as_recorded = fitted(run);
    const double rate = settled();
    if (run.line_ns_per_byte <= 0 || off(rate) <= most_of_line * run.batches_per_s)
        return rate;
    const ReadLine line{.ns_per_byte = run.line_ns_per_byte, .latency_ns = run.line_latency_ns};
    const Fitted with_line = fitted(run);
    set_fitted(run, as_recorded);
    set_read_line(run, std::nullopt);
    if (const double without = settled(); off(without) < off(rate))
        return without;
    set_fitted(run, with_line);
    set_read_line(run, line);
    return rate;
}

SteadyRun prepare(const Ledger& ledger) {
    constexpr std::size_t most_samples = 1'000'000;
    SteadyRun steady{.blame = blame(ledger)};
    steady.run = recorded_run(ledger, steady.blame.first_steady_step);
    const auto [from_ns, to_ns] = steady.window = steady_window(ledger, steady.blame.first_steady_step);
    steady.interference = interference(ledger, from_ns, to_ns);
    steady.trust = trust_of(ledger, steady.interference, from_ns, to_ns);
    if (from_ns == to_ns)
        return steady;
    steady.line = read_line(ledger, from_ns, to_ns);
    set_read_line(steady.run, steady.line);
    if (!steady.run.unusable.empty())
        return steady;
    try {
        steady.replayed_batches_per_s = replay_recorded(steady.run, steady.interference, most_samples);
    } catch (const std::invalid_argument& error) {
        steady.run.unusable = error.what();
    }
    if (steady.run.line_ns_per_byte <= 0)
        steady.line.reset();   // the replay is closer without it
    return steady;
}

RecordedRun steady_run(const Ledger& ledger) { return prepare(ledger).run; }

}   // namespace drawpoint
