#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Reads the counters of the machine and of this process from files of /proc and /sys/fs/cgroup, which it keeps open.
///
/// Resolution: the kernel counts the cores' time (`busy_ns`, `steal_ns`) in ticks of usually 10 ms, so a difference
/// over 200 ms is accurate to 5 % of a core, one over 10 s to 0.1 %. All other values are exact. `throttled_ns` is
/// summed over this process's cgroup and its ancestors, and over the cores they were throttled on, so it may grow
/// faster than time. Use by one thread at a time.
class HostCounters {
public:
    HostCounters();
    /// `root` stands for "/".
    explicit HostCounters(const std::filesystem::path& root);
    /// `cores`: the numbers of the cores to count; the other constructors take the calling thread's affinity mask.
    HostCounters(const std::filesystem::path& root, std::vector<std::uint32_t> cores);

    /// Reads all counters; missing or invalid ones are `no_stamp`. Takes about 20 µs, mostly in the kernel for
    /// /proc/stat, and more on machines with many cores. Never allocates.
    [[nodiscard]] HostRow read(std::int64_t now_ns) noexcept;

private:
    /// An open file, or none.
    class File {
    public:
        File() = default;
        explicit File(const std::filesystem::path& path) noexcept;
        File(File&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
        File& operator=(File&& other) noexcept {
            std::swap(descriptor_, other.descriptor_);
            return *this;
        }
        ~File();
        /// Reads from the start of the file, as much as fits into `room`; empty if it cannot be read.
        [[nodiscard]] std::string_view read(std::span<char> room) const noexcept;

    private:
        int descriptor_ = -1;
    };

    void read_cores(HostRow&) noexcept;
    [[nodiscard]] std::int64_t throttled_ns() noexcept;

    std::vector<std::uint32_t> cores_;   // sorted
    File stat_, statm_;
    std::array<File, 3> pressure_;   // cpu, io, memory
    std::vector<File> throttled_;
    std::string_view throttled_key_;
    std::uint64_t throttled_unit_ns_ = 1, tick_ns_;
    std::vector<char> room_;
};

}   // namespace drawpoint
