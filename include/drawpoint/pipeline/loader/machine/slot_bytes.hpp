#pragma once

#include <cstdint>
#include <limits>

namespace drawpoint {

inline constexpr std::uint64_t slot_line = 128, slot_huge_page = std::uint64_t{2} << 20;
inline constexpr std::uint64_t memory_page = 4096;
inline constexpr std::uint64_t sample_buffer_bytes = 96;   // a SampleBuffer without its memory
/// From here on memory is mapped, so that what is given up leaves the process: a heap would keep it in pieces.
inline constexpr std::uint64_t mapped_from = std::uint64_t{64} << 10;

[[nodiscard]] constexpr std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t to) noexcept {
    return (bytes + to - 1) / to * to;
}

/// The memory that contents of so many bytes take: their pages, and what the heap adds.
[[nodiscard]] constexpr std::uint64_t contents_memory_bytes(std::uint64_t bytes) noexcept {
    return bytes == 0 ? 0 : round_up_to(bytes, memory_page) + memory_page;
}

/// Where a batch's targets lie in its memory, behind `data_bytes` of samples.
[[nodiscard]] constexpr std::uint64_t targets_offset(std::uint64_t data_bytes) noexcept {
    return round_up_to(data_bytes, slot_line);
}

/// The memory of a batch with so many targets, as SlotMemory takes it: in huge pages from one on.
[[nodiscard]] constexpr std::uint64_t slot_memory_bytes(std::uint64_t data_bytes, std::uint64_t targets) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 4;
    if (data_bytes > most || targets > most / sizeof(std::int64_t))
        return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t needed = targets_offset(data_bytes) + targets * sizeof(std::int64_t);
    return round_up_to(needed, needed >= slot_huge_page ? slot_huge_page : slot_line);
}

}   // namespace drawpoint
