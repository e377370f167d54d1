#pragma once
#include <cstddef>
#include <vector>

namespace drawpoint {

/// Reads the whole regular file `path` into `contents`, whose memory is reused and grown in powers of two.
/// Never allocates once `contents` has grown; never waits on a pipe, socket or device: those are refused.
/// Any thread. Throws std::filesystem::filesystem_error naming the path: missing, unreadable, not a regular file, or
/// the file shrank meanwhile.
void read_file(const char* path, std::vector<std::byte>& contents);

}   // namespace drawpoint
