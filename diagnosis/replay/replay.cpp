#include <drawpoint/diagnosis/replay/replay.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

#include "diagnosis/replay/replay_demands.hpp"
#include "diagnosis/replay/replay_device.hpp"
#include "diagnosis/replay/replay_loader.hpp"
#include "diagnosis/replay/replay_rows.hpp"
#include "diagnosis/replay/machine/virtual_time.hpp"
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {
namespace {

constexpr double least_cores = 0.01;   // others never take all cores

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument{"replay: " + what}; }

void check(const std::string& complaint) {
    if (!complaint.empty())
        refuse(complaint);
}

void check(const RecordedRun& run, const ReplayOptions& options) {
    if (!run.unusable.empty())
        refuse("the recording cannot be replayed: " + run.unusable);
    if (run.samples.empty() || run.steps.empty())
        refuse("the recording has no samples or no steps");
    const LoaderSetting& setting = options.setting;
    check(out_of_range(setting));
    check(out_of_range("recorded batch_size", run.setting.batch_size, 1, loader_limits::most_batch_size));
    if (!(options.core_efficiency > 0 && options.core_efficiency <= 1))
        refuse("core_efficiency must be above 0 and at most 1, got " + std::to_string(options.core_efficiency));
    const Change& change = options.change;
    const auto check_factor = [](std::string_view name, double factor) {
        if (!(factor >= 0 && factor <= 1e6))
            refuse(std::string{name} + " must be a factor of 0 to 1000000, got " + std::to_string(factor));
    };
    for (const double factor : change.stages)
        check_factor("change.stages", factor);
    check_factor("change.read", change.read);
    check_factor("change.collate", change.collate);
    check_factor("change.transfer", change.transfer);
    if (run.device_buffers != 0)
        check(out_of_range("buffers of the device", buffers_of(run, change), 1, TransferPolicy::most_buffers));
    check_factor("change.compute", change.compute);
    check_factor("change.sampler", change.sampler);
    check_factor("change.waiting", change.waiting);
    if (run.scheduler.tick_ns < 100'000 || run.scheduler.tick_ns > 100'000'000)
        refuse("the scheduler's tick must be 100 µs to 100 ms, got " + std::to_string(run.scheduler.tick_ns) + " ns");
    if (!(change.variance >= 0 && change.variance <= 1))
        refuse("change.variance must be a factor of 0 to 1, got " + std::to_string(change.variance));
}

/// The loader's memory plan. Sizes are those of the largest recorded batch.
MemoryPlan plan_of(const RecordedRun& run, const LoaderSetting& setting) {
    std::uint64_t sample_bytes = 0, least_sample_bytes = ~std::uint64_t{0}, encoded_bytes = 0;
    for (const BatchDemand& batch : run.batches) {
        const std::uint64_t size = batch.size == 0 ? run.setting.batch_size : batch.size;
        const std::uint64_t each = batch.bytes / size;   // including its target
        const std::uint64_t data = each > sizeof(std::int64_t) ? each - sizeof(std::int64_t) : 0;
        sample_bytes = std::max(sample_bytes, data);
        least_sample_bytes = std::min(least_sample_bytes, data);
    }
    bool reads = false;
    for (const SampleDemand& sample : run.samples) {
        reads |= sample.read.ns() != 0;
        encoded_bytes = std::max(encoded_bytes, sample.bytes);
    }
    const bool varies = run.collates && sample_bytes != least_sample_bytes;
    return plan_memory(
        {.sample_bytes = varies ? 0 : sample_bytes,
         .collates = run.collates,
         .batch_size = setting.batch_size,
         .num_workers = setting.num_workers,
         .prefetch_depth = setting.prefetch_depth,
         .read_concurrency = reads && setting.kind == LoaderKind::drawpoint ? setting.read_concurrency : 0,
         .encoded_bytes = reads ? contents_memory_bytes(encoded_bytes) : 0,
         .worker_bytes = run.worker_bytes,
         .cache_bytes = run.other_bytes,
         .memory_budget = setting.memory_budget});
}

}   // namespace

bool fits_memory(const RecordedRun& run, const LoaderSetting& setting) {
    if (setting.memory_budget == 0 || setting == run.setting || run.setting.batch_size == 0)
        return true;
    // The recorded setting did run. If its estimate exceeds the budget, other settings may exceed it by as much.
    const std::uint64_t more =
        setting.memory_budget == run.setting.memory_budget ? plan_of(run, run.setting).missing_bytes : 0;
    return plan_of(run, setting).missing_bytes <= more;
}

Replayed replay(const RecordedRun& run, const ReplayOptions& asked) {
    ReplayOptions options = asked;
    check(run, options);
    const std::size_t counted = options.steps != 0 ? options.steps : run.steps.size();
    const std::size_t steps = counted + options.warm_up_steps,
                      batches = steps + std::max(LoaderPolicy::max_slots, options.setting.prefetch_depth + 1);
    const double own = options.cores != 0 ? options.cores : run.cores - run.foreign_cores;
    const double cores = options.change.unlimited_cores ? 0 : std::max(own, least_cores);

    const MemoryPlan plan = plan_of(run, options.setting);
    const ReplayDemands demands{run, options, options.warm_up_steps, batches};
    std::optional<ReplayRows> rows;
    if (options.keep_rows)
        rows.emplace(run, options.setting, std::max<std::size_t>(options.setting.num_workers, 1));
    ReplayLoader loader{run, options, plan, demands, cores, steps, rows ? &*rows : nullptr};
    loader.run();

    Replayed result;
    const auto warm_up = static_cast<std::ptrdiff_t>(options.warm_up_steps);
    result.draw_ns.assign(loader.draws_ns().begin() + warm_up, loader.draws_ns().end());
    result.wall_ns = std::accumulate(loader.steps_ns().begin() + warm_up, loader.steps_ns().end(), std::int64_t{0});
    const std::int64_t drawn = std::accumulate(result.draw_ns.begin(), result.draw_ns.end(), std::int64_t{0});
    const auto wall = static_cast<double>(std::max<std::int64_t>(result.wall_ns, 1));
    result.batches_per_s = static_cast<double>(counted) * 1e9 / wall;
    result.draw_share = static_cast<double>(drawn) / wall;
    result.peak_bytes = loader.peak_bytes();
    result.events = loader.events();
    if (rows)
        result.ledger = rows->finish(loader.now_ns());
    return result;
}

}   // namespace drawpoint
