#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// Reads the whole regular file `path` into `contents`, whose memory is reused and grows in powers of two. Never
/// allocates once `contents` has grown. Pipes, sockets and devices are refused rather than waited for. Any thread.
/// Throws std::filesystem::filesystem_error naming the path: missing, unreadable, not a regular file, or the file
/// shrank meanwhile.
void read_file(const char* path, std::vector<std::byte>& contents);

/// Reads `bytes` bytes at `offset` of the open regular file `descriptor`, as read_file() does; `path` is for messages.
void read_file_part(int descriptor, const char* path, std::uint64_t offset, std::uint64_t bytes,
                    std::vector<std::byte>& contents);

namespace detail {

/// Throws the system's `error` of reading or writing `path` as std::filesystem::filesystem_error.
[[noreturn]] void fail_io(const char* what, const char* path, int error);
/// Flags with which data files are opened: opening a pipe that has no writer must not block.
extern const int open_for_reading;
/// Size of an open file; throws as read_file() does when it is not a regular file.
[[nodiscard]] std::uint64_t size_of_regular(int descriptor, const char* path);
/// Capacity that resize_contents() allocates for `bytes` ≤ 2^62: a power of two, with a lower bound.
[[nodiscard]] std::uint64_t contents_capacity(std::uint64_t bytes) noexcept;
/// Resizes `contents` to `bytes`, growing in powers of two. Throws filesystem_error naming size and path when the
/// memory cannot be had.
void resize_contents(std::vector<std::byte>& contents, std::uint64_t bytes, const char* path);

}   // namespace detail

}   // namespace drawpoint
