#pragma once
#include <drawpoint/pipeline/storage/array_file.hpp>

#include <cstddef>
#include <span>

namespace drawpoint {

/// Number of bytes at the beginning of a file that are searched for its header.
inline constexpr std::size_t most_header_bytes = 1 << 16;

/// Sets `offset` and `bytes` from type and shape. Throws ArrayFileError at `byte` if a dimension is 0 or the size
/// overflows.
void finish_header(ArrayHeader&, const std::filesystem::path&, std::uint64_t byte, std::uint64_t offset);

/// Parses the header of a file that starts with `begin`: most_header_bytes, or the whole file if it is shorter.
[[nodiscard]] ArrayHeader read_idx_header(std::span<const std::byte> begin, const std::filesystem::path&);
[[nodiscard]] ArrayHeader read_npy_header(std::span<const std::byte> begin, const std::filesystem::path&);

}   // namespace drawpoint
