#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/detail/atomics.hpp>

namespace drawpoint {

/// A single-producer, single-consumer queue of messages. A message is a run of consecutive 64-byte records and is there
/// wholly or not at all; its first byte is its kind, never 0, its second its number of records. Messages that did not
/// fit are counted. Neither side blocks or allocates.
template <class Atomics = RealAtomics>
class BasicRing {
public:
    static constexpr std::size_t record_bytes = 64;

    /// Whether the constructor touches all memory, or the system provides it page by page, as it is first used.
    enum class Pages : std::uint8_t { at_once, as_used };

    /// Throws std::invalid_argument unless `records` is a power of two of at least 64.
    explicit BasicRing(std::uint32_t records, Pages pages = Pages::at_once) : mask_{records - 1u} {
        if (records < 64 || !std::has_single_bit(records))
            throw std::invalid_argument("ring_records must be a power of two of at least 64, got " +
                                        std::to_string(records));
        records_ = std::make_unique_for_overwrite<Record[]>(records);
        if (pages == Pages::at_once)
            std::memset(static_cast<void*>(records_.get()), 0, records * record_bytes);
    }

    // The producer's side.

    /// Room for a message of `records` records; null: the ring is full or closed. It can be read after `publish()`.
    [[nodiscard]] std::byte* claim(std::uint32_t records) noexcept {
        if (closed_.load(std::memory_order_relaxed))
            return nullptr;
        const std::uint64_t capacity = mask_ + 1, at = producer_.next & mask_;
        const std::uint64_t skipped = at + records > capacity ? capacity - at : 0;   // messages do not wrap around
        const std::uint64_t end = producer_.next + skipped + records;
        if (end - producer_.known_tail > capacity) {
            producer_.known_tail = tail_.load(std::memory_order_acquire);
            if (end - producer_.known_tail > capacity)
                return nullptr;
        }
        if (skipped != 0)
            records_[at].bytes[0] = std::byte{0};
        producer_.claimed = end;
        return records_[(producer_.next + skipped) & mask_].bytes.data();
    }
    void publish() noexcept {
        producer_.next = producer_.claimed;
        head_.store(producer_.next, std::memory_order_release);
    }
    /// Whether more than `records` are waiting for the consumer.
    [[nodiscard]] bool fuller_than(std::uint64_t records) noexcept {
        if (producer_.next - producer_.known_tail <= records)
            return false;
        producer_.known_tail = tail_.load(std::memory_order_acquire);
        return producer_.next - producer_.known_tail > records;
    }
    /// Counts a message that did not fit, at `at_ns`.
    void count_drop(std::int64_t at_ns) noexcept {
        const std::uint64_t dropped = dropped_.load(std::memory_order_relaxed);
        const bool first = reported_.load(std::memory_order_acquire) == dropped;
        const std::int64_t to_ns = drop_to_ns_.load(std::memory_order_relaxed);
        if (first)
            drop_from_ns_.store(at_ns, std::memory_order_relaxed);
        drop_to_ns_.store(first ? at_ns : std::max(at_ns, to_ns), std::memory_order_relaxed);
        dropped_.store(dropped + 1, std::memory_order_release);
    }

    // The consumer's side.

    /// How far messages are published; for `consume()`.
    [[nodiscard]] std::uint64_t head() const noexcept { return head_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(mask_ + 1); }

    /// Calls `take(first byte of a message)` for each message before `until`, a value of `head()`. Returns how many
    /// records that were.
    template <class Take>
    std::uint64_t consume(std::uint64_t until, Take&& take) {
        const std::uint64_t from = tail_.load(std::memory_order_relaxed);
        std::uint64_t at = from;
        while (at != until) {
            const std::byte* message = records_[at & mask_].bytes.data();
            if (message[0] == std::byte{0}) {
                at += mask_ + 1 - (at & mask_);
                continue;
            }
            const auto records = std::to_integer<std::uint64_t>(message[1]);
            take(message);
            at += records;
            tail_.store(at, std::memory_order_release);
        }
        tail_.store(at, std::memory_order_release);
        return at - from;
    }

    struct Drops {
        std::uint64_t count = 0;
        std::int64_t from_ns = 0, to_ns = 0;   ///< of these drops, or a wider interval
    };
    /// The drops since the last call.
    [[nodiscard]] Drops take_drops() noexcept {
        const std::uint64_t dropped = dropped_.load(std::memory_order_acquire);
        const Drops drops{dropped - reported_.load(std::memory_order_relaxed),
                          drop_from_ns_.load(std::memory_order_relaxed), drop_to_ns_.load(std::memory_order_relaxed)};
        reported_.store(dropped, std::memory_order_release);
        return drops;
    }

    // Any thread.

    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    /// From here on `claim()` returns null.
    void close() noexcept { closed_.store(true, std::memory_order_relaxed); }

private:
    template <class T>
    using Atomic = typename Atomics::template atomic<T>;
    struct alignas(record_bytes) Record {
        std::array<std::byte, record_bytes> bytes;
    };
    // What is never written shares a cache line; what one side writes has a line of its own.
    const std::uint64_t mask_;
    std::unique_ptr<Record[]> records_;
    Atomic<bool> closed_ = false;
    struct alignas(64) {
        std::uint64_t next = 0, claimed = 0, known_tail = 0;
    } producer_;
    alignas(64) Atomic<std::uint64_t> head_ = 0;
    alignas(64) Atomic<std::uint64_t> tail_ = 0;
    alignas(64) Atomic<std::uint64_t> dropped_ = 0;
    Atomic<std::int64_t> drop_from_ns_ = 0, drop_to_ns_ = 0;
    alignas(64) Atomic<std::uint64_t> reported_ = 0;
};
using Ring = BasicRing<>;

}   // namespace drawpoint
