#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace drawpoint {

// The resources this process may use, and which counters the system offers. `root` replaces "/", for tests and for
// inspecting another system's files. Each function reads a few small files. Any thread.

/// Number of cores that the scheduler may run the calling thread on, at least 1.
[[nodiscard]] std::int64_t affinity_cores() noexcept;

/// The smallest CPU quota, in cores, of this process's cgroup and its ancestors; nullopt if none of them has a quota.
/// Reads version 2 (cpu.max), else version 1 (cfs quota).
[[nodiscard]] std::optional<double> cgroup_cores(const std::filesystem::path& root = "/");

/// The smaller of affinity_cores() and cgroup_cores(), above 0. A quota may make it fractional.
[[nodiscard]] double usable_cores();

/// A source of the values that a recording has about its machine (`HostRow`).
struct HostSource {
    std::string name;    ///< "load", "steal", "throttling", "pressure", "run queue", "process"
    std::string found;   ///< the file or directory it is read from, or that this cannot be read
    std::string costs;   ///< what cannot be known without it; empty if it is available or not needed
    bool available = false;
};

/// All sources, in the order listed at `HostSource::name`. Tries each of them by reading it.
[[nodiscard]] std::vector<HostSource> host_sources(const std::filesystem::path& root = "/");

}   // namespace drawpoint
