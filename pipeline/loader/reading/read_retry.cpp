#include "pipeline/loader/reading/read_retry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

namespace drawpoint {

namespace {

using Clock = std::chrono::steady_clock;

std::string seconds(std::chrono::nanoseconds time) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
    return text;
}

}   // namespace

bool is_transient(const std::error_code& error) noexcept {
    const std::errc known[]{std::errc::io_error, std::errc::interrupted, std::errc::resource_unavailable_try_again,
                            std::errc::too_many_files_open, std::errc::too_many_files_open_in_system};
    return std::ranges::any_of(known, [&](std::errc one) { return error == one; }) ||
           error == std::error_code{ESTALE, std::generic_category()} ||
           error == std::error_code{ESTALE, std::system_category()};
}

std::chrono::nanoseconds back_off(std::size_t n) noexcept {
    using namespace std::chrono_literals;
    return n >= 8 ? 1s : std::min<std::chrono::nanoseconds>(10ms * (1u << (std::max<std::size_t>(n, 1) - 1)), 1s);
}

std::system_error tried_in_vain(std::size_t attempts, const std::error_code& error) {
    return {error, "cannot read, tried " + std::to_string(attempts) + " times"};
}

std::system_error took_too_long(std::chrono::nanoseconds deadline) {
    return {std::make_error_code(std::errc::timed_out),
            "the read took longer than read_deadline = " + seconds(deadline)};
}

bool RetriedReads::wait(std::chrono::nanoseconds time) noexcept {
    std::unique_lock lock{mutex_};
    return !stopped_.wait_for(lock, time, [this] { return stopping_; });
}

void RetriedReads::stop() noexcept {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    stopped_.notify_all();
}

void RetriedReads::read(std::uint64_t index, std::vector<std::byte>& contents) {
    const bool limited = rules_.deadline.count() > 0;
    const Clock::time_point begin = limited ? Clock::now() : Clock::time_point{};
    for (std::size_t attempt = 1;; ++attempt) {
        try {
            reads_->read(index, contents);
            if (limited && Clock::now() - begin > rules_.deadline)
                throw took_too_long(rules_.deadline);
            return;
        } catch (const std::system_error& error) {
            if (!is_transient(error.code()))
                throw;
            const bool in_time = !limited || Clock::now() - begin + back_off(attempt) <= rules_.deadline;
            if (attempt > rules_.retries || !in_time) {
                if (attempt == 1)
                    throw;
                throw tried_in_vain(attempt, error.code());
            }
        }
        if (!wait(back_off(attempt)))
            throw std::system_error{std::make_error_code(std::errc::operation_canceled), "read"};
        count_retry();
    }
}

}   // namespace drawpoint
