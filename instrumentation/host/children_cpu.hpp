#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <drawpoint/instrumentation/ledger/rows.hpp>

namespace drawpoint {

/// What processes that work for this one have computed, those that have ended included. One thread at a time.
class ChildrenCpu {
public:
    ChildrenCpu() noexcept : reaped_before_ns_{reaped_ns()} {}

    /// Each counts once. Throws std::bad_alloc.
    void add(std::int64_t process_id) {
        any_ = true;
        Child child;
        if (::clock_getcpuclockid(static_cast<pid_t>(process_id), &child.clock) != 0)
            return;
        if (std::ranges::find(children_, child.clock, &Child::clock) == children_.end())
            children_.push_back(child);
    }

    /// Nanoseconds, never less than before; `no_stamp`: none was ever added. About a microsecond for each that lives.
    [[nodiscard]] std::int64_t read() noexcept {
        if (!any_)
            return no_stamp;
        std::int64_t living_ns = 0;
        std::erase_if(children_, [&](Child& child) {
            const std::int64_t ns = now_ns(child);
            if (ns < child.last_ns) {   // it has ended, or another process has its number
                ended_ns_ += child.last_ns;
                return true;
            }
            living_ns += child.last_ns = ns;
            return false;
        });
        // Of those that ended and were waited for, the kernel knows all; of others, what was last seen.
        const std::int64_t past_ns = std::max(reaped_ns() - reaped_before_ns_, ended_ns_);
        return total_ns_ = std::max(total_ns_, living_ns + past_ns);
    }

private:
    struct Child {
        clockid_t clock{};
        std::int64_t last_ns = 0;
    };
    /// Below 0: it has ended.
    static std::int64_t now_ns(const Child& child) noexcept {
        timespec time{};
        return ::clock_gettime(child.clock, &time) == 0 ? time.tv_sec * 1'000'000'000 + time.tv_nsec : -1;
    }
    static std::int64_t reaped_ns() noexcept {
        rusage usage{};
        ::getrusage(RUSAGE_CHILDREN, &usage);
        const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000; };
        return ns(usage.ru_utime) + ns(usage.ru_stime);
    }

    const std::int64_t reaped_before_ns_;
    std::vector<Child> children_;
    std::int64_t ended_ns_ = 0, total_ns_ = 0;
    bool any_ = false;
};

}   // namespace drawpoint
