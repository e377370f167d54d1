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
class PrefetchCore;   // shared by the loader, its passes and its workers; pipeline/loader/threads/prefetch_core.hpp

/// Options of a DataLoader. Those of LoaderChange can be changed while the loader runs.
struct LoaderOptions {
    std::size_t batch_size = 1;   ///< samples per batch, 1 … 2^20
    /// Threads making samples, 0 … 256; 0: the loop's thread makes them inside next(). Workers beyond
    /// `usable_cores()` rest and free their scratch while samples wait for cores and for hardly anything else. So one
    /// sample must not wait for another.
    std::size_t num_workers = 1;
    std::size_t prefetch_depth = 2;   ///< D: batches admitted and not yet drawn, 1 … 55; 2 = double buffering
    std::uint64_t seed = 0;           ///< for everything random in a sample
    bool drop_last = false;   ///< leaves a short last batch out; a data set smaller than one batch still gives one
    OrderRule order{};        ///< the order in which finished batches are drawn
    // For sources that read from storage (`SampleSource::reads`).
    /// Reads in flight, 0 … 4096, regardless of num_workers; 0: the workers read for themselves.
    std::size_t read_concurrency = 64;
    std::chrono::nanoseconds read_deadline{0};   ///< for one read with its retries, 0 … 24 h; 0: none
    /// Retries of a read that failed with EIO, ESTALE, EINTR or EAGAIN, 0 … 100; after 10 ms, then doubling up to 1
    /// s.
    std::size_t read_retries = 3;
    /// Most bytes that batches, samples read ahead, workers' scratch, the order and a cache in memory may take; 0: no
    /// limit. To fit, read_concurrency is reduced until its reads take at most a sixteenth of the budget, then
    /// prefetch_depth, then read_concurrency again. Where samples are collated, prefetch_depth stays and batches are
    /// admitted by their bytes; one batch may then exceed the budget, and while batch sizes grow one for each worker.
    /// Not counted: with a cache in a file, each worker's buffer for the largest sample and 8 bytes per sample of the
    /// data set; and some hundred bytes for each read that was asked for, even if read_concurrency is reduced.
    std::uint64_t memory_budget = 0;
    /// Makes each batch from its finished samples, on the worker that finished the last one. null: samples are written
    /// directly to their place in the batch, so all must have the same shape. Must outlive the loader.
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

/// Default options with the numbers of this setting.
[[nodiscard]] LoaderOptions options_of(const LoaderSetting&) noexcept;

/// Checks what can be checked without a source. Throws std::invalid_argument naming field and value ("prefetch_depth
/// must be at least 1, got 0"). `max_threads`: as in RuntimeOptions.
void check_options(const LoaderOptions&, std::size_t max_threads = 0);

/// What `DataLoader::reconfigure` changes; absent numbers stay as they are. Ranges as in LoaderOptions.
struct LoaderChange {
    std::optional<std::size_t> num_workers{};      ///< ≥ 1; for a loader made without workers only 0
    std::optional<std::size_t> prefetch_depth{};   ///< as asked for: a memory budget may allow less
    std::optional<std::uint64_t> memory_budget{};
    std::optional<OrderRule> order{};
    bool operator==(const LoaderChange&) const = default;
};

/// Activity and memory of a loader since it was made. Exact when no batch is in flight.
struct LoaderCounters {
    std::uint64_t batches_taken = 0, batches_abandoned = 0, samples_taken = 0;
    /// Slots that took new memory because the user still held the old when the batch came back.
    std::uint64_t slots_replaced = 0;
    std::uint64_t suspensions = 0;   ///< draws that suspended or, in next_blocking(), blocked
    std::uint64_t worker_wakes = 0, worker_parks = 0, turns = 0;
    std::uint64_t handler_fallbacks = 0;   ///< wake-ups that did not fit the fixed buffer and allocated; normally 0
    std::uint64_t slots_bytes = 0;         ///< batch memory held by the loader now
    /// Worker threads that exist, including resting ones; fewer than asked for if the system refused some.
    std::uint64_t workers_running = 0;
    std::uint64_t reads_ahead = 0;    ///< reads done by readers instead of workers
    std::uint64_t read_retries = 0;   ///< reads repeated after a transient error (see LoaderOptions::read_retries)
    std::uint64_t reads_late = 0;     ///< reads given up at the deadline while a reader was still at them
    std::uint64_t read_bytes = 0;     ///< memory held now by samples read ahead
    /// Memory of the largest batch so far; before the first one as planned, or 0.
    std::uint64_t largest_batch_bytes = 0;
    /// The most memory that the loader held, in the parts of memory_plan(): workers as planned, the rest as counted.
    std::uint64_t peak_bytes = 0;
    /// The peak_bytes to be expected: memory_plan().planned_bytes, corrected by what was measured.
    std::uint64_t expected_bytes = 0;
    /// When the batch drawn last was complete, by the recorder's clock; no_stamp unless loaders record.
    std::int64_t last_offered_ns = no_stamp;
};

/// A prefetching loader with awaitable draws: workers make the samples of up to D batches ahead, directly in batch
/// memory that is reused. The source, the sampler and the runtime must outlive it. Call everything from the loop's
/// thread, except request_stop().
class DataLoader {
public:
    using Batch = drawpoint::Batch;

    /// One pass over an epoch. Movable. Destroying it before its last batch is drawn abandons what is prefetched. It
    /// must not outlive the runtime; once the loader is destroyed, it may only be destroyed.
    class Pass {
    public:
        using Batch = drawpoint::Batch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        /// Batches in the pass.
        [[nodiscard]] std::optional<std::size_t> size() const noexcept;
        /// Draws the next batch; after the last one always nullopt. If the batch is ready, this takes about 20 ns and
        /// neither locks nor allocates; else it spins for up to 80 µs and then suspends. Without workers it makes the
        /// batch itself. Throws
        /// - SampleError for a batch with a failed sample; that batch is used up, the next call gives the next one;
        /// - std::system_error with asio's operation_aborted once the loader is stopped;
        /// - std::logic_error naming prefetch_depth while the user holds all D + 1 batches, or if another next() of
        ///   this pass is waiting.
        [[nodiscard]] Awaitable<std::optional<Batch>> next();
        /// next() for callers that are not coroutines: blocks. Not inside a coroutine of the same runtime.
        [[nodiscard]] std::optional<Batch> next_blocking();

    private:
        friend class DataLoader;
        Pass(PrefetchCore* core, std::uint64_t serial) noexcept;
        PrefetchCore* core_;
        std::uint64_t serial_;
    };

    /// Workers start, and the first batches are admitted, with the first call of epoch(). `name` is the pipeline's name
    /// in the recording; a number is appended if another loader has it. With a source that reads ahead, looks up the
    /// sizes of up to 32 files. Throws std::invalid_argument as check_options(), and for a layout that does not fit the
    /// options, or a memory_budget that even the smallest loader exceeds.
    DataLoader(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, std::string_view name = "train");
    DataLoader(Runtime&, const SampleSource&&, const Sampler&, const LoaderOptions&, std::string_view = "") = delete;
    DataLoader(Runtime&, const SampleSource&, const Sampler&&, const LoaderOptions&, std::string_view = "") = delete;
    /// Stops and joins the workers: blocks until the stages and collate functions that are running have returned. A
    /// suspended next() ends with operation_aborted.
    ~DataLoader();
    DataLoader(const DataLoader&) = delete;
    DataLoader& operator=(const DataLoader&) = delete;

    /// Begins a pass over epoch `e`. Computes the order of samples, unless the pass before has prefetched into this
    /// epoch (`EpochOptions::next_epoch`). Throws std::logic_error unless the pass before is used up or destroyed, and
    /// what the sampler throws.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});

    /// Changes numbers while the loader runs. Every sample is still drawn once, ordered batches stay in order, and the
    /// contents of a batch never depend on these numbers. Call it while no next() waits; after request_stop() it does
    /// nothing. Takes some µs, more if threads are started. Each change that takes effect is recorded as a SettingRow.
    /// Throws std::invalid_argument as the constructor does, or std::bad_alloc; then nothing has changed.
    /// - num_workers: surplus workers finish the samples at hand, free their scratch and rest; they come back before
    ///   new threads are started. If the system refuses threads, `counters().workers_running` is smaller.
    /// - prefetch_depth: batches beyond a smaller depth are still drawn, then their memory is freed.
    /// - memory_budget: depth and reads are planned again from what was asked for. Memory beyond a smaller budget is
    ///   freed as batches come back. Under a budget, what increases does so at a later draw, when there is room.
    /// - order: for passes of which nothing is prefetched yet.
    void reconfigure(const LoaderChange&);

    /// Ends every pending and later next() with operation_aborted. Any thread; idempotent.
    void request_stop() noexcept;

    /// The options in force: as asked for in the constructor and reconfigure(), reduced to the memory budget. `order`
    /// is that of the next pass of which nothing is prefetched yet.
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    /// How memory is divided, as far as that is known before the first sample.
    [[nodiscard]] const MemoryPlan& memory_plan() const noexcept;
    [[nodiscard]] const SampleLayout& layout() const noexcept;   ///< of one sample
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept;
    [[nodiscard]] std::size_t most_workers() const noexcept;   ///< the most that reconfigure() accepts
    [[nodiscard]] LoaderCounters counters() const noexcept;    ///< locks the loader's mutex; O(slots)
    /// Makes digest() cover all that is drawn from now on; call it before the first pass. Costs a pass over the data of
    /// each batch drawn, about 0.1 ns a byte.
    void enable_digest() noexcept;
    /// A digest of the indices, targets and data drawn, in order of drawing: 16 hex digits.
    [[nodiscard]] std::string digest() const;

private:
    PrefetchCore* core_;
};

}   // namespace drawpoint
