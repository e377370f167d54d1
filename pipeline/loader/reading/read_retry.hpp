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

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// How reads that fail or take long are handled.
struct ReadRules {
    std::chrono::nanoseconds deadline{0};   ///< for one read including its retries; 0: none
    std::size_t retries = 0;                ///< most retries after transient failures
};

/// Whether the same read may succeed a moment later: EIO, ESTALE, EINTR, EAGAIN.
[[nodiscard]] bool is_transient(const std::error_code&) noexcept;
/// The pause before retry `n` = 1, 2, …: 10 ms, doubling, at most 1 s.
[[nodiscard]] std::chrono::nanoseconds back_off(std::size_t n) noexcept;
/// The error of a read that failed in each of `attempts` ≥ 2 attempts.
[[nodiscard]] std::system_error tried_in_vain(std::size_t attempts, const std::error_code&);
/// The error of a read that took longer than `deadline`.
[[nodiscard]] std::system_error took_too_long(std::chrono::nanoseconds deadline);

/// Reads samples on the calling thread, with retries and a deadline. Any thread.
class RetriedReads {
public:
    RetriedReads(const SampleReads& reads, const ReadRules& rules) noexcept : reads_{&reads}, rules_{rules} {}

    /// SampleReads::read(), retried as the rules say. Throws what the last attempt threw (tried_in_vain() if there were
    /// several); timed_out if the read ended after the deadline; operation_canceled if stopped before a retry.
    void read(std::uint64_t index, std::vector<std::byte>& contents);
    /// Ends every pause before a retry, now and later.
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
