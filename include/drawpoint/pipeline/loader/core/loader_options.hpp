#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <drawpoint/instrumentation/ledger/rows.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

class Collate;   // collate.hpp

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

}   // namespace drawpoint
