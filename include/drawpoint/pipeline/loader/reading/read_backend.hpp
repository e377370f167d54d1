#pragma once

#include <string>

namespace drawpoint {

/// How loaders read ahead of their workers on this machine.
struct ReadBackend {
    bool io_uring = false;   ///< false: threads call pread
    std::string name;        ///< "io_uring" or "pread threads"
    std::string why;         ///< the reason, in both cases, e.g. "io_uring_setup: Operation not permitted"
};

/// Asks the kernel, at each call; takes 50 µs. Any thread. No option selects the other way. Samples whose
/// `SampleReads::location()` is nullopt are read by threads in any case, and so is everything if the kernel refuses a
/// loader's own ring later, for want of memory or file descriptors.
[[nodiscard]] ReadBackend read_backend();

}   // namespace drawpoint
