#pragma once

#include <string>

namespace drawpoint {

/// How loaders read ahead of their workers on this machine.
struct ReadBackend {
    bool io_uring = false;   ///< false: threads call pread
    std::string name;        ///< "io_uring" or "pread threads"
    std::string why;         ///< the reason, e.g. "io_uring_setup: Operation not permitted"
};

/// Asks the kernel, at each call; takes 50 µs. Any thread. Sources without `SampleReads::location` are read by threads
/// in any case.
[[nodiscard]] ReadBackend read_backend();

}   // namespace drawpoint
