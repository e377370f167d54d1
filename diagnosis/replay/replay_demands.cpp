#include "diagnosis/replay/replay_demands.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "diagnosis/demands/demand_limit.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_picks = std::size_t{1} << 29;   // 2 GiB of them

std::int64_t times(std::int64_t ns, double factor) noexcept {
    return factor == 1 ? ns : std::llround(static_cast<double>(ns) * factor);
}
/// Scales what a core or a device is asked for at once. Throws if virtual time does not take it.
std::int64_t asked(std::int64_t ns, double factor) {
    const double all = static_cast<double>(ns) * factor;
    if (!(all >= 0 && all < static_cast<double>(most_demand_ns)))
        throw std::invalid_argument{"replay: a demand must be 0 to " + std::to_string(most_demand_ns / 1'000'000'000) +
                                    " s, got " + std::to_string(all * 1e-9)};
    return times(ns, factor);
}
Demand asked(Demand demand, double factor) { return {asked(demand.cpu_ns, factor), asked(demand.wait_ns, factor)}; }

/// Scales bytes, up to 2^56.
std::uint64_t bytes_times(std::uint64_t bytes, double factor) noexcept {
    return factor == 1 ? bytes : static_cast<std::uint64_t>(std::min(static_cast<double>(bytes) * factor, 0x1p56));
}

using Picks = std::span<const std::uint32_t>;

/// `value`, with `factor` times its distance from `mean`.
std::int64_t nearer(std::int64_t value, double mean, double factor) noexcept {
    return std::llround(mean + factor * (static_cast<double>(value) - mean));
}

/// Moves the field of every `stride`-th row from `at` on to its mean over the picked rows, so that a bootstrap has as
/// much work as before; `factor` is left of the distance.
template <class Row, class Field>
void level(std::vector<Row>& rows, std::size_t at, std::size_t stride, Picks picks, double factor, Field field) {
    double sum = 0;
    for (const std::uint32_t pick : picks)
        sum += static_cast<double>(std::invoke(field, rows[pick * stride + at]));
    for (std::size_t i = at; i < rows.size(); i += stride)
        std::invoke(field, rows[i]) =
            nearer(std::invoke(field, rows[i]), sum / static_cast<double>(picks.size()), factor);
}

/// The same, with each row's value in proportion to its samples.
template <class Row, class Field>
void level_field(std::vector<Row>& rows, std::uint32_t full, Picks picks, double factor, Field field) {
    const auto size_of = [full](const Row& row) { return static_cast<double>(row.size == 0 ? full : row.size); };
    double sum = 0, samples = 0;
    for (const std::uint32_t pick : picks) {
        sum += static_cast<double>(field(rows[pick]));
        samples += size_of(rows[pick]);
    }
    for (Row& row : rows)
        field(row) = nearer(field(row), sum / samples * size_of(row), factor);
}

/// 0 … count - 1.
std::vector<std::uint32_t> each_of(std::size_t count) {
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    return all;
}

/// `count` indices below `of`: in a row from `first` on, again and again, or in random blocks of `least` … `most`.
std::vector<std::uint32_t> picks(std::size_t count, std::size_t of, std::size_t first, std::size_t least,
                                 std::size_t most, std::uint64_t seed) {
    std::vector<std::uint32_t> all(count);
    if (seed == 0) {
        for (std::size_t i = 0; i < count; ++i)
            all[i] = static_cast<std::uint32_t>((first + i) % of);
        return all;
    }
    std::mt19937_64 random{seed};
    for (std::size_t i = 0; i < count;) {
        const std::size_t length = least + static_cast<std::size_t>(random() % (most - least + 1));
        const std::size_t from = static_cast<std::size_t>(random() % of);
        for (std::size_t j = 0; j < length && i < count; ++j, ++i)
            all[i] = static_cast<std::uint32_t>((from + j) % of);
    }
    return all;
}

/// How long the blocks of steps in a bootstrap must be to keep together what belongs together, such as bursts: the last
/// lag whose autocorrelation is beyond chance (by the threshold of Politis and White, 2004). From `least` to 32 and at
/// most a sixteenth of the steps, so that there are enough blocks.
std::size_t block_of(std::span<const StepDemand> steps, std::size_t least) {
    constexpr std::size_t most = 32, lags_recorded = 16;
    const auto n = static_cast<double>(steps.size());
    std::vector<double> off(steps.size());   // difference from the mean
    std::ranges::transform(steps, off.begin(), [](const StepDemand& step) {
        return static_cast<double>(step.compute.cpu_ns + step.compute.wait_ns + step.after.cpu_ns + step.after.wait_ns +
                                   step.device.ns);
    });
    const double mean = std::accumulate(off.begin(), off.end(), 0.0) / n;
    for (double& value : off)
        value -= mean;
    const double beyond_chance = 2 * std::sqrt(std::log10(n) / n);
    const double variance = std::inner_product(off.begin(), off.end(), off.begin(), 0.0);
    for (std::size_t lag = std::min(most, steps.size() / lags_recorded); lag > least; --lag)
        if (std::abs(std::inner_product(off.begin() + static_cast<std::ptrdiff_t>(lag), off.end(), off.begin(), 0.0)) >
            beyond_chance * variance)
            return lag;
    return least;
}

/// What a pass begins with. A PyTorch loader starts its workers one after the other, if they do not persist; then each
/// gets ready by itself.
Demand order_of(const RecordedRun& run, std::size_t num_workers) {
    if (!has_worker_processes(run.setting))
        return run.order;
    const double factor = static_cast<double>(num_workers) / static_cast<double>(run.setting.num_workers);
    return {times(run.order.cpu_ns, factor), num_workers == 0 ? 0 : run.order.wait_ns};
}

/// The loop does not wait for the device in this step.
void leave_out_wait(StepDemand& step) {
    step.device.first_ns = 0;
    std::int64_t left_ns = std::exchange(step.device.kernel_wait_ns, 0);
    step.device.ns -= std::min(left_ns, step.device.ns);
    for (std::int64_t* const ns : {&step.compute.wait_ns, &step.compute.cpu_ns}) {   // it may spin while it waits
        const std::int64_t taken_ns = std::min(left_ns, *ns);
        *ns -= taken_ns;
        left_ns -= taken_ns;
    }
}

}   // namespace

ReplayDemands::ReplayDemands(const RecordedRun& run, const ReplayOptions& options, std::size_t warm_up,
                             std::size_t batches)
    : run_{&run},
      stages_{std::clamp<std::size_t>(run.stages.size(), 1, max_stages)},
      batches_{run.batches},
      steps_{run.steps} {
    if (batches > most_picks / options.setting.batch_size)
        throw std::invalid_argument{"replay: " + std::to_string(batches) + " batches of " +
                                    std::to_string(options.setting.batch_size) + " samples are more than " +
                                    std::to_string(most_picks) + " samples"};
    add_samples(options);
    add_line(options);
    add_batches_and_steps(options);
    pick(options, warm_up, batches);
    if (options.change.variance != 1)
        level_all(options.change.variance, options.bootstrap_seed != 0);
    compute_short_waits();
}

void ReplayDemands::add_samples(const ReplayOptions& options) {
    const Change& change = options.change;
    pieces_.reserve(run_->samples.size() * piece_count());
    unstamped_ns_.reserve(run_->samples.size());
    const auto add = [&](const Demand& demand, double factor) {
        // The core time of a sleep does not depend on its length: it stays unless the sleep itself goes.
        const std::int64_t asleep_ns = demand.wait_ns < least_wait_ns ? 0 : std::min(demand.cpu_ns, run_->sleep_cpu_ns);
        pieces_.push_back({.cpu_ns = asked(demand.cpu_ns - asleep_ns, factor) + (change.waiting == 0 ? 0 : asleep_ns),
                           .wait_ns = asked(demand.wait_ns, factor * change.waiting)});
    };
    for (const SampleDemand& sample : run_->samples) {
        unstamped_ns_.push_back(asked(sample.unstamped_ns, 1));
        add(sample.read, change.read);
        for (std::size_t stage = 0; stage < stages_; ++stage)
            add(sample.stages[stage], change.stages[stage]);
    }
}

void ReplayDemands::add_line(const ReplayOptions& options) {
    const double factor = options.change.waiting * (run_->reads_ahead ? options.change.read : options.change.stages[0]);
    if (run_->line_ns_per_byte <= 0 || factor == 0)
        return;
    for (std::size_t sample = 0; sample < run_->samples.size(); ++sample) {
        std::int64_t& latency_ns = pieces_[sample * piece_count() + line_piece()].wait_ns;
        const double passes_ns = static_cast<double>(run_->samples[sample].bytes) * run_->line_ns_per_byte;
        const std::int64_t waited_ns = latency_ns;   // the turn is part of it
        line_ns_.push_back(std::llround(std::min(passes_ns * factor, static_cast<double>(waited_ns))));
        // A read that ended later after the one before than its bytes take had found the line free.
        const std::int64_t behind_ns = asked(run_->samples[sample].behind_ns, factor);
        const bool queued = static_cast<double>(waited_ns - behind_ns) <= 1.1 * static_cast<double>(line_ns_.back());
        latency_ns = queued ? std::min(behind_ns, asked(run_->line_latency_ns, factor)) : waited_ns - line_ns_.back();
    }
}

void ReplayDemands::add_batches_and_steps(const ReplayOptions& options) {
    batches_.resize(std::max<std::size_t>(batches_.size(), 1));
    for (BatchDemand& batch : batches_) {
        batch.collate = asked(batch.collate, options.change.collate);
        batch.transfer = asked(batch.transfer, options.change.transfer);
        batch.send_cpu_ns = asked(batch.send_cpu_ns, options.change.transfer);
        if (has_worker_processes(run_->setting) && options.setting.num_workers == 0) {   // the loop makes it
            batch.transfer = {};
            batch.send_cpu_ns = batch.rest_cpu_ns = 0;
        }
    }
    for (StepDemand& step : steps_) {
        if (options.change.no_sync)
            leave_out_wait(step);
        step.compute = asked(step.compute, options.change.compute);
        step.after = asked(step.after, options.change.compute);
        step.device.ns = asked(step.device.ns, options.change.compute);
        step.device.first_ns = asked(step.device.first_ns, options.change.compute);
    }
    order_ = asked(order_of(*run_, options.setting.num_workers), options.change.sampler);
    worker_gap_ns_ = asked(run_->worker_gap_ns, options.change.sampler);
    // Checks the largest demands that batch_at and step_at can make.
    const auto most_of = [&](std::uint32_t was) {
        return static_cast<double>(options.setting.batch_size) /
               static_cast<double>(was == 0 ? run_->setting.batch_size : was);
    };
    for (const BatchDemand& batch : batches_) {
        (void)asked(batch.collate, most_of(batch.size));
        (void)asked(batch.transfer, most_of(batch.size));
        (void)asked(batch.send_cpu_ns, most_of(batch.size));
        (void)asked(batch.collate.cpu_ns + batch.rest_cpu_ns, most_of(batch.size));
    }
    for (const StepDemand& step : steps_) {
        (void)asked(step.compute, most_of(step.size));
        (void)asked(step.device.ns, most_of(step.size));
    }
}

void ReplayDemands::pick(const ReplayOptions& options, std::size_t warm_up, std::size_t batches) {
    // The warm-up takes what lies before the first sample and step, so that the counted steps are the recorded ones.
    const auto before = [warm_up](std::size_t of, std::size_t each) { return (of - warm_up * each % of) % of; };
    const std::size_t size = options.setting.batch_size, samples = run_->samples.size(), steps = steps_.size();
    const std::size_t one_batch = run_->setting.batch_size;
    picks_ = picks(batches * size, samples, before(samples, size), one_batch, 4 * one_batch, options.bootstrap_seed);
    if (options.bootstrap_seed == 0) {
        step_picks_ = picks(batches, steps, before(steps, 1), 0, 0, 0);
    } else {
        constexpr std::size_t least = 4;
        const std::size_t burst = block_of(run_->steps, least);
        step_picks_ = picks(batches, steps, 0, burst, std::max(2 * burst, 4 * least), ~options.bootstrap_seed);
    }
}

void ReplayDemands::compute_short_waits() noexcept {
    const auto merge = [](std::int64_t& wait_ns, std::int64_t& cpu_ns) {
        if (wait_ns < least_wait_ns)
            cpu_ns += std::exchange(wait_ns, 0);
    };
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
        if (line_ns_.empty() || piece % piece_count() != line_piece())
            merge(pieces_[piece].wait_ns, pieces_[piece].cpu_ns);
    for (StepDemand& step : steps_)
        for (Demand* const demand : {&step.compute, &step.after})
            merge(demand->wait_ns, demand->cpu_ns);
    merge(order_.wait_ns, order_.cpu_ns);
}

void ReplayDemands::level_all(double factor, bool resampled) {
    const std::vector<std::uint32_t> samples = resampled ? picks_ : each_of(run_->samples.size()),
                                     steps = resampled ? step_picks_ : each_of(steps_.size()),
                                     batches = each_of(batches_.size());
    for (std::size_t piece = 0; piece < piece_count(); ++piece)
        for (std::int64_t Demand::* const field : {&Demand::wait_ns, &Demand::cpu_ns})
            level(pieces_, piece, piece_count(), samples, factor, field);
    level(unstamped_ns_, 0, 1, samples, factor, std::identity{});
    if (!line_ns_.empty())
        level(line_ns_, 0, 1, samples, factor, std::identity{});
    const auto full = static_cast<std::uint32_t>(run_->setting.batch_size);
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.collate.cpu_ns; });
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.collate.wait_ns; });
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.transfer.cpu_ns; });
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.transfer.wait_ns; });
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.send_cpu_ns; });
    level_field(batches_, full, batches, factor, [](BatchDemand& b) -> std::int64_t& { return b.rest_cpu_ns; });
    level_field(steps_, full, steps, factor, [](StepDemand& s) -> std::int64_t& { return s.compute.cpu_ns; });
    level_field(steps_, full, steps, factor, [](StepDemand& s) -> std::int64_t& { return s.compute.wait_ns; });
    level_field(steps_, full, steps, factor, [](StepDemand& s) -> std::int64_t& { return s.device.ns; });
    level_field(steps_, full, steps, factor, [](StepDemand& s) -> std::int64_t& { return s.device.first_ns; });
    // Independent of the step's size:
    level(steps_, 0, 1, steps, factor, [](StepDemand& step) -> std::int64_t& { return step.after.cpu_ns; });
    level(steps_, 0, 1, steps, factor, [](StepDemand& step) -> std::int64_t& { return step.after.wait_ns; });
}

BatchDemand ReplayDemands::batch_at(std::uint64_t position, std::uint32_t size) const noexcept {
    const SampleDemand& middle = sample(sample_at(position + size / 2));
    BatchDemand batch = batches_[std::min<std::size_t>(middle.batch, batches_.size() - 1)];
    const auto was = static_cast<double>(batch.size == 0 ? run_->setting.batch_size : batch.size);
    const double factor = static_cast<double>(size) / was;
    batch.collate = {times(batch.collate.cpu_ns, factor), times(batch.collate.wait_ns, factor)};
    batch.transfer = {times(batch.transfer.cpu_ns, factor), times(batch.transfer.wait_ns, factor)};
    batch.send_cpu_ns = times(batch.send_cpu_ns, factor);
    batch.rest_cpu_ns = times(batch.rest_cpu_ns, factor);
    batch.bytes = bytes_times(batch.bytes, factor);
    batch.size = size;
    return batch;
}

StepDemand ReplayDemands::step_at(std::uint64_t step, std::uint32_t size) const noexcept {
    StepDemand demand = steps_[step_picks_[static_cast<std::size_t>(step)]];
    const auto was = static_cast<double>(demand.size == 0 ? run_->setting.batch_size : demand.size);
    const double factor = static_cast<double>(size) / was;
    demand.compute = {times(demand.compute.cpu_ns, factor), times(demand.compute.wait_ns, factor)};
    demand.device.ns = times(demand.device.ns, factor);
    demand.device.first_ns = times(demand.device.first_ns, factor);
    return demand;
}

}   // namespace drawpoint
