#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// Reads the whole regular file `path` into `contents`, whose memory is reused and grown in powers of two.
/// Never allocates once `contents` has grown; never waits on a pipe, socket or device: those are refused.
/// Any thread. Throws std::filesystem::filesystem_error naming the path: missing, unreadable, not a regular file, or
/// the file shrank meanwhile.
void read_file(const char* path, std::vector<std::byte>& contents);

/// Reads `bytes` bytes at `offset` of the open regular file `descriptor`, as read_file(); `path` is for messages.
void read_file_part(int descriptor, const char* path, std::uint64_t offset, std::uint64_t bytes,
                    std::vector<std::byte>& contents);

namespace detail {

/// What reading or writing `path` ran into, as std::filesystem::filesystem_error.
[[noreturn]] void fail_io(const char* what, const char* path, int error);
/// How data files are opened: a pipe without a writer must not hold the thread before it is refused.
extern const int open_for_reading;
/// The size of an open file; throws as read_file() when it is no regular file.
[[nodiscard]] std::uint64_t size_of_regular(int descriptor, const char* path);
/// The memory that resize_contents() takes for `bytes`, at most 2^62: a power of two, and not a small one.
[[nodiscard]] std::uint64_t contents_capacity(std::uint64_t bytes) noexcept;
/// Makes `contents` `bytes` long, growing in powers of two. Throws filesystem_error naming the size and path when there
/// is no such memory.
void resize_contents(std::vector<std::byte>& contents, std::uint64_t bytes, const char* path);

}   // namespace detail

}   // namespace drawpoint
