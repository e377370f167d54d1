#include "instrumentation/sampling/process.hpp"

#include <cerrno>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

namespace drawpoint {
namespace {

std::string path_of(pid_t thread, const char* file) { return "/proc/self/task/" + std::to_string(thread) + "/" + file; }

}   // namespace

ThreadList::ThreadList() : folder_{opendir("/proc/self/task")} {
    if (!folder_)
        throw std::system_error{errno, std::generic_category(), "/proc/self/task"};
}

void ThreadList::read(std::vector<pid_t>& threads) {
    threads.clear();
    rewinddir(folder_.get());
    while (const dirent* entry = readdir(folder_.get())) {
        const std::string_view name{entry->d_name};
        pid_t thread = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc{})
            threads.push_back(thread);
    }
    std::sort(threads.begin(), threads.end());
}

std::optional<std::int64_t> cpu_time_of(pid_t thread) noexcept {
    // The clock id is computed as the kernel encodes it, since pthread_getcpuclockid needs a pthread_t.
    const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3u | 6u);
    timespec time{};
    if (clock_gettime(clock, &time) != 0)
        return std::nullopt;
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::string system_name_of(pid_t thread) {
    std::ifstream file{path_of(thread, "comm")};
    std::string name;
    std::getline(file, name);
    return name;
}

bool blocks_signal(pid_t thread, int signal) {
    std::ifstream file{path_of(thread, "status")};
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("SigBlk:", 0) == 0)
            return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1u) != 0;
    }
    return true;
}

Mapping mapping_of(std::uint64_t address) {
    std::ifstream file{"/proc/self/maps"};
    for (std::string line; std::getline(file, line);) {
        std::uint64_t begin = 0, end = 0;
        const char* const last = line.data() + line.size();
        const auto dash = std::from_chars(line.data(), last, begin, 16);
        if (dash.ec != std::errc{} || dash.ptr == last ||
            std::from_chars(dash.ptr + 1, last, end, 16).ec != std::errc{})
            continue;
        if (begin <= address && address < end)
            return {begin, end};
    }
    return {};
}

std::int64_t read_clock(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}   // namespace drawpoint
