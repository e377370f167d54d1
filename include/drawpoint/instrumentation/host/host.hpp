#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace drawpoint {

// What the machine grants this process and says about itself. `root` stands for the file system's, for systems that are
// looked at from outside and for tests. Reads a few small files; any thread.

/// Cores the scheduler may run the calling thread on, at least 1.
[[nodiscard]] std::int64_t affinity_cores() noexcept;

/// Cores' worth of time that the cgroup of this process and all above it grant, the least; absent: none of them limits it.
/// Version 2 (cpu.max), else version 1 (cfs quota).
[[nodiscard]] std::optional<double> cgroup_cores(const std::filesystem::path& root = "/");

/// The smaller of both, above 0. Not a whole number where a quota is none.
[[nodiscard]] double usable_cores();

/// A source of what a recording says of its machine (`HostRow`).
struct HostSource {
    std::string name;    ///< "load", "steal", "throttling", "pressure", "run queue", "process"
    std::string found;   ///< where it is read, or that it is not there
    std::string costs;   ///< what its lack costs; empty: nothing is missing
    bool available = false;
};

/// All there are, in this order, each tried by reading it.
[[nodiscard]] std::vector<HostSource> host_sources(const std::filesystem::path& root = "/");

}   // namespace drawpoint
