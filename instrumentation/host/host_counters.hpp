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

/// What the machine and this process have used so far, from files of /proc and /sys/fs/cgroup that stay open.
///
/// Resolution: the kernel counts the cores' time (`busy_ns`, `steal_ns`) in ticks of usually 10 ms, so a difference over
/// 200 ms is good to 5 % of a core, one over 10 s to 0.1 %. All else is exact. `throttled_ns` is the sum over this process's
/// cgroup and those above it, and over the cores they were stopped on: it may grow faster than time. One thread at a time.
class HostCounters {
public:
    HostCounters();
    /// `root` stands for "/".
    explicit HostCounters(const std::filesystem::path& root);
    /// `cores`: numbers of those that count as ours; the other constructors take the calling thread's affinity mask.
    HostCounters(const std::filesystem::path& root, std::vector<std::uint32_t> cores);

    /// What is missing or makes no sense is `no_stamp`. About 20 µs, most of it the kernel's for /proc/stat; grows with its
    /// cores. Never allocates.
    [[nodiscard]] HostRow read(std::int64_t now_ns) noexcept;

private:
    /// An open file; or none.
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
        /// All of it from its begin that has room; empty: it cannot be read.
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
