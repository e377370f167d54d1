#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>

namespace drawpoint {

class LoopTrack;

/// Timestamps that divide the waiting of a draw, in nanoseconds of the recorder's clock; `no_stamp` where the source
/// does not know one.
struct DrawStamps {
    std::int64_t offered_ns = no_stamp;       ///< the batch was ready
    std::int64_t transferred_ns = no_stamp;   ///< the loop had resumed; until taken_ns it waited for the device
    std::int64_t taken_ns = no_stamp;         ///< next() had the batch
    std::int64_t waited_ns = no_stamp;        ///< until then, before all that, the draw waited for the device
};

/// Options of a pass.
struct EpochOptions {
    /// Whether workers that find no more samples to make in this pass begin with those of epoch e + 1. If another epoch
    /// follows, that work is lost.
    bool next_epoch = false;
    /// Batches before this one are left out, as if they had been drawn: none of their samples is made. At most size().
    /// What was prefetched into the pass is given up, and a restore() before it is forgotten.
    std::size_t first_batch = 0;
    /// The loop's track, with its steps around the draws: a source that copies to a device then times what the device
    /// does, and records it there. Null: it does not. Must outlive the pass.
    LoopTrack* track = nullptr;
};

/// One pass over the data. `next()` draws a batch, and after the last one always returns nullopt.
template <class S>
concept BatchSource = requires(S& source) {
    typename S::Batch;
    { source.size() } -> std::same_as<std::optional<std::size_t>>;   // nullopt: length unknown
    { source.next() } -> std::same_as<Awaitable<std::optional<typename S::Batch>>>;
};

/// A pass that may go on where an earlier run ended: it knows how many of its batches are drawn.
template <class S>
concept ContinuedSource = requires(const S& source) {
    { source.drawn() } noexcept -> std::same_as<std::size_t>;
};

/// A batch that knows what its draw waited for, and how long.
template <class B>
concept StampedBatch = requires(const B& batch) {
    { batch.draw_stamps() } noexcept -> std::same_as<DrawStamps>;
};

/// A batch that knows how many samples it holds.
template <class B>
concept SizedBatch = requires(const B& batch) {
    { batch.size() } noexcept -> std::convertible_to<std::size_t>;
};

/// A batch that a device works on: told when the step has given the device the work up to its loss, and all of it.
template <class B>
concept WorkingBatch = requires(B& batch) {
    { batch.end_forward() } noexcept;

    { batch.end_work() } noexcept;
};

/// A pass whose batches a device works on: waits until it has done its work.
template <class S>
concept DrainedSource = requires(S& source) {
    { source.drain() } noexcept;
};

/// A batch that knows its number in the pass, from 0, regardless of the order of drawing.
template <class B>
concept NumberedBatch = requires(const B& batch) {
    { batch.number() } noexcept -> std::convertible_to<std::size_t>;
};

/// What `fit` draws from: `epoch()` begins a pass. A pass is used up or destroyed before the next one begins.
template <class L>
concept EpochSource = requires(L& loader, std::size_t epoch, EpochOptions options) {
    { loader.epoch(epoch, options) } -> BatchSource;
};

}   // namespace drawpoint
