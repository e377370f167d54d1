#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <drawpoint/pipeline/loader/batch_slots.hpp>
#include <drawpoint/pipeline/loader/batch_source.hpp>
#include <drawpoint/pipeline/loader/loader_setting.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>
#include <drawpoint/pipeline/loader/runtime.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint {

class Collate;        // collate.hpp
class PrefetchCore;   // what the loader, its passes and its workers share; pipeline/prefetch_core.hpp

struct LoaderOptions {
    std::size_t batch_size = 1;   ///< samples per batch, 1 … 2^20
    /// Threads making samples; 0: the loop's own thread does it inside `next()`. Once samples were seen to wait for
    /// cores and for nothing else, those beyond `usable_cores()` rest, with their scratch given up, until samples wait otherwise;
    /// so a sample must not wait for another one.
    std::size_t num_workers = 1;
    std::size_t prefetch_depth = 2;   ///< D: batches admitted and not yet drawn, 1 … 55; 2 = double buffering
    std::uint64_t seed = 0;           ///< of everything random in a sample
    bool drop_last = false;   ///< leaves a short last batch out; a data set smaller than one batch still gives one
    OrderRule order{};        ///< in which order finished batches are drawn
    // Of sources that read from storage (`SampleSource::reads`).
    std::size_t read_concurrency =
        64;   ///< reads in flight, whatever num_workers is; 0: the workers read for themselves
    std::chrono::nanoseconds read_deadline{0};   ///< of one read, its retries included; 0: none
    std::size_t read_retries = 3;                ///< of a read that failed with EIO or ESTALE, backing off
    /// Most bytes of batches, samples in flight, workers' scratch and a cache in memory; 0: none. read_concurrency is
    /// made smaller until its reads fit a sixteenth, then prefetch_depth, then read_concurrency until all fits. Where
    /// samples are collated prefetch_depth stays, batches are admitted by their bytes, and one batch may exceed it,
    /// with several workers at most one each while sizes grow. Not planned, hence besides: of a cache in a file, room
    /// for its largest sample in each worker and 8 bytes for each sample of the data set; and some hundred bytes for each
    /// read that read_concurrency asks for, however few of them it leaves.
    std::uint64_t memory_budget = 0;
    /// Makes each batch of its finished samples, by the worker that finished the last; null: samples are made at their
    /// place in the batch, which takes one shape for all. Outlives the loader.
    const Collate* collate = nullptr;

    [[nodiscard]] LoaderSetting setting() const noexcept {
        return {.num_workers = num_workers,
                .prefetch_depth = prefetch_depth,
                .batch_size = batch_size,
                .order = order,
                .read_concurrency = read_concurrency,
                .memory_budget = memory_budget};
    }
};
static_assert(std::is_trivially_destructible_v<LoaderOptions>);

/// A loader of this setting, else as LoaderOptions begins.
[[nodiscard]] LoaderOptions options_of(const LoaderSetting&) noexcept;

/// What every loader refuses, whatever its source: throws std::invalid_argument naming field and value
/// ("prefetch_depth must be at least 1, got 0"). `max_threads`: as in RuntimeOptions.
void check_options(const LoaderOptions&, std::size_t max_threads = 0);

/// What `DataLoader::reconfigure` changes; what is absent stays. Ranges are those of LoaderOptions.
struct LoaderChange {
    std::optional<std::size_t> num_workers{};      ///< ≥ 1; of a loader without workers: 0
    std::optional<std::size_t> prefetch_depth{};   ///< as asked for: a budget may leave less
    std::optional<std::uint64_t> memory_budget{};
    std::optional<OrderRule> order{};
    bool operator==(const LoaderChange&) const = default;
};

/// What a loader did since it was made. Counters, exact when no batch is in flight.
struct LoaderCounters {
    std::uint64_t batches_taken = 0, batches_abandoned = 0, samples_taken = 0;
    std::uint64_t slots_replaced = 0;   ///< memory still held by the user when its batch came back
    std::uint64_t suspensions = 0;      ///< draws that had to wait parked
    std::uint64_t worker_wakes = 0, worker_parks = 0, turns = 0;
    std::uint64_t handler_fallbacks = 0;   ///< wake-ups that did not fit the fixed buffer and allocated; 0
    std::uint64_t slots_bytes = 0;         ///< batch memory held by the loader now
    std::uint64_t workers_running =
        0;   ///< threads really there, also those that rest; fewer than asked when the system refused
    std::uint64_t reads_ahead = 0;    ///< reads that ended before or beside the workers, not by them
    std::uint64_t read_retries = 0;   ///< reads repeated after EIO or ESTALE
    std::uint64_t reads_late = 0;     ///< given up at the deadline with a reader still at it
    std::uint64_t read_bytes = 0;     ///< memory held now by what is read ahead
    std::uint64_t largest_batch_bytes =
        0;   ///< memory that the largest batch so far took; before the first the plan's, or 0
    std::uint64_t peak_bytes =
        0;   ///< most memory the loader held, as memory_plan() divides it: workers as planned, the rest counted
    std::uint64_t expected_bytes =
        0;   ///< what peak_bytes is likely to come to: memory_plan().planned_bytes corrected by what was seen
    std::int64_t last_offered_ns =
        no_stamp;   ///< when the batch drawn last was complete, of the recorder's clock; only where loaders record
};

/// An awaitable, prefetching loader: workers make the samples of up to D batches ahead, straight into recycled batch memory.
/// The source, the sampler and the runtime outlive it. Everything here is called from the loop's thread, except request_stop().
class DataLoader {
public:
    using Batch = drawpoint::Batch;

    /// One pass over an epoch. Movable; destroying it abandons what was prefetched and not drawn (unless the next epoch's pass
    /// takes it over). A pass may outlive neither the runtime nor be used after the loader's destruction.
    class Pass {
    public:
        using Batch = drawpoint::Batch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        /// Batches in the pass.
        [[nodiscard]] std::optional<std::size_t> size() const noexcept;
        /// The draw. Ready batch: about 20 ns, no lock, no allocation; else it helps nobody, spins for some µs and suspends.
        /// nullopt after the last batch, for ever. Throws SampleError for a batch with a failed sample (the batch is used up,
        /// the next call gives the next one), asio operation_aborted (as std::system_error) once stopped, and
        /// std::logic_error naming prefetch_depth while the user holds all D + 1 batches.
        [[nodiscard]] Awaitable<std::optional<Batch>> next();
        /// next() for threads without a coroutine: waits blocking. Not inside a coroutine of the same runtime.
        [[nodiscard]] std::optional<Batch> next_blocking();

    private:
        friend class DataLoader;
        Pass(PrefetchCore* core, std::uint64_t serial) noexcept;
        PrefetchCore* core_;
        std::uint64_t serial_;
    };

    /// Starts the workers and admits the first batches when the first pass is asked for. Throws as `check_options`, also of
    /// a memory_budget that the smallest loader exceeds. `name` is the pipeline's in the recording, with a number where
    /// another loader has it.
    DataLoader(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, std::string_view name = "train");
    DataLoader(Runtime&, const SampleSource&&, const Sampler&, const LoaderOptions&, std::string_view = "") = delete;
    DataLoader(Runtime&, const SampleSource&, const Sampler&&, const LoaderOptions&, std::string_view = "") = delete;
    /// Stops and joins: bounded by the longest running stage or collate function. A suspended next() then ends with
    /// operation_aborted.
    ~DataLoader();
    DataLoader(const DataLoader&) = delete;
    DataLoader& operator=(const DataLoader&) = delete;

    /// A pass over epoch `e`. The pass before must be used up or destroyed. Cheap when the pass before prefetched into it.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});

    /// Runs on with other numbers, without a stop: every sample is still drawn once, in order where batches are, and what
    /// a batch holds never depends on these numbers. While no next() waits; after request_stop() nothing happens.
    /// num_workers: who is too many sleeps after the samples at hand, with its scratch given up, and comes back first;
    /// threads that the system refuses are missing in `counters().workers_running`. prefetch_depth: batches beyond a
    /// smaller one are drawn, then their memory is given up. memory_budget: depth and reads are planned again from what
    /// was asked for; what is held beyond a smaller one is given up as batches come back. Under a budget, what there is to
    /// be more of begins at a later draw, once there is less of the rest. order: of the passes of which
    /// nothing is prefetched yet. Each change in effect is a SettingRow in the recording.
    /// Throws std::invalid_argument as the constructor does, and std::bad_alloc; then nothing has changed. Some µs, more
    /// where threads start.
    void reconfigure(const LoaderChange&);

    /// Ends every pending and later next() with operation_aborted. Idempotent, any thread, noexcept.
    void request_stop() noexcept;

    /// As the budget leaves them, and reconfigure(): `order` of the next pass of which nothing is prefetched yet.
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    /// What memory it will take, as far as that can be told before the first sample.
    [[nodiscard]] const MemoryPlan& memory_plan() const noexcept;
    [[nodiscard]] const SampleLayout& layout() const noexcept;   ///< of one sample
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept;
    [[nodiscard]] std::size_t most_workers() const noexcept;   ///< that reconfigure() takes
    [[nodiscard]] LoaderCounters counters() const noexcept;
    /// A rolling digest of everything drawn so far: indices, targets and data in order of drawing (only when asked for in time:
    /// `enable_digest()` before the first pass; costs a pass over the data per draw). 16 hex digits.
    void enable_digest() noexcept;
    [[nodiscard]] std::string digest() const;

private:
    PrefetchCore* core_;
};

}   // namespace drawpoint
