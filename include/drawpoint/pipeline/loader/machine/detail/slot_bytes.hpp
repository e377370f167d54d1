#pragma once

#include <cstdint>
#include <limits>

namespace drawpoint {

/// Alignment of small slots, and of the targets within a slot; size of a huge page. Bytes, as everything here.
inline constexpr std::uint64_t slot_line = 128, slot_huge_page = std::uint64_t{2} << 20;
inline constexpr std::uint64_t memory_page = 4096;
inline constexpr std::uint64_t sample_buffer_bytes = 96;   ///< sizeof(SampleBuffer)
/// Blocks of at least this size are mapped, so that freeing them returns their pages to the system; the heap would
/// keep fragments.
inline constexpr std::uint64_t mapped_from = std::uint64_t{64} << 10;

/// The multiple of `to` that is the smallest ≥ `bytes`.
[[nodiscard]] constexpr std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t to) noexcept {
    return (bytes + to - 1) / to * to;
}

/// Memory that a buffer for a file of `bytes` bytes takes: its pages, and one for the heap's overhead.
[[nodiscard]] constexpr std::uint64_t contents_memory_bytes(std::uint64_t bytes) noexcept {
    return bytes == 0 ? 0 : round_up_to(bytes, memory_page) + memory_page;
}

/// Offset of the targets in a batch's memory, after `data_bytes` of samples.
[[nodiscard]] constexpr std::uint64_t targets_offset(std::uint64_t data_bytes) noexcept {
    return round_up_to(data_bytes, slot_line);
}

/// Memory that SlotMemory allocates for a batch: whole huge pages from 2 MiB on. 2^64 - 1 for sizes that would
/// overflow.
[[nodiscard]] constexpr std::uint64_t slot_memory_bytes(std::uint64_t data_bytes, std::uint64_t targets) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 4;
    if (data_bytes > most || targets > most / sizeof(std::int64_t))
        return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t needed = targets_offset(data_bytes) + targets * sizeof(std::int64_t);
    return round_up_to(needed, needed >= slot_huge_page ? slot_huge_page : slot_line);
}

}   // namespace drawpoint
