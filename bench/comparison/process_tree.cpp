#include "process_tree.hpp"

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <unistd.h>

namespace drawpoint::bench {
namespace {

struct Process {
    pid_t parent = 0;
    std::uint64_t faults = 0;
    std::int64_t ended_ticks = 0;   // of children that ended
};

Process read_process(const std::filesystem::path& folder) {
    std::ifstream file{folder / "stat"};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    const std::size_t name_end = text.rfind(')');   // the name of a program may contain anything
    if (name_end == std::string::npos)
        return {};
    std::istringstream fields{text.substr(name_end + 1)};
    std::string state, skipped;
    Process process;
    std::uint64_t faults = 0, faults_of_ended = 0;
    std::int64_t user = 0, system = 0;
    fields >> state >> process.parent;
    for (int i = 0; i < 5; ++i)   // skips group, session, terminal, its group, flags
        fields >> skipped;
    fields >> faults >> faults_of_ended >> skipped >> skipped >> skipped >> skipped >> user >> system;
    process.faults = faults + faults_of_ended;
    process.ended_ticks = user + system;
    return process;
}

std::int64_t cpu_ns_of(pid_t pid) {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}   // namespace

ProcessUse process_tree_use(pid_t root) {
    std::map<pid_t, Process> processes;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
        const std::string name = entry.path().filename();
        pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr == name.data() + name.size())
            processes[pid] = read_process(entry.path());
    }
    const auto is_of_tree = [&](pid_t pid) {
        for (std::size_t steps = 0; pid > 1 && pid != root && steps < processes.size(); ++steps) {
            const auto found = processes.find(pid);
            pid = found == processes.end() ? 0 : found->second.parent;
        }
        return pid == root;
    };
    const std::int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
    ProcessUse use;
    for (const auto& [pid, process] : processes)
        if (is_of_tree(pid)) {
            use.cpu_ns += cpu_ns_of(pid) + process.ended_ticks * tick_ns;
            use.minor_faults += process.faults;
        }
    return use;
}

}   // namespace drawpoint::bench
