#include <drawpoint/diagnosis/demands/recorded_run.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/pipeline/loader/machine/detail/transfer_policy.hpp>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include "diagnosis/demands/cpu_shares.hpp"
#include "diagnosis/demands/delivery_demands.hpp"
#include <drawpoint/diagnosis/demands/detail/number_fact.hpp>
#include "diagnosis/demands/recorded_steps.hpp"
#include "diagnosis/demands/wake_times.hpp"
#include "diagnosis/demands/demand_limit.hpp"
#include "diagnosis/demands/reads_behind.hpp"

namespace drawpoint {
namespace {

constexpr std::uint64_t worker_bytes = std::uint64_t{2} << 20;   // as MemoryNeeds estimates it

// Limits that no real run reaches, but a damaged file may exceed.
constexpr std::uint64_t most_samples = 10'000'000, most_bytes = std::uint64_t{1} << 50;
constexpr double most_sleep_cpu_ns = 1e6, most_cores = 1e5, most_depth = loader_limits::most_prefetch_depth;
constexpr std::size_t most_pipelines =
    std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;   // rows name them by a uint16_t

template <class Row>
auto place_of(const Row& row) noexcept {
    return std::tuple{row.pipeline, row.epoch, row.batch};
}

std::span<const BatchRow> batches_of(const Ledger& ledger, std::uint16_t pipeline) {
    const auto [first, last] = std::ranges::equal_range(ledger.batches, pipeline, {}, &BatchRow::pipeline);
    return {first, last};
}

using Samples = std::span<const std::uint32_t>;   // positions in Ledger::samples

/// Whether all of the batch's samples were recorded, and none failed.
bool is_whole(const Ledger& ledger, Samples samples, const BatchRow& batch, const RecordedRun& run) {
    const bool may_be_larger =
        run.setting.batch_size == 0 || run.setting.kind == LoaderKind::pytorch;   // by its sampler
    if (batch.size == 0 || batch.size > loader_limits::most_batch_size ||
        (!may_be_larger && batch.size > run.setting.batch_size))
        return false;
    std::uint64_t count = 0;
    for (const std::uint32_t at : samples) {
        const SampleRow& row = ledger.samples[at];
        count += row.samples;
        if (row.status != SampleStatus::complete || row.samples == 0 || row.stages.count > run.stages.size())
            return false;
    }
    return count == batch.size;
}

double cores_of(const Ledger& ledger) {
    for (const std::string_view key : {facts::host_cores, facts::machine_cores})
        if (const auto cores = number_fact(ledger, key, most_cores))
            return *cores;
    return std::max(std::thread::hardware_concurrency(), 1u);
}

/// Median time between two samples that a worker makes one after the other.
std::int64_t overhead_of(const Ledger& ledger) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < ledger.samples.size(); ++i) {
        const SampleRow &before = ledger.samples[i - 1], &row = ledger.samples[i];
        if (place_of(before) != place_of(row) || before.worker != row.worker || before.stages.count == 0)
            continue;
        const std::int64_t ended_ns = end_ns(ledger, before), gap = length_ns(ended_ns, row.begin_ns);
        if (row.begin_ns >= ended_ns)
            gaps.push_back(bounded_ns(gap));
    }
    if (gaps.empty())
        return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::ranges::nth_element(gaps, middle);
    return *middle;
}

/// The demand of one sample; `row` may stand for several.
SampleDemand demand_of(const Ledger& ledger, const SampleRow& row, const CpuShares& shares, bool reads_apart) {
    const auto stages = ledger.stages_of(row);
    SampleDemand demand{.index = row.index, .bytes = std::min(row.bytes, most_bytes) / row.samples};
    shares.split(row, stages, std::span{demand.stages}.first(stages.size()));
    if (reads_apart && !stages.empty()) {
        if (row.read_begin_ns != no_stamp && row.read_end_ns != no_stamp)
            demand.read = shares.read_of(row);   // the first stage then was only the rest of the wait
        else
            demand.read = std::exchange(demand.stages[0], {});
        demand.stages[0].wait_ns = 0;
    }
    for (Demand& stage : demand.stages)
        stage = {stage.cpu_ns / row.samples, stage.wait_ns / row.samples};
    demand.unstamped_ns = shares.unstamped_ns(row, stages) / row.samples;
    return demand;
}

/// Sets the size of a pass: that of the longest one that another pass followed, as the last one may be cut short.
void note_passes(RecordedRun& run, std::span<const BatchRow> batches) {
    for (const BatchRow& row : batches) {
        if (row.epoch == batches.back().epoch)
            break;
        if (row.batch + std::size_t{1} > run.pass_batches) {
            run.pass_batches = row.batch + std::size_t{1};
            run.pass_samples = row.batch * run.setting.batch_size + row.size;
        }
    }
}

/// The training steps of one loader, from the last change of its setting on.
struct Window {
    std::vector<const StepRow*> steps;
    std::vector<std::uint32_t> batches;       // their positions in Ledger::batches: by step, once sorted as admitted
    std::vector<std::int64_t> transfers_ns;   // by position in Ledger::batches: time its draw waited for the device
};

/// The loader's last setting. Raises `since_ns` to the time of its last change.
LoaderSetting setting_of(const Ledger& ledger, std::uint16_t pipeline, std::int64_t& since_ns) {
    const PipelineRow& row = ledger.pipelines[pipeline];
    LoaderSetting setting = drawpoint::setting_of(row);
    // The depth asked for, not the one that the recorded memory budget allowed: the replay plans for its own budget.
    if (const auto asked = number_fact(ledger, std::string{facts::asked_depth_prefix} + row.name, most_depth))
        setting.prefetch_depth = static_cast<std::size_t>(*asked);
    for (const SettingRow& change : ledger.settings)
        if (change.pipeline == pipeline) {
            since_ns = std::max(since_ns, change.at_ns);
            setting = changed_by(change, setting);
        }
    return setting;
}

Window window_of(const Ledger& ledger, const LoaderRows& rows, std::size_t first_step, std::uint16_t pipeline,
                 std::int64_t since_ns) {
    Window window;
    window.transfers_ns.resize(ledger.batches.size());
    for (std::size_t i = first_step; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        if (step.phase != Phase::train || step.size == 0 || step.draw_begin_ns < since_ns)
            continue;
        const std::uint32_t batch = rows.batch_of(i);
        if (batch != nothing && ledger.batches[batch].pipeline == pipeline) {
            window.steps.push_back(&step);
            window.batches.push_back(batch);
            window.transfers_ns[batch] = sum_of(ledger, step, Span::transfer);
        }
    }
    return window;
}

/// What collating asks for: measured for some batches, and in proportion to their samples for the others.
class Collating {
public:
    Collating(const Ledger& ledger, std::span<const std::uint32_t> batches, const CpuShares& shares)
        : shares_{&shares} {
        double samples = 0, cpu_ns = 0, wait_ns = 0;
        for (const std::uint32_t at : batches)
            if (const BatchRow& row = ledger.batches[at]; is_measured(row) && row.size != 0) {
                const Demand demand = measured(row);
                samples += row.size;
                cpu_ns += static_cast<double>(demand.cpu_ns);
                wait_ns += static_cast<double>(demand.wait_ns);
            }
        if (samples > 0) {
            sample_cpu_ns_ = cpu_ns / samples;
            sample_wait_ns_ = wait_ns / samples;
        }
    }
    [[nodiscard]] Demand of(const BatchRow& row) const {
        if (is_measured(row))
            return measured(row);
        if (!sample_cpu_ns_)
            return {.cpu_ns = shares_->without_run_queue(length_of(row))};
        const auto at_most = [&row](double sample_ns, std::int64_t ns) {
            return std::llround(std::min(sample_ns * row.size, static_cast<double>(ns)));
        };
        Demand demand{.cpu_ns = at_most(*sample_cpu_ns_, length_of(row))};
        demand.wait_ns = at_most(sample_wait_ns_, length_of(row) - demand.cpu_ns);
        return demand;
    }

private:
    static std::int64_t length_of(const BatchRow& row) noexcept {
        return bounded_ns(length_ns(row.collate_begin_ns, row.collate_end_ns));
    }
    static bool is_measured(const BatchRow& row) noexcept {
        return row.collate_cpu_ns != no_stamp && row.collate_begin_ns != no_stamp && row.collate_end_ns != no_stamp;
    }
    /// What was neither computing nor waiting for a core was another wait. Where the wait for a core is not known, it
    /// is taken for that.
    static Demand measured(const BatchRow& row) noexcept {
        const std::int64_t ns = length_of(row), cpu_ns = std::clamp<std::int64_t>(row.collate_cpu_ns, 0, ns),
                           queued_ns = row.collate_run_queue_ns == no_stamp ? ns : bounded_ns(row.collate_run_queue_ns);
        return {.cpu_ns = cpu_ns, .wait_ns = std::max<std::int64_t>(ns - cpu_ns - queued_ns, 0)};
    }

    const CpuShares* shares_;
    std::optional<double> sample_cpu_ns_;
    double sample_wait_ns_ = 0;
};

/// How long copies to a device took: of each batch whose copy was timed; of another, as long as of the mean sample.
class CopyTimes {
public:
    explicit CopyTimes(const Ledger& ledger) {
        for (const TransferRow& row : ledger.transfers)
            took_.emplace_back(place_of(row), bounded_ns(length_ns(row.begin_ns, row.end_ns)));
        std::ranges::sort(took_);
        double ns = 0, samples = 0;
        for (const BatchRow& batch : ledger.batches)
            if (const auto took = measured(batch)) {
                ns += static_cast<double>(*took);
                samples += batch.size;
            }
        sample_ns_ = samples > 0 ? ns / samples : 0;
    }
    [[nodiscard]] std::int64_t of(const BatchRow& batch) const {
        const double mean_ns = std::min(sample_ns_ * batch.size, static_cast<double>(most_demand_ns));
        return measured(batch).value_or(bounded_ns(std::llround(mean_ns)));
    }

private:
    using Place = std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>;

    [[nodiscard]] std::optional<std::int64_t> measured(const BatchRow& batch) const {
        const auto found = std::ranges::lower_bound(took_, place_of(batch), {}, &std::pair<Place, std::int64_t>::first);
        return found != took_.end() && found->first == place_of(batch) ? std::optional{found->second} : std::nullopt;
    }

    std::vector<std::pair<Place, std::int64_t>> took_;
    double sample_ns_ = 0;
};

/// How batches went to a device, if its steps were timed.
void note_device(RecordedRun& run, const Ledger& ledger) {
    if (ledger.device_steps.empty() || run.setting.kind == LoaderKind::pytorch)
        return;   // PyTorch's loader has no part in copying
    const auto buffers = number_fact(ledger, facts::device_buffers, TransferPolicy::most_buffers);
    const auto copies = copies_of(ledger.fact(facts::device_copies).value_or(""));
    if (!buffers || *buffers < 1 || !copies) {
        run.unusable = "it does not say how batches were copied to the device";
        return;
    }
    run.device_buffers = static_cast<std::size_t>(*buffers);
    run.copies = *copies;
}

/// Core time that a sample asks of its worker.
std::int64_t cpu_of(const SampleDemand& sample, const RecordedRun& run) {
    std::int64_t cpu_ns = sample.read.cpu_ns + sample.unstamped_ns + run.overhead_ns;
    for (const Demand& stage : sample.stages)
        cpu_ns += stage.cpu_ns;
    return cpu_ns;
}

/// Leaves of `rest_cpu_ns`, which is what batches' workers computed in all, what is not known otherwise. That of single
/// samples may be an estimate: what the batches have left in all is right.
void take_known(RecordedRun& run) {
    std::vector<double> left;
    left.reserve(run.batches.size());
    for (const BatchDemand& batch : run.batches)
        left.push_back(static_cast<double>(batch.rest_cpu_ns - batch.collate.cpu_ns));
    for (const SampleDemand& sample : run.samples)
        left[sample.batch] -= static_cast<double>(cpu_of(sample, run));
    double sum_ns = 0, positive_ns = 0;
    for (const double ns : left) {
        sum_ns += ns;
        positive_ns += std::max(ns, 0.0);
    }
    const double factor = positive_ns > 0 ? std::max(sum_ns, 0.0) / positive_ns : 0;
    for (std::size_t i = 0; i < left.size(); ++i)
        run.batches[i].rest_cpu_ns = bounded_ns(std::llround(std::max(left[i], 0.0) * factor));
}

/// How long after one worker of a PyTorch loader the next begins its first batch of a pass: the mean of whole passes.
std::int64_t worker_gap_ns(const Ledger& ledger, const Window& window, std::size_t num_workers) {
    double sum_ns = 0, gaps = 0;
    std::vector<std::int64_t> begins;   // of a pass's first batches, one of each worker
    const auto end_pass = [&] {
        if (begins.size() > 1) {
            const auto [earliest, latest] = std::ranges::minmax(begins);
            sum_ns += static_cast<double>(bounded_ns(length_ns(earliest, latest)));
            gaps += static_cast<double>(begins.size() - 1);
        }
        begins.clear();
    };
    std::optional<std::uint32_t> epoch;   // of the pass that is whole, as far as it was seen
    for (const std::uint32_t at : window.batches) {
        const BatchRow& row = ledger.batches[at];
        if (row.batch == 0 || row.epoch != epoch) {
            end_pass();
            epoch.reset();
        }
        if (row.batch == 0)
            epoch = row.epoch;
        if (epoch && row.batch < num_workers && row.first_claim_ns != no_stamp)
            begins.push_back(row.first_claim_ns);
    }
    end_pass();
    return gaps > 0 ? bounded_ns(std::llround(sum_ns / gaps)) : 0;
}

/// Mean time from one batch to the next.
double batch_interval_ns(const Window& window) noexcept {
    return static_cast<double>(
               bounded_ns(length_ns(window.steps.front()->draw_begin_ns, end_ns(*window.steps.back())))) /
           static_cast<double>(window.steps.size());
}

void add_samples(RecordedRun& run, const Ledger& ledger, const LoaderRows& loader, const Window& window,
                 const CpuShares& shares, const DeliveryDemands& delivery) {
    const Collating collating{ledger, window.batches, shares};
    const CopyTimes copies{ledger};
    const std::vector<std::int64_t> behind = reads_behind(ledger, ledger.batches[window.batches.front()].pipeline);
    std::uint64_t count = 0;
    for (const std::uint32_t at : window.batches) {
        const BatchRow& batch = ledger.batches[at];
        const Samples rows = loader.samples_of(at);
        if (!is_whole(ledger, rows, batch, run))
            continue;
        count += batch.size;
        if (count > most_samples) {
            run.unusable = "more than " + std::to_string(most_samples) + " samples were recorded";
            return;
        }
        BatchDemand demand{.bytes = std::min(batch.bytes, most_bytes), .size = batch.size};
        if (batch.collate_begin_ns != no_stamp && batch.collate_end_ns != no_stamp) {
            demand.collate = collating.of(batch);
            run.collates = true;
        }
        if (has_worker_processes(run.setting))
            delivery.set(demand, at);
        else if (run.device_buffers != 0)
            demand.transfer.wait_ns = copies.of(batch);
        else if (batch.transfer_issue_ns != no_stamp && batch.transfer_done_ns != no_stamp)
            demand.transfer.wait_ns = bounded_ns(length_ns(batch.transfer_issue_ns, batch.transfer_done_ns));
        else
            demand.transfer.wait_ns = window.transfers_ns[at];   // a loader around this one moves it meanwhile
        for (const std::uint32_t row_at : rows) {
            const SampleRow& row = ledger.samples[row_at];
            SampleDemand sample = demand_of(ledger, row, shares, run.reads_ahead);
            sample.batch = static_cast<std::uint32_t>(run.batches.size());
            sample.behind_ns = bounded_ns(behind[row_at]);
            for (std::uint32_t i = 0; i < row.samples; ++i, ++sample.index)
                run.samples.push_back(sample);
        }
        run.batches.push_back(demand);
    }
    if (has_worker_processes(run.setting))
        take_known(run);
}

std::int64_t own_cpu_ns(const OrderRow& row) {
    const std::int64_t all_ns = bounded_ns(row.ns);
    return row.cpu_ns == no_stamp ? all_ns : std::clamp<std::int64_t>(row.cpu_ns, 0, all_ns);
}

/// What the sampler took for an order of samples: the mean of those computed after the warm-up, else of all.
Demand order_of(const Ledger& ledger, std::uint16_t pipeline, std::int64_t steady_ns, const CpuShares& shares) {
    // Processes that start are no thread that queues for a core: the loop waits until they are ready.
    const bool starts = ledger.pipelines[pipeline].kind == LoaderKind::pytorch;
    double cpu_ns = 0, wait_ns = 0;
    std::size_t count = 0;
    for (const std::int64_t from_ns : {steady_ns, std::numeric_limits<std::int64_t>::min()}) {
        for (const OrderRow& row : ledger.orders)
            if (row.pipeline == pipeline && row.begin_ns >= from_ns) {
                const std::int64_t own_ns = own_cpu_ns(row);
                cpu_ns += static_cast<double>(own_ns);
                const std::int64_t all_ns = bounded_ns(row.ns);
                wait_ns += static_cast<double>(
                    std::max<std::int64_t>((starts ? all_ns : shares.without_run_queue(all_ns)) - own_ns, 0));
                ++count;
            }
        if (count != 0)
            break;
    }
    const auto mean = [count](double sum) {
        return std::llround(sum / static_cast<double>(std::max<std::size_t>(count, 1)));
    };
    return {.cpu_ns = mean(cpu_ns), .wait_ns = mean(wait_ns)};
}

/// Window of the first loader that trained, whose number and setting it sets; empty if none did.
Window window_of_first_trained(RecordedRun& run, const Ledger& ledger, const LoaderRows& rows, std::size_t first_step,
                               std::uint16_t& pipeline) {
    const std::size_t loaders = std::min(ledger.pipelines.size(), most_pipelines);
    Window window;
    for (std::size_t i = 0; i < loaders && window.steps.empty(); ++i) {
        pipeline = static_cast<std::uint16_t>(i);
        std::int64_t since_ns = ledger.start_ns;
        run.setting = setting_of(ledger, pipeline, since_ns);
        window = window_of(ledger, rows, first_step, pipeline, since_ns);
    }
    return window;
}

/// CPU time of the loader, whoever spent it: all drawn batches, including those whose samples were thinned out, and
/// orders.
double loader_cpu_ns(const RecordedRun& run, const Ledger& ledger, std::uint16_t pipeline, const Window& window) {
    const std::size_t drawn = window.batches.size();
    double cpu_ns = 0;
    for (const SampleDemand& sample : run.samples)
        cpu_ns += static_cast<double>(cpu_of(sample, run));
    for (const BatchDemand& batch : run.batches)
        cpu_ns += static_cast<double>(batch.collate.cpu_ns);
    if (!run.batches.empty())
        cpu_ns *= static_cast<double>(drawn) / static_cast<double>(run.batches.size());
    const std::int64_t from_ns = window.steps.front()->draw_begin_ns, to_ns = end_ns(*window.steps.back());
    for (const OrderRow& row : ledger.orders)
        if (row.pipeline == pipeline && row.begin_ns >= from_ns && row.begin_ns < to_ns)
            cpu_ns += static_cast<double>(own_cpu_ns(row));
    return cpu_ns;
}

/// Why the recording has too few whole batches of the `drawn` ones; empty: it has enough.
std::string lack_of_samples(const RecordedRun& run, const Ledger& ledger, std::size_t drawn) {
    if (2 * run.batches.size() < drawn)
        return "only " + std::to_string(run.batches.size()) + " of " + std::to_string(drawn) +
               " batches have all their samples recorded" +
               (ledger.thinned_to() > 1 ? " (thinned to every " + format_ordinal(ledger.thinned_to()) + " batch)" : "");
    return run.batches.empty() ? "no batch was recorded with all its samples" : "";
}

void drop_short_waits(RecordedRun& run) {
    const auto drop = [](Demand& demand) {
        if (demand.wait_ns < least_wait_ns)
            demand.cpu_ns += std::exchange(demand.wait_ns, 0);
    };
    for (SampleDemand& sample : run.samples) {
        drop(sample.read);
        std::ranges::for_each(sample.stages, drop);
    }
    for (BatchDemand& batch : run.batches) {
        drop(batch.collate);
        if (has_worker_processes(run.setting))
            drop(batch.transfer);
    }
    for (StepDemand& step : run.steps) {
        drop(step.compute);
        drop(step.after);
    }
}

}   // namespace

RecordedRun recorded_run(const Ledger& ledger, std::size_t first_step) {
    RecordedRun run;
    const LoaderRows rows{ledger};
    std::uint16_t pipeline = 0;
    Window window = window_of_first_trained(run, ledger, rows, first_step, pipeline);
    if (window.steps.empty()) {
        run.unusable = ledger.pipelines.empty() ? "no loader of drawpoint was recorded"
                                                : "no training step with its batch is left after the warm-up";
        return run;
    }
    const PipelineRow& row = ledger.pipelines[pipeline];
    run.pipeline = row.name;
    if (row.stages.size() > max_stages) {
        run.unusable = "loader " + row.name + " has " + std::to_string(row.stages.size()) +
                       " stages, more than the supported " + std::to_string(max_stages);
        return run;
    }
    run.stages = row.stages;
    if (run.setting.kind == LoaderKind::pytorch) {
        run.unusable = out_of_range("num_workers", run.setting.num_workers, 0, loader_limits::most_workers);
        if (run.unusable.empty())
            run.unusable = out_of_range("num_workers x prefetch_factor", run.setting.prefetch_depth, 1,
                                        loader_limits::most_depth(run.setting));
        if (!run.unusable.empty())
            return run;
    }
    run.persistent_workers = ledger.fact(std::string{facts::persistent_workers_prefix} + row.name) == "true";
    note_device(run, ledger);
    if (!run.unusable.empty())
        return run;
    run.cores = cores_of(ledger);
    run.worker_bytes = worker_bytes;
    run.overhead_ns = overhead_of(ledger);
    run.sleep_cpu_ns =
        static_cast<std::int64_t>(number_fact(ledger, facts::host_sleep_cpu_ns, most_sleep_cpu_ns).value_or(0));
    run.scheduler = scheduler_times(ledger);
    note_passes(run, batches_of(ledger, pipeline));
    // If nothing was read ahead although reads waited, the source's reads cannot be read ahead.
    run.reads_ahead = std::ranges::any_of(ledger.samples, [pipeline](const SampleRow& sample) {
        return sample.pipeline == pipeline && sample.read_begin_ns != no_stamp;
    });

    if (!has_worker_processes(run.setting))   // else receiving the batch includes it
        run.loop_wake_ns = loop_wake_ns(ledger, window.steps, window.batches);
    run.read_wake_ns = read_wake_ns(ledger, pipeline);
    const std::size_t drawn = window.batches.size();
    // Batches are admitted in the sampler's order; epoch numbers may start again.
    std::ranges::sort(window.batches, {}, [&ledger](std::uint32_t at) {
        const BatchRow& batch = ledger.batches[at];
        return std::tuple{batch.admitted_ns, batch.epoch, batch.batch};
    });
    run.first_in_pass = ledger.batches[window.batches.front()].batch * run.setting.batch_size;
    CpuShares shares{ledger, pipeline};
    run.cpu_measured = shares.measured();
    run.order = order_of(ledger, pipeline, window.steps.front()->draw_begin_ns, shares);
    if (has_worker_processes(run.setting) && !run.persistent_workers)
        run.worker_gap_ns = worker_gap_ns(ledger, window, run.setting.num_workers);
    const DeliveryDemands delivery{ledger, window.batches, window.transfers_ns, shares.slowdown(),
                                   batch_interval_ns(window) * static_cast<double>(run.setting.num_workers)};
    add_samples(run, ledger, rows, window, shares, delivery);
    if (!run.unusable.empty())
        return run;
    // Of a loader in other processes, this one's CPU time has the unpickling.
    add_steps(run, ledger, window.steps,
              has_worker_processes(run.setting) ? delivery.received_cpu_ns()
                                                : loader_cpu_ns(run, ledger, pipeline, window));
    drop_short_waits(run);

    const double cached = number_fact(ledger, facts::cache_bytes, most_bytes).value_or(0);
    const bool in_memory = ledger.fact(facts::cache_origin).value_or("") == "memory";
    run.other_bytes = run.pass_samples * sizeof(std::uint64_t) + static_cast<std::uint64_t>(in_memory ? cached : 0);
    run.unusable = lack_of_samples(run, ledger, drawn);
    return run;
}

}   // namespace drawpoint
