#include <cli/machine.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <asio/version.hpp>
#include <fmt/format.h>
#include <jconfig.h>
#include <sched.h>
#include <sys/utsname.h>
#include <zlib.h>

namespace drawpoint::cli {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

/// This process's folder below /sys/fs/cgroup, for one controller of version 1 or for version 2 ("").
std::optional<std::string> cgroup_path(const std::string& controller) {
    std::ifstream file{"/proc/self/cgroup"};
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos)
            continue;
        std::istringstream names{line.substr(first + 1, second - first - 1)};
        if (controller.empty() && first + 1 == second)
            return line.substr(second + 1);
        for (std::string name; std::getline(names, name, ',');)
            if (name == controller && !controller.empty())
                return line.substr(second + 1);
    }
    return std::nullopt;
}

/// The smallest quota of the folder and all above it.
template <class Quota>
std::optional<double> least_quota(const std::string& root, std::string path, Quota quota_of) {
    std::optional<double> least;
    for (;;) {
        if (const std::optional<double> quota = quota_of(root + path))
            least = std::min(least.value_or(*quota), *quota);
        const std::size_t slash = path.find_last_of('/');
        if (path.empty() || slash == path.npos)
            return least;
        path.resize(slash);
    }
}

std::string cpu_name() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            return line.substr(std::min(line.size(), line.find(':') + 2));
    utsname names{};
    return uname(&names) == 0 ? names.machine : "";
}

#define DRAWPOINT_TEXT(x) #x
#define DRAWPOINT_TEXT_OF(x) DRAWPOINT_TEXT(x)

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "g++ " __VERSION__;
#endif
}

}   // namespace

std::int64_t affinity_cores() {
    for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
        if (set == nullptr)
            break;
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
        const bool known = sched_getaffinity(0, bytes, set) == 0;
        const int count = known ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (known)
            return std::max(count, 1);
    }
    return 1;
}

std::optional<double> cgroup_cores() {
    if (const auto path = cgroup_path(""))
        if (const auto quota =
                least_quota("/sys/fs/cgroup", *path, [](const std::string& folder) -> std::optional<double> {
                    std::istringstream line{first_line(folder + "/cpu.max")};
                    double us = 0, period_us = 0;
                    return line >> us >> period_us && period_us > 0 ? std::optional{us / period_us}
                                                                    : std::nullopt;   // "max" is no number
                }))
            return quota;
    const auto path = cgroup_path("cpu");
    return least_quota("/sys/fs/cgroup/cpu", path.value_or(""), [](const std::string& folder) -> std::optional<double> {
        std::istringstream quota{first_line(folder + "/cpu.cfs_quota_us")},
            period{first_line(folder + "/cpu.cfs_period_us")};
        double us = 0, period_us = 0;
        return quota >> us && period >> period_us && us > 0 && period_us > 0 ? std::optional{us / period_us}
                                                                             : std::nullopt;
    });
}

std::int64_t usable_cores() {
    const std::int64_t cores = affinity_cores();
    const auto quota = cgroup_cores();
    return quota ? std::clamp<std::int64_t>(std::llround(std::ceil(*quota)), 1, cores) : cores;
}

Machine this_machine() {
    utsname names{};
    const bool known = uname(&names) == 0;
    Machine machine{
        .cpu = cpu_name(),
        .kernel = known ? fmt::format("{} {}", names.sysname, names.release) : "",
        .compiler = compiler(),
        .cores_usable = usable_cores(),
        .libraries = {
            {"asio", fmt::format("{}.{}.{}", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100)},
            {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
            {"libjpeg-turbo", DRAWPOINT_TEXT_OF(LIBJPEG_TURBO_VERSION)},
            {"libtorch", libtorch_version()},
            {"oneTBB", DRAWPOINT_TBB_VERSION},
            {"zlib", zlibVersion()}}};
    std::erase_if(machine.libraries, [](const auto& library) { return library.second.empty(); });
    return machine;
}

}   // namespace drawpoint::cli
