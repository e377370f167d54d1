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

/// The smallest CPU quota of this process's cgroup and its ancestors, in cores: 1.5 if it may use 150 ms of CPU time in
/// 100 ms. nullopt if none of them has a quota, or none can be read. Reads version 2 (cpu.max); if that has none,
/// version 1 (cfs quota).
[[nodiscard]] std::optional<double> cgroup_cores(const std::filesystem::path& root = "/");

/// The smaller of affinity_cores() and cgroup_cores(), above 0. A quota may make it fractional.
[[nodiscard]] double usable_cores();

/// Time between two ticks of the kernel's timer, in nanoseconds (4'000'000 with CONFIG_HZ=250).
[[nodiscard]] std::int64_t kernel_tick_ns() noexcept;

/// A number of the scheduler, "base_slice_ns" or "migration_cost_ns", from /sys/kernel/debug/sched. nullopt if that
/// cannot be read: most systems allow it to the superuser only, or to nobody.
[[nodiscard]] std::optional<std::int64_t> scheduler_number(const std::string& name,
                                                           const std::filesystem::path& root = "/");

/// A source of the values that a recording has about its machine (`HostRow`).
struct HostSource {
    std::string name;    ///< "load", "steal", "throttling", "pressure", "run queue", "process"
    std::string found;   ///< "/proc/stat", where it is read from, or "/proc/stat cannot be read"
    /// A phrase that says what cannot be known without it; empty if it is available or, without a quota, throttling.
    std::string costs;
    bool available = false;
};

/// All sources, in the order listed at `HostSource::name`. Tries each of them by reading it.
[[nodiscard]] std::vector<HostSource> host_sources(const std::filesystem::path& root = "/");

}   // namespace drawpoint
