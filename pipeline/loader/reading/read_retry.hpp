#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <vector>

#include <drawpoint/pipeline/loader/sample_source.hpp>

namespace drawpoint {

/// What is done about reads that fail or take long.
struct ReadRules {
    std::chrono::nanoseconds deadline{0};   ///< of one read, its repetitions included; 0: none
    std::size_t retries = 0;                ///< of a transient failure
};

/// Whether the same read may succeed a moment later: EIO, ESTALE, EINTR, EAGAIN.
[[nodiscard]] bool is_transient(const std::error_code&) noexcept;
/// The wait before repetition `n` = 1, 2, …: 10 ms, doubling, at most 1 s.
[[nodiscard]] std::chrono::nanoseconds back_off(std::size_t n) noexcept;
/// The failure of a read tried `attempts` ≥ 2 times.
[[nodiscard]] std::system_error tried_in_vain(std::size_t attempts, const std::error_code&);
/// The failure of a read that took longer than `deadline`.
[[nodiscard]] std::system_error took_too_long(std::chrono::nanoseconds deadline);

/// Reads samples by the rules, on the calling thread: for workers and readers alike. Any thread.
class RetriedReads {
public:
    RetriedReads(const SampleReads& reads, const ReadRules& rules) noexcept : reads_{&reads}, rules_{rules} {}

    /// SampleReads::read(), repeated by the rules. Throws what the last one threw, with the attempts named if there were
    /// several; timed_out when it ended after the deadline; operation_canceled when stopped between two.
    void read(std::uint64_t index, std::vector<std::byte>& contents);
    /// Ends every wait between repetitions, now and later.
    void stop() noexcept;

    [[nodiscard]] const SampleReads& reads() const noexcept { return *reads_; }
    [[nodiscard]] const ReadRules& rules() const noexcept { return rules_; }
    void count_retry() noexcept { retries_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t retries() const noexcept { return retries_.load(std::memory_order_relaxed); }

private:
    [[nodiscard]] bool wait(std::chrono::nanoseconds) noexcept;   // false: stopped

    const SampleReads* reads_;
    ReadRules rules_;
    std::atomic<std::uint64_t> retries_{0};
    std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
};

}   // namespace drawpoint
