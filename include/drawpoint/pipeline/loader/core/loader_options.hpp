#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <drawpoint/instrumentation/ledger/rows.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

class Collate;          // collate.hpp
struct SlotAllocator;   // batch_slots.hpp

/// Is told that a loop waits too long for a batch.
class StallObserver {
public:
    /// `what`: in lines, how long which loader's loop has waited, and what each worker has been at. Called by a thread
    /// of the loader's, which its destructor joins; it must not destroy the loader.
    virtual void stalled(std::string_view what) noexcept = 0;

protected:
    ~StallObserver() = default;
};

/// Options of a DataLoader. Those of LoaderChange can be changed while the loader runs.
///
/// Words used here and in DataLoader: a *slot* is memory for one batch. A batch is *admitted* when it gets a slot and
/// its samples may be made, *complete* when all are made, and *drawn* when next() returns it; the slot is free again
/// when that `Batch` is destroyed. A *worker* makes samples; it *sleeps* while there is nothing to make, and *rests*,
/// with its scratch freed, while it is not wanted. A *reader* reads the files of admitted batches before workers need
/// them.
struct LoaderOptions {
    std::size_t batch_size = 1;   ///< samples per batch, 1 … 2^20
    /// Threads that make samples, 0 … `RuntimeOptions::max_threads` (256 by default). 0: the loop's thread makes each
    /// batch inside next(), and nothing is made ahead. While samples only compute, that is hardly wait for anything but
    /// a core, workers beyond `usable_cores()` rest. As any of the workers may rest, making a sample must never wait
    /// until another sample is made.
    std::size_t num_workers = 1;
    /// D: the number of batches made ahead, 1 … 55; 2 = double buffering. The loader has D + 1 slots, and each batch
    /// that the user holds takes one: D batches are made ahead while the user holds one, D - 1 while the user holds
    /// two. While the user holds all D + 1, next() throws std::logic_error. Without workers, D has only this effect.
    std::size_t prefetch_depth = 2;
    std::uint64_t seed = 0;   ///< for everything random in a sample; a sampler has a seed of its own
    bool drop_last = false;   ///< leaves a short last batch out; a data set smaller than one batch still gives one
    OrderRule order{};        ///< the order in which finished batches are drawn
    /// What becomes of a batch with samples that cannot be made. Failures count where their batch is drawn, so what a
    /// pass gives does not depend on workers or timing. Without a sample to substitute, and for a failure of the whole
    /// batch ("batch memory", "collate"), the draw throws in any case.
    OnError on_error = OnError::raise;
    /// Most samples that `on_error` may skip or substitute in a pass; the batch that exceeds it is raised, and so is
    /// each later one with a failure. Absent: 0.1 % of the pass's samples, but at least 10.
    std::optional<std::size_t> max_errors{};
    // Only for sources that can be read ahead (`SampleSource::reads`).
    /// Most reads in flight ahead of the workers, 0 … 4096, whatever num_workers is, also with 0 workers, but no more
    /// than a quarter of the files that the process may have open; 0: nothing is read ahead. In any case samples are
    /// read ahead only while reads are found to wait for storage; else a worker reads the sample that it is about to
    /// make. The readers are one thread with an io_uring or, where that is not possible (`read_backend`), up to this
    /// many threads, started when needed. Samples read or being read, at most twice this number, are held in memory.
    std::size_t read_concurrency = 64;
    /// Time limit for the read of one sample, by reader or worker, with its retries, 0 … 24 h; 0: none. A read that
    /// takes longer fails its sample with std::errc::timed_out. A worker that waits for a reader gives up at the
    /// deadline; a worker's own read cannot be interrupted, and fails when it has ended.
    std::chrono::nanoseconds read_deadline{0};
    /// Retries of a read, by reader or worker, that failed with EIO, ESTALE, EINTR or EAGAIN, 0 … 100; the first after
    /// 10 ms, then after twice the time of the one before, at most 1 s; none that would begin after the deadline.
    std::size_t read_retries = 3;
    /// Most bytes that batches, samples read ahead, workers' stacks and scratch (planned as 2 MiB a worker), the
    /// sampler's order of indices and a cache in memory may take together; 0: no limit. To fit, read_concurrency is
    /// reduced until samples read ahead take at most a sixteenth of the budget, then prefetch_depth, down to 1, then
    /// read_concurrency again. Both times read_concurrency stays at least num_workers, or what was asked for if that is
    /// less. If the budget is still too small, DataLoader's constructor throws std::invalid_argument with the bytes
    /// that are missing. With `collate`, a batch's size is known only once it is made: prefetch_depth stays, and a
    /// batch is admitted when it is expected to fit. Memory may then exceed the budget by one batch, or by one batch
    /// for each worker while batches become larger than all before.
    /// Not counted: with a cache in a file, each worker's buffer for the largest sample and 8 bytes per sample of the
    /// data set; and some hundred bytes for each read that was asked for, even if read_concurrency is reduced.
    std::uint64_t memory_budget = 0;
    /// Makes each batch from its finished samples. The worker that finished the last one calls it (without workers, the
    /// loop's thread), so several threads may call it at once. null: samples are written directly to their place in the
    /// batch, so all must have the same shape. Must outlive the loader.
    const Collate* collate = nullptr;
    /// Where the memory of batches comes from, e.g. pinned_memory() in pipeline/torch/pinned_memory.hpp for copies to a
    /// device; null: from the system. The loop's thread then allocates all slots at once, in the constructor and when
    /// reconfigure() needs more, and they are freed with the loader, not by a smaller depth or budget. A memory_budget
    /// does not count what the allocator rounds up. With `collate`, and for a slot whose memory somebody kept, memory
    /// is from the system. Must outlive the loader and its batches.
    const SlotAllocator* slot_memory = nullptr;
    /// Once the loop has waited so long for a batch, whatever blocks it, `on_stall` is told what each worker has been
    /// at, and again after twice that time; 0 … 24 h; 0: never, else a thread of the loader's watches.
    std::chrono::nanoseconds stall_timeout{0};
    StallObserver* on_stall = nullptr;   ///< must outlive the loader; null: a message to the standard error output

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

/// Default options with the numbers of this setting. The two types have other defaults: `options_of({})` reads nothing
/// ahead, `LoaderOptions{}` has a read_concurrency of 64.
[[nodiscard]] LoaderOptions options_of(const LoaderSetting&) noexcept;

/// Checks what can be checked without a source. Throws std::invalid_argument naming field and value ("prefetch_depth
/// must be at least 1, got 0"). `max_threads`: most workers allowed, as in RuntimeOptions; 0: only the limit that holds
/// for every loader is checked.
void check_options(const LoaderOptions&, std::size_t max_threads = 0);

/// What `DataLoader::reconfigure` changes; absent numbers stay as they are. Ranges as in LoaderOptions.
struct LoaderChange {
    std::optional<std::size_t> num_workers{};      ///< ≥ 1; for a loader made without workers only 0
    std::optional<std::size_t> prefetch_depth{};   ///< as asked for: a memory budget may allow less
    std::optional<std::uint64_t> memory_budget{};
    std::optional<OrderRule> order{};
    bool operator==(const LoaderChange&) const = default;
};

/// Activity and memory of a loader since it was made. While workers run, members may be of slightly different moments.
struct LoaderCounters {
    /// Batches drawn (not those whose draw threw a SampleError), batches that were admitted and given up before they
    /// were drawn, and samples of the batches drawn.
    std::uint64_t batches_taken = 0, batches_abandoned = 0, samples_taken = 0;
    /// Slots that took new memory, because the user still held the old memory, e.g. by a tensor, when the batch came
    /// back.
    std::uint64_t slots_replaced = 0;
    std::uint64_t samples_skipped = 0, samples_substituted = 0;   ///< by `LoaderOptions::on_error`
    std::uint64_t suspensions = 0;   ///< draws that suspended or, in next_blocking(), blocked
    /// How often workers were woken, how often one went to sleep or to rest, and how often a thread took the loader's
    /// lock to decide what comes next.
    std::uint64_t worker_wakes = 0, worker_parks = 0, turns = 0;
    std::uint64_t handler_fallbacks = 0;   ///< wake-ups that did not fit the fixed buffer and allocated; normally 0
    std::uint64_t slots_bytes = 0;         ///< batch memory held by the loader now
    /// Workers that work, sleep, or rest only because there are more of them than cores: num_workers once all have
    /// started, fewer if the system refused threads, 0 before the first epoch().
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
    /// When the batch drawn last became ready to draw (`BatchRow::offered_ns`), by the recorder's clock; also if its
    /// draw threw a SampleError. no_stamp before the first draw or without `RuntimeOptions::record`.
    std::int64_t last_offered_ns = no_stamp;
};

}   // namespace drawpoint
