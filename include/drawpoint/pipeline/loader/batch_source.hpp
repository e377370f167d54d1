#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/pipeline/loader/runtime.hpp>

namespace drawpoint {

/// How a draw's waiting splits, as the batch itself knows it. Absolute nanoseconds of the recorder's clock; `no_stamp` where
/// the source does not know.
struct DrawStamps {
    std::int64_t offered_ns = no_stamp;       ///< the batch came to be there
    std::int64_t transferred_ns = no_stamp;   ///< the loop resumed; from here to taken it waited for the device
    std::int64_t taken_ns = no_stamp;         ///< `next()` had it in hand
};

struct EpochOptions {
    bool next_epoch =
        false;   ///< whether this pass may prefetch into epoch e + 1 when its own batches are all admitted
};

/// One pass over the data: `next()` is the draw. After the first nullopt, always nullopt.
template <class S>
concept BatchSource = requires(S& source) {
    typename S::Batch;
    { source.size() } -> std::same_as<std::optional<std::size_t>>;   // nullopt: length unknown
    { source.next() } -> std::same_as<Awaitable<std::optional<typename S::Batch>>>;
};

/// A batch that knows how long its draw waited, and for what.
template <class B>
concept StampedBatch = requires(const B& batch) {
    { batch.draw_stamps() } noexcept -> std::same_as<DrawStamps>;
};

/// Anything drawn: it knows how many samples it holds.
template <class B>
concept SizedBatch = requires(const B& batch) {
    { batch.size() } noexcept -> std::convertible_to<std::size_t>;
};

/// A batch that knows which of its pass it is, from 0: in whatever order they come.
template <class B>
concept NumberedBatch = requires(const B& batch) {
    { batch.number() } noexcept -> std::convertible_to<std::size_t>;
};

/// What `fit` takes: passes on demand. A pass is used up or destroyed before the next is asked for.
template <class L>
concept EpochSource = requires(L& loader, std::size_t epoch, EpochOptions options) {
    { loader.epoch(epoch, options) } -> BatchSource;
};

}   // namespace drawpoint
