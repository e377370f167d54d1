#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint {

/// Copies `bytes` from each of rows + index × stride to consecutive places in `out`; adjacent rows in one piece.
void copy_rows(const std::byte* rows, std::size_t stride, std::size_t bytes, std::span<const std::uint64_t> indices,
               std::byte* out) noexcept;

/// Writes (byte / 255 - mean) / deviation for `count` bytes. The same bits on every processor.
void normalize_bytes(const std::byte* from, std::size_t count, float mean, float deviation, float* out) noexcept;

}   // namespace drawpoint
