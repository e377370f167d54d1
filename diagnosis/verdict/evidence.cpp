#include "diagnosis/verdict/evidence.hpp"
#include "diagnosis/verdict/interventions.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <drawpoint/instrumentation/statistics.hpp>
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

/// Of none 0.
double quantile(const std::vector<double>& values, double share) {
    return values.empty() ? 0 : statistics::quantile(values, share);
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

}   // namespace

Evidence evidence_of(const Ledger& ledger, const SteadyRun& steady) {
    const Blame& blame = steady.blame;
    Evidence found;
    Moments compute;
    std::vector<double> draws;
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        if (step.phase != Phase::train || step.size == 0)
            continue;
        const std::int64_t own_ns = step.batch_ns + between_ns(ledger, step), wall_ns = step.draw_ns + own_ns;
        ++found.all_steps;
        found.all_draw_s += seconds(step.draw_ns);
        found.all_wall_s += seconds(wall_ns);
        if (i < blame.first_steady_step)
            continue;
        ++found.steps;
        found.draw_s += seconds(step.draw_ns);
        found.wall_s += seconds(wall_ns);
        draws.push_back(seconds(step.draw_ns));
        if (const DeviceStepRow* const device = device_step_of(ledger, step))
            add_to(found.device, *device);
        compute.add(seconds(own_ns));
    }
    const UntimedSteps untimed{ledger};
    for (const DrawBlame& draw : blame.draws) {
        if (draw.warm_up || ledger.steps[draw.step].phase != Phase::train || untimed.has(ledger.steps[draw.step]))
            continue;
        found.order_s += seconds(draw.order_ns);
        for (std::size_t i = draw.pieces.first; i < draw.pieces.first + draw.pieces.count; ++i)
            if (const BlamePiece& piece = blame.pieces[i]; piece.cause == Cause::handoff)
                found.handoff_s += seconds(piece.ns);
            else if (piece.cause == Cause::sampler)
                found.sampler_s += seconds(piece.ns);
    }
    for (const WorkerBlame& worker : blame.workers)
        if (ledger.pipelines[worker.pipeline].name == steady.run.pipeline)
            found.sampler_work_s += seconds(worker.sampler_ns);
    found.mean_step_s = found.steps > 0 ? found.wall_s / static_cast<double>(found.steps) : 0;
    found.p99_draw_s = quantile(draws, 0.99);
    found.compute_variation = compute.variation();

    Moments samples;
    std::vector<double> times;
    for (const SampleDemand& sample : steady.run.samples) {
        std::int64_t ns = sample.read.ns();
        for (const Demand& stage : sample.stages)
            ns += stage.ns();
        samples.add(static_cast<double>(ns));
        times.push_back(static_cast<double>(ns));
    }
    found.sample_variation = samples.variation();
    if (const double median = quantile(times, 0.5); median > 0)
        found.sample_p99_over_p50 = quantile(times, 0.99) / median;
    found.reads_grow_with_bytes =
        !steady.line && reads_grow_with_bytes(ledger, steady.window.from_ns, steady.window.to_ns);
    return found;
}

std::vector<std::string> evidence_text(const Evidence& found, const SteadyRun& steady,
                                       const std::vector<BlameRow>& rows, Verdict verdict) {
    const Interference& others = steady.interference;
    const RecordedRun& run = steady.run;
    std::vector<std::string> said;
    said.push_back(fmt::format("{} steady steps of {} each: the draw takes {} of them, at the 99th percentile {}",
                               found.steps, format_duration(found.mean_step_s), percent(found.draw_share()),
                               format_duration(found.p99_draw_s)));
    if (found.draw_s > 0 && !rows.empty()) {
        std::string causes;
        for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 3) && rows[i].share >= 0.01; ++i)
            if (rows[i].key != to_string(Cause::hidden))
                causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", printable(rows[i].cause),
                                      percent(rows[i].share));
        if (!causes.empty())
            said.push_back(fmt::format("of these {} the draw waited for {}", format_duration(found.draw_s), causes));
    }
    if (found.device.steps > 0) {
        const auto all_ns = static_cast<double>(found.device.all_ns());
        said.push_back(
            fmt::format("of the device's time, waiting for data took {:.1f} %: {:.1f} % without work while the "
                        "loop drew, {:.1f} % waiting for copies",
                        100 * found.data_share(), 100 * static_cast<double>(found.device.exposed_ns()) / all_ns,
                        100 * static_cast<double>(found.device.copy_wait_ns) / all_ns));
    }
    if (found.order_s > 0.1 * found.draw_s)
        said.push_back(fmt::format("during {} of the draws another batch was complete, behind an older one",
                                   percent(found.order_s / found.draw_s)));
    if (found.sampler_s > 0.03 * found.wall_s)
        said.push_back(fmt::format("passes begin with a wait for {}: {} of the steady steps' time",
                                   starts_workers(run) ? "the workers to start and the order of samples"
                                                       : "the sampler's order of samples",
                                   percent(found.sampler_s / found.wall_s)));
    else if (verdict == Verdict::sampler && found.sampler_work_s > 0)
        said.push_back(fmt::format("workers computed the sampler's orders for {} of {} meanwhile",
                                   format_duration(found.sampler_work_s), format_duration(found.wall_s)));
    if (found.sample_p99_over_p50 > 5 || verdict == Verdict::stragglers)
        said.push_back(
            fmt::format("samples vary: the slowest hundredth takes {:.1f} times the median, standard deviation "
                        "{:.1f} times the mean",
                        found.sample_p99_over_p50, found.sample_variation));
    if (found.compute_variation > 0.5 || verdict == Verdict::bursty_consumer)
        said.push_back(fmt::format("the loop's own time varies by {} of its mean", percent(found.compute_variation)));
    if (steady.line)
        said.push_back(
            fmt::format("reads share a bandwidth of {}/s, in use {} of the time: more reads at once are no faster",
                        format_bytes(1e9 / steady.line->ns_per_byte), percent(steady.line->busy_share)));
    else if (found.reads_grow_with_bytes)
        said.push_back("more than half of a read's time depends on its size");
    if (others.measured) {
        said.push_back(fmt::format("this process kept {:.2f} of {:.2g} cores busy, others {:.2f}", others.own_cores,
                                   others.cores, others.foreign_cores));
        if (others.steal_cores > 0.02 * others.cores)
            said.push_back(
                fmt::format("a hypervisor took {} of the cores", percent(others.steal_cores / others.cores)));
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
    said.push_back(fmt::format("recorded with num_workers {}, {} {}, order {}", run.setting.num_workers,
                               prefetch_name(run.setting.kind), prefetch_of(run.setting),
                               to_string(run.setting.order)));
    return said;
}

}   // namespace drawpoint
