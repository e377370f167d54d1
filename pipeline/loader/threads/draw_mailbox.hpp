#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <drawpoint/instrumentation/detail/atomics.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include "pipeline/loader/core/loader_core.hpp"

namespace drawpoint {

/// Finished batches by position: put by the thread that turns, taken by the loop. Taking a batch that is there is one
/// atomic load. `count`: cells, a power of two ≥ slots + 1, since the stop needs one too.
template <class Atomics = RealAtomics, std::size_t count = 64>
class BasicDrawMailbox {
public:
    /// What a cell holds: nothing, a batch, a failed batch, the stop, or the announcement that the loop is suspended,
    /// blocked, or waits for a descriptor to become readable.
    enum class Kind : std::uint8_t { none, batch, failed, stopped, waiting, waiting_blocked, waiting_outside };
    /// Result of announce(): the caller must wait, the batch is there, or another draw is waiting already.
    enum class Wait : std::uint8_t { announced, is_there, another };
    struct Entry {
        Kind kind = Kind::none;
        std::uint32_t slot = 0, size = 0;   ///< size: samples in the batch
    };

    // The loop's thread.
    /// Whether the batch of this position, or the stop, is there.
    [[nodiscard]] bool has(std::uint64_t position) const noexcept {
        const std::uint64_t word = cell(position).word.load(std::memory_order_acquire);
        return word >> 32 == tag(position) >> 32 && kind_of(word) <= Kind::stopped;
    }
    /// The entry of a position that is known to have one: by has(), announce(), wait(), or the wake-up after put().
    [[nodiscard]] Entry at(std::uint64_t position) const noexcept {
        const Cell& from = cell(position);
        const std::uint64_t word = from.word.load(std::memory_order_relaxed);
        return {kind_of(word), static_cast<std::uint32_t>(word >> kind_bits & most_slot), from.size};
    }
    /// Announces that the loop waits for this position; `how` is one of the kinds of waiting.
    [[nodiscard]] Wait announce(std::uint64_t position, Kind how) noexcept {
        Word& word = cell(position).word;
        std::uint64_t seen = word.load(std::memory_order_acquire);
        const bool is_of_position = seen >> 32 == tag(position) >> 32;
        if (is_of_position)
            return kind_of(seen) > Kind::stopped ? Wait::another : Wait::is_there;
        const bool waits = word.compare_exchange_strong(seen, tag(position) | static_cast<std::uint64_t>(how),
                                                        std::memory_order_relaxed, std::memory_order_acquire);
        return waits ? Wait::announced : Wait::is_there;
    }
    /// Takes the announcement for this position back, unless the entry has come in the meantime.
    void retract(std::uint64_t position, Kind how) noexcept {   // the tag of a position that has another cell
        std::uint64_t waiting = tag(position) | static_cast<std::uint64_t>(how);
        cell(position).word.compare_exchange_strong(waiting, tag(position - 1), std::memory_order_relaxed,
                                                    std::memory_order_relaxed);
    }
    /// Blocks until the entry is there; after announce() as `waiting_blocked`.
    void wait(std::uint64_t position) noexcept {
        cell(position).word.wait(tag(position) | static_cast<std::uint64_t>(Kind::waiting_blocked),
                                 std::memory_order_acquire);
    }

    // The thread that turns, under the loader's mutex.
    /// Puts an entry. `waiting`: the loop is suspended waiting for it and must be resumed; `waiting_outside`: the
    /// descriptor must be made readable; else none.
    [[nodiscard]] Kind put(std::uint64_t position, const Entry& entry) noexcept {
        Cell& to = cell(position);
        to.size = entry.size;
        const std::uint64_t word =
            tag(position) | std::uint64_t{entry.slot} << kind_bits | static_cast<std::uint64_t>(entry.kind);
        const Kind before = kind_of(to.word.exchange(word, std::memory_order_release));
        if (before == Kind::waiting_blocked)
            to.word.notify_one();
        return before == Kind::waiting || before == Kind::waiting_outside ? before : Kind::none;
    }

private:
    static constexpr std::uint64_t kind_bits = 3, most_slot = 0x1fff'ffff;
    using Word = typename Atomics::template atomic<std::uint64_t>;

    /// (position + 1) << 32 | slot << 3 | kind.
    struct alignas(line_bytes) Cell {
        Word word{0};
        typename Atomics::template plain<std::uint32_t> size{0};
    };
    [[nodiscard]] static constexpr std::uint64_t tag(std::uint64_t position) noexcept { return (position + 1) << 32; }
    [[nodiscard]] static constexpr Kind kind_of(std::uint64_t word) noexcept { return static_cast<Kind>(word & 7); }
    [[nodiscard]] Cell& cell(std::uint64_t position) noexcept { return cells_[position & (count - 1)]; }
    [[nodiscard]] const Cell& cell(std::uint64_t position) const noexcept { return cells_[position & (count - 1)]; }

    std::array<Cell, count> cells_;
};
using DrawMailbox = BasicDrawMailbox<>;
static_assert(64 > LoaderPolicy::max_slots);

}   // namespace drawpoint
