#pragma once

#include <cstdint>
#include <limits>

namespace drawpoint {

inline constexpr std::uint64_t slot_line = 128, slot_huge_page = std::uint64_t{2} << 20;

[[nodiscard]] constexpr std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t to) noexcept {
    return (bytes + to - 1) / to * to;
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
