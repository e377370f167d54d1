#pragma once

#include <chrono>
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

class DevicePass;     // a pass whose batches go to a device; pipeline/torch/device_loader.cpp
class PrefetchCore;   // shared by the loader, its passes and its workers; pipeline/loader/threads/prefetch_core.hpp

/// A prefetching loader with awaitable draws: workers make the samples of up to D batches ahead, directly in batch
/// memory that is reused. D is options().prefetch_depth; for this and other words see LoaderOptions. The source, the
/// sampler and the runtime must outlive it. Use it and its passes, their construction and destruction included, from
/// the loop's thread (or, without coroutines, one thread at a time); only request_stop() may be called from any. In a
/// forked child, a loader with threads of its own can only be destroyed: epoch(), a draw that would wait, restore() and
/// reconfigure() throw std::logic_error.
class DataLoader {
public:
    using Batch = drawpoint::Batch;

    /// One pass over an epoch; it is *used up* once no batch is left to draw, failed or not. Destroying it, or
    /// assigning over it, before that abandons what is prefetched, waits for nothing, and cancels a suspended draw. It
    /// must not outlive the runtime. Moved from, it may only be assigned to or destroyed; once the loader is destroyed,
    /// only destroyed.
    class Pass {
    public:
        using Batch = drawpoint::Batch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        /// All batches of the pass, drawn or not; never nullopt.
        [[nodiscard]] std::optional<std::size_t> size() const noexcept;
        /// Batches of the pass that are drawn, those before a restore() included. A draw that threw a SampleError
        /// counts.
        [[nodiscard]] std::size_t drawn() const noexcept;
        /// Draws the next batch; after the last one always nullopt. If the batch is ready, this takes about 20 ns and
        /// neither locks nor allocates; else it spins for up to 80 µs and then suspends. Without workers it makes the
        /// batch itself. Not in a conditional expression: g++ 12 copies the bytes of `c ? x : co_await next()` and
        /// gives the batch back twice. Where it suspends it can be cancelled, through Asio's cancellation slots and by
        /// its awaitable operators; a coroutine passes on only `terminal` if it does not ask for more types. A
        /// cancelled draw takes nothing: the next one gives the same batch. Throws
        /// - SampleError for a batch with failed samples, naming the one with the smallest index (the recording has
        ///   all); that batch and its other samples are lost, the next call gives the next one;
        /// - std::system_error with asio's operation_aborted once the loader is stopped, or if the draw is cancelled or
        ///   its pass destroyed;
        /// - std::logic_error naming prefetch_depth while the user holds all D + 1 batches, or if another draw of this
        ///   loader is suspended;
        /// - what the sampler throws: if it has no parts, the first draw computes the order, or blocks the thread until
        ///   a worker has. The next call tries again.
        [[nodiscard]] Awaitable<std::optional<Batch>> next();
        /// next() that waits no longer than `timeout`, which may be ≤ 0. A batch that is ready is returned in any case.
        /// Else it throws std::system_error with asio's timed_out, and like a cancelled draw it has taken nothing. What
        /// blocks the loop's thread (spinning, making batches without workers, computing an order or waiting for a
        /// worker that does) is not interrupted.
        [[nodiscard]] Awaitable<std::optional<Batch>> next_for(std::chrono::nanoseconds timeout);
        /// next() for callers that are not coroutines; throws as that does, and cannot be cancelled. Blocks the thread
        /// and does not run the event loop, so inside a coroutine of the same runtime it would hold up all others: use
        /// next() there.
        [[nodiscard]] std::optional<Batch> next_blocking();
        /// The next batch if it is ready, else nullopt: then next() waits, or has something to tell (an error, skipped
        /// samples, the end of the pass). Does not wait or allocate. Throws operation_aborted if the loader is stopped
        /// meanwhile.
        [[nodiscard]] std::optional<Batch> try_next();
        /// Blocks until the next draw need not wait, but no longer than `timeout` (≤ 0: not at all), an hour, or until
        /// a signal is handled. Spins first, and without workers makes the batch, as next() does. False: it would still
        /// wait. From then on until a draw, ready_descriptor() becomes readable as soon as it need not: for programs
        /// with an event loop of their own, which then call this again; peek() has nothing meanwhile. Throws as next(),
        /// but no SampleError, or std::system_error if the system gives no descriptor.
        [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout);
        /// See wait_for(). An eventfd of the loader, only to be waited for (poll, epoll), not read or closed; it may be
        /// readable once too often. The same for all passes; valid as long as the loader and its passes. Throws
        /// std::system_error.
        [[nodiscard]] int ready_descriptor();
        /// Looks at a batch that is ready, but not drawn: that of the next draw, or of the one `ahead` draws later;
        /// `ahead` ≤ D. It may be read, e.g. copied to a device, until it is drawn and given back, or until the pass
        /// ends before that; then its memory is written again, or freed. nullopt if it is not ready, or if a draw up
        /// to it has something to tell. Takes some ns for each draw ahead.
        [[nodiscard]] std::optional<ReadyBatch> peek(std::size_t ahead = 0) const noexcept;

    private:
        friend class DataLoader;
        friend class DevicePass;
        Pass(PrefetchCore* core, std::uint64_t serial) noexcept;
        PrefetchCore* core_;
        std::uint64_t serial_;
    };

    /// Workers start with the first call of epoch(). `name` is the loader's label in recordings and reports; a number
    /// is appended if another loader has it ("train (2)"). A sampler of size 0 makes passes without batches. To plan
    /// memory for reads ahead, the constructor looks up the sizes of up to 32 of the source's files; a size that cannot
    /// be had is left out. Throws std::invalid_argument as check_options(), for a sample layout that is invalid or
    /// varies without `LoaderOptions::collate`, for a source without stages or with more than max_stages, for a
    /// memory_budget that even the smallest loader exceeds, and for passes of 2^32 batches or more; std::length_error
    /// if the recorder has named 65536 loaders, alive or not; std::bad_alloc. Without `LoaderOptions::slot_memory`,
    /// memory of batches is allocated by workers, later: see SampleError.
    DataLoader(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, std::string_view name = "train");
    DataLoader(Runtime&, const SampleSource&&, const Sampler&, const LoaderOptions&, std::string_view = "") = delete;
    DataLoader(Runtime&, const SampleSource&, const Sampler&&, const LoaderOptions&, std::string_view = "") = delete;
    /// Stops and joins workers and readers: blocks until the samples, orders, collate functions and reads in progress
    /// have ended (reads by io_uring are cancelled). A suspended next() ends with operation_aborted. Batches still held
    /// stay valid.
    ~DataLoader();
    DataLoader(const DataLoader&) = delete;
    DataLoader& operator=(const DataLoader&) = delete;

    /// Begins a pass over epoch `e`, and admits its first batches if the sampler has parts (OrderParts) or the pass
    /// before has prefetched into this epoch (`EpochOptions::next_epoch`); else a worker computes the order first, or
    /// the first draw does. What was prefetched for another epoch is abandoned. Waits for nothing, and computes no
    /// order. Throws std::logic_error unless the pass before is used up or destroyed, std::invalid_argument for a
    /// `first_batch` beyond the pass. The first call starts the workers: as many as the system allows, and if it allows
    /// none, next() makes the batches itself. After request_stop() it still returns a pass, whose next() throws.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});

    /// Changes numbers while the loader runs. Every sample is still drawn once, ordered batches stay in order, and the
    /// contents of a batch never depend on these numbers. Call it between two draws, not while a next() is suspended
    /// (this is not checked); after request_stop() it does nothing. Takes some µs, more if threads are started. Each
    /// change that takes effect is recorded as a SettingRow. Throws std::invalid_argument as the constructor does, or
    /// std::bad_alloc; then nothing has changed.
    /// - num_workers: surplus workers finish the samples at hand and rest; they come back before new threads are
    ///   started. If the system refuses threads, `counters().workers_running` is smaller.
    /// - prefetch_depth: batches beyond a smaller depth are still drawn, then their memory is freed. While the user
    ///   holds the new depth + 1 or more, next() throws std::logic_error.
    /// - memory_budget: depth and reads are planned again from what was asked for. Memory beyond a smaller budget is
    ///   freed as batches come back.
    /// - order: for passes of which nothing is prefetched yet.
    ///
    /// With a memory_budget, numbers that become smaller do so at once. Numbers that grow wait until the others have
    /// freed enough memory; each following draw checks that, and the row is recorded when they have grown.
    void reconfigure(const LoaderChange&);

    /// The position: which epoch, and which of its batches are drawn. At most 256 bytes (a few more if batches come out
    /// of order in passes of more than 10^8), to be stored with a checkpoint. It depends only on what is drawn, not on
    /// workers, depth or what is prefetched. The first call computes fingerprints: it looks up to 64 files, and
    /// computes the whole order of epoch 0, but of samplers with parts not beyond 2^17 samples. Throws what the sampler
    /// and the source's path() throw, and std::bad_alloc.
    [[nodiscard]] std::string state() const;
    /// Goes on where state() was: the next pass of the same epoch gives the batches that were not drawn. It may be of a
    /// later epoch, which leaves them out, but not of an earlier one. `max_errors` counts anew. Workers, depth, order
    /// of drawing and memory may differ; and if all batches were drawn in order, batch_size and the number of ranks of
    /// a DistributedSampler, too, if the position is after a whole number of new batches. What is random in a sample
    /// does not depend on any of them. Call it between two passes: what is prefetched is abandoned. Throws
    /// std::invalid_argument for bytes that are no state, damaged, or of another version; for a state of another data
    /// set (names and sizes of up to 64 files; of a data set without files, only the number of samples), order of
    /// samples, seed or drop_last; std::logic_error during a pass; and what state() throws. Then nothing has changed.
    void restore(std::string_view state);

    /// Ends every pending and later next() with operation_aborted, except that of a pass that is used up. Does not wait
    /// for workers. Final. Any thread; idempotent.
    void request_stop() noexcept;

    /// The options as asked for in the constructor and reconfigure(), reduced to the memory budget; numbers that still
    /// wait for memory (see reconfigure()) are included. `order` is that of the next pass of which nothing is
    /// prefetched yet. reconfigure() changes the referenced object.
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    /// How memory is divided, as far as that is known before the first sample. reconfigure() changes the referenced
    /// object.
    [[nodiscard]] const MemoryPlan& memory_plan() const noexcept;
    [[nodiscard]] const SampleLayout& layout() const noexcept;   ///< of one sample
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept;
    /// The most workers that reconfigure() accepts, if the loader was made with workers: `RuntimeOptions::max_threads`,
    /// or 256. Without workers it accepts none, whatever this says.
    [[nodiscard]] std::size_t most_workers() const noexcept;
    /// Now, by the clock of the recorder; no_stamp without `RuntimeOptions::record`.
    [[nodiscard]] std::int64_t now_ns() const noexcept;
    [[nodiscard]] LoaderCounters counters() const noexcept;   ///< locks the loader's mutex; O(slots)
    /// Makes digest() cover all batches drawn from now on, from an empty digest. Each draw then reads the batch's data
    /// once, about 0.1 ns a byte.
    void enable_digest() noexcept;
    /// A digest of the indices, targets and data (of collated batches: shape and data of every array) drawn since
    /// enable_digest(), in order of drawing: 16 hex digits, all 0 if nothing was drawn since or it was never enabled.
    /// The same for the same bytes on every little-endian machine; out of order it depends on timing.
    [[nodiscard]] std::string digest() const;

private:
    PrefetchCore* core_;
};

}   // namespace drawpoint
