#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint {

class PrefetchCore;   // shared by the loader, its passes and its workers; pipeline/loader/threads/prefetch_core.hpp

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
