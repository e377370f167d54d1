#pragma once

#include <dirent.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drawpoint {

/// Lists the threads of this process; for repeated use.
class ThreadList {
public:
    ThreadList();
    /// Writes their ids, ascending, into `threads` (reused memory).
    void read(std::vector<pid_t>& threads);

private:
    struct Close {
        void operator()(DIR* folder) const noexcept { closedir(folder); }
    };
    std::unique_ptr<DIR, Close> folder_;
};

/// CPU time a thread of this process has used, in nanoseconds; nullopt when it has ended.
[[nodiscard]] std::optional<std::int64_t> cpu_time_of(pid_t thread) noexcept;

/// The system's name for a thread of this process, as `top` shows it; empty when it has ended.
[[nodiscard]] std::string system_name_of(pid_t thread);

/// Whether a thread of this process blocks `signal`; true when it has ended.
[[nodiscard]] bool blocks_signal(pid_t thread, int signal);

/// A mapping of the address space; empty: none.
struct Mapping {
    std::uint64_t begin = 0, end = 0;
};

/// The mapping that contains `address`.
[[nodiscard]] Mapping mapping_of(std::uint64_t address);

/// The time of a system clock in nanoseconds.
[[nodiscard]] std::int64_t read_clock(clockid_t) noexcept;

}   // namespace drawpoint
