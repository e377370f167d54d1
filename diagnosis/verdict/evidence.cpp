#include "diagnosis/verdict/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

struct Moments {
    double n = 0, sum = 0, squares = 0;
    void add(double value) {
        ++n;
        sum += value;
        squares += value * value;
    }
    [[nodiscard]] double variation() const {
        const double mean = n > 0 ? sum / n : 0;
        return mean > 0 ? std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean : 0;
    }
};

double quantile(std::vector<double>& values, double share) {
    if (values.empty())
        return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, at);
    return *at;
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

}   // namespace

Evidence evidence_of(const Ledger& ledger, const Blame& blame, const RecordedRun& run) {
    Evidence found;
    Moments compute;
    std::vector<double> draws;
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        if (step.phase != Phase::train || step.size == 0)
            continue;
        std::int64_t between_ns = 0;   // belongs to the step before the next draw
        for (const SpanRow& span : ledger.spans_of(step))
            if (span.span == Span::between)
                between_ns += span.ns;
        const std::int64_t wall_ns = step.draw_ns + step.batch_ns + between_ns;
        ++found.all_steps;
        found.all_draw_s += seconds(step.draw_ns);
        found.all_wall_s += seconds(wall_ns);
        if (i < blame.first_steady_step)
            continue;
        if (found.steps++ == 0)
            found.from_ns = step.draw_begin_ns;
        found.to_ns = std::max(found.to_ns, step.draw_begin_ns + wall_ns);
        found.draw_s += seconds(step.draw_ns);
        found.wall_s += seconds(wall_ns);
        draws.push_back(seconds(step.draw_ns));
        compute.add(seconds(step.batch_ns + between_ns));
    }
    for (const DrawBlame& draw : blame.draws) {
        if (draw.warm_up || ledger.steps[draw.step].phase != Phase::train)
            continue;
        found.order_s += seconds(draw.order_ns);
        for (std::size_t i = draw.pieces.first; i < draw.pieces.first + draw.pieces.count; ++i)
            if (blame.pieces[i].cause == Cause::handoff)
                found.handoff_s += seconds(blame.pieces[i].ns);
    }
    found.mean_step_s = found.steps > 0 ? found.wall_s / static_cast<double>(found.steps) : 0;
    found.p99_draw_s = quantile(draws, 0.99);
    found.compute_variation = compute.variation();

    Moments samples;
    std::vector<double> times;
    for (const SampleDemand& sample : run.samples) {
        std::int64_t ns = sample.read.ns();
        for (const Demand& stage : sample.stages)
            ns += stage.ns();
        samples.add(static_cast<double>(ns));
        times.push_back(static_cast<double>(ns));
    }
    found.sample_variation = samples.variation();
    if (const double median = quantile(times, 0.5); median > 0)
        found.sample_p99_over_p50 = quantile(times, 0.99) / median;
    if (found.steps > 0) {
        found.line = read_line(ledger, found.from_ns, found.to_ns);
        found.reads_grow_with_bytes = !found.line && reads_grow_with_bytes(ledger, found.from_ns, found.to_ns);
    }
    return found;
}

double replay_recorded(RecordedRun& run, const Interference& others, std::size_t most_samples) {
    constexpr std::size_t least_steps = 50;
    constexpr double most_of_line = 0.2;   // that a line which was seen may put the replay off
    ReplayOptions options;
    options.setting = run.setting;
    options.steps = std::min(run.steps.size(),
                             std::max(least_steps, most_samples / std::max<std::size_t>(1, run.setting.batch_size)));
    if (others.measured) {
        run.foreign_cores = others.foreign_cores;
        run.foreign_cores_spread = others.foreign_cores_spread;
    }
    const bool waited = !run.cpu_measured || others.run_queue_share >= 0.05;   // for a core
    const auto settled = [&] {
        const double rate = replay(run, options).batches_per_s;
        if (run.foreign_cores <= 0 || waited || rate >= 0.9 * run.batches_per_s)
            return rate;
        run.foreign_cores = 0;
        return replay(run, options).batches_per_s;
    };
    const auto off = [&run](double rate) { return std::abs(rate - run.batches_per_s); };
    const double foreign = run.foreign_cores, rate = settled();
    if (run.line_ns_per_byte <= 0 || off(rate) <= most_of_line * run.batches_per_s)
        return rate;
    const ReadLine line{.ns_per_byte = run.line_ns_per_byte, .latency_ns = run.line_latency_ns};
    const double kept = std::exchange(run.foreign_cores, foreign);
    set_read_line(run, std::nullopt);
    if (const double without = settled(); off(without) < off(rate))
        return without;
    run.foreign_cores = kept;
    set_read_line(run, line);
    return rate;
}

std::vector<std::string> evidence_text(const Evidence& found, const std::vector<BlameRow>& rows,
                                       const Interference& others, const RecordedRun& run, std::string_view verdict) {
    std::vector<std::string> said;
    said.push_back(fmt::format("{} steady steps of {} each: the draw takes {} of them, at the 99th percentile {}",
                               found.steps, format_duration(found.mean_step_s), percent(found.draw_share()),
                               format_duration(found.p99_draw_s)));
    if (found.draw_s > 0 && !rows.empty()) {
        std::string causes;
        for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3) && rows[i].share >= 0.01; ++i)
            causes += fmt::format("{}{} {}", i ? ", " : "", printable(rows[i].cause), percent(rows[i].share));
        said.push_back(fmt::format("of these {} the draw waited for {}", format_duration(found.draw_s), causes));
    }
    if (found.order_s > 0.1 * found.draw_s)
        said.push_back(fmt::format("during {} of the draws another batch was complete, behind an older one",
                                   percent(found.order_s / found.draw_s)));
    if (found.sample_p99_over_p50 > 5 || verdict == "stragglers")
        said.push_back(
            fmt::format("samples vary: the slowest hundredth takes {:.1f} times the median, standard deviation "
                        "{:.1f} times the mean",
                        found.sample_p99_over_p50, found.sample_variation));
    if (found.compute_variation > 0.5 || verdict == "bursty-consumer")
        said.push_back(fmt::format("the loop's own time varies by {} of its mean", percent(found.compute_variation)));
    if (found.line)
        said.push_back(
            fmt::format("reads share a line of {}/s that is busy {} of the time: more reads at a time are no "
                        "faster",
                        format_bytes(1e9 / found.line->ns_per_byte), percent(found.line->busy_share)));
    else if (found.reads_grow_with_bytes)
        said.push_back("more than half of a read's time is there because of its bytes");
    if (others.measured) {
        said.push_back(fmt::format("this process kept {:.2f} of {:.2g} cores busy, others {:.2f}", others.own_cores,
                                   others.cores, others.foreign_cores));
        if (others.run_queue_share >= 0.05)
            said.push_back(
                fmt::format("workers waited for a core during {} of their samples", percent(others.run_queue_share)));
    }
    if (others.memory_pressure.value_or(0) > 0.01 || others.major_faults_per_s.value_or(0) > 10)
        said.push_back(
            fmt::format("memory is short: {:.0f} major page faults a second", others.major_faults_per_s.value_or(0)));
    if (found.all_draw_s > found.draw_s && found.all_wall_s > 0)
        said.push_back(fmt::format("the warm-up's draws took {}, {} of the whole run",
                                   format_duration(found.all_draw_s - found.draw_s),
                                   percent((found.all_draw_s - found.draw_s) / found.all_wall_s)));
    said.push_back(fmt::format("recorded with num_workers {}, prefetch_depth {}, order {}", run.setting.num_workers,
                               run.setting.prefetch_depth, to_string(run.setting.order)));
    return said;
}

}   // namespace drawpoint
