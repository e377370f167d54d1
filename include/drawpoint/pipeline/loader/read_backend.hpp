#pragma once

#include <string>

namespace drawpoint {

/// How loaders read ahead of their workers on this machine.
struct ReadBackend {
    bool io_uring = false;   ///< else pread on threads
    std::string name;        ///< "io_uring" or "pread threads"
    std::string why;         ///< what was found, e.g. "io_uring_setup: Operation not permitted"
};

/// Asks the kernel, each time anew: 50 µs. Sources whose samples are no plain parts of files are read on threads anyway.
[[nodiscard]] ReadBackend read_backend();

}   // namespace drawpoint
