#include <drawpoint/instrumentation/host/host.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "instrumentation/host/cgroup.hpp"
#include "instrumentation/host/core_mask.hpp"
#include <drawpoint/instrumentation/host/detail/host_counters.hpp>
#include <sched.h>
#include <time.h>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

/// Calls `visit` with the calling thread's affinity mask and its size in bytes; false if the system does not tell it.
template <class Visit>
bool with_mask(Visit visit) {
    for (std::size_t cpus = 1024; cpus <= (1u << 20); cpus *= 2) {   // the kernel refuses masks smaller than its own
        cpu_set_t* const set = CPU_ALLOC(cpus);
        if (set == nullptr)
            return false;
        const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
        const bool known = ::sched_getaffinity(0, bytes, set) == 0;
        if (known)
            visit(*set, bytes);
        CPU_FREE(set);
        if (known)
            return true;
    }
    return false;
}

std::optional<double> quota_of(const fs::path& quota, const fs::path& period) {
    std::ifstream file{quota};
    double us = 0, period_us = 0;
    if (!(file >> us))
        return std::nullopt;   // "max": no limit
    if (period.empty() ? !(file >> period_us) : !(std::ifstream{period} >> period_us))
        return std::nullopt;
    return us > 0 && period_us > 0 ? std::optional{us / period_us} : std::nullopt;   // -1: no limit
}

}   // namespace

std::vector<std::uint32_t> affinity_mask() {
    std::vector<std::uint32_t> cores;
    with_mask([&](const cpu_set_t& set, std::size_t bytes) {
        for (std::size_t core = 0; core < bytes * 8; ++core)
            if (CPU_ISSET_S(core, bytes, &set))
                cores.push_back(static_cast<std::uint32_t>(core));
    });
    return cores.empty() ? std::vector<std::uint32_t>{0} : cores;
}

std::int64_t affinity_cores() noexcept {
    std::int64_t count = 0;
    with_mask([&](const cpu_set_t& set, std::size_t bytes) { count = CPU_COUNT_S(bytes, &set); });
    return std::max<std::int64_t>(count, 1);
}

std::optional<double> cgroup_cores(const fs::path& root) {
    std::optional<double> least;
    const auto limit = [&](std::optional<double> quota) {
        if (quota)
            least = std::min(least.value_or(*quota), *quota);
    };
    for (const fs::path& file : cgroup_files(root, "", "cpu.max"))
        limit(quota_of(file, {}));
    if (!least)
        for (const fs::path& file : cgroup_files(root, "cpu", "cpu.cfs_quota_us"))
            limit(quota_of(file, file.parent_path() / "cpu.cfs_period_us"));
    return least;
}

double usable_cores() {
    const auto cores = static_cast<double>(affinity_cores());
    return std::min(cgroup_cores().value_or(cores), cores);
}

std::int64_t kernel_tick_ns() noexcept {
    timespec resolution{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);   // that clock advances with the tick
    return resolution.tv_sec * 1'000'000'000 + resolution.tv_nsec;
}

std::optional<std::int64_t> scheduler_number(const std::string& name, const fs::path& root) {
    std::ifstream file{root / "sys/kernel/debug/sched" / name};
    std::int64_t number = 0;
    return file >> number ? std::optional{number} : std::nullopt;
}

std::vector<HostSource> host_sources(const fs::path& root) {
    const HostRow row = HostCounters{root}.read(0);
    const auto known = [](std::int64_t value) { return value != no_stamp; };
    std::ifstream schedstat{root / "proc/thread-self/schedstat"};
    std::uint64_t ran = 0, waited = 0;
    const bool run_queue = static_cast<bool>(schedstat >> ran >> waited);
    const bool limited = cgroup_cores(root).has_value();

    std::vector<HostSource> sources;
    const auto add = [&](std::string name, bool available, std::string where, std::string costs) {
        sources.push_back({.name = std::move(name),
                           .found = available ? std::move(where) : where + " cannot be read",
                           .costs = available ? "" : std::move(costs),
                           .available = available});
    };
    add("load", known(row.busy_ns), "/proc/stat", "other processes' load cannot be told from slow stages");
    add("steal", known(row.steal_ns), "/proc/stat", "time that a hypervisor takes cannot be told from slow stages");
    add("throttling", known(row.throttled_ns), "cpu.stat of the cgroup",
        limited ? "how long the cgroup's quota stops all threads is not seen"
                : "");   // without a quota there is no throttling
    add("pressure", known(row.cpu_pressure_ns) && known(row.io_pressure_ns) && known(row.memory_pressure_ns),
        "/proc/pressure", "no account of how long tasks of the whole machine waited for a core, storage or memory");
    add("run queue", run_queue, "/proc/thread-self/schedstat",
        "a thread that waits for a core cannot be told from one that waits for storage");
    add("process", known(row.own_cpu_ns) && known(row.resident_bytes), "/proc/self",
        "this process's own share of the load and its memory are not known");
    return sources;
}

}   // namespace drawpoint
