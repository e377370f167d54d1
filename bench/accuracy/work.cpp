#include "work.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint::bench {

void burn(std::uint64_t turns) noexcept {
    std::uint64_t state = turns | 1;
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        asm volatile("" : "+r"(state));
    }
}

double measure_turns_per_us() {
    using Clock = std::chrono::steady_clock;
    constexpr std::uint64_t turns = 1'000'000;   // some milliseconds
    std::vector<double> speeds;
    for (const auto end = Clock::now() + std::chrono::seconds{1}; Clock::now() < end;) {
        const Clock::time_point before = Clock::now();
        burn(turns);
        const std::chrono::duration<double, std::micro> time = Clock::now() - before;
        speeds.push_back(static_cast<double>(turns) / std::max(time.count(), 1e-3));
    }
    return statistics::quantile(speeds, 0.5);
}

double thread_cpu_us() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

void sleep_us(double us) noexcept {
    if (us <= 0)
        return;
    const auto ns = static_cast<std::int64_t>(us * 1e3);
    timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR) {
    }
}

WorkTeam::WorkTeam(std::size_t threads) {
    for (std::size_t helper = 1; helper < threads; ++helper)
        helpers_.emplace_back([this] { help(); });
}

WorkTeam::~WorkTeam() {
    stop_ = true;
    ++round_;
    round_.notify_all();
    for (std::thread& helper : helpers_)
        helper.join();
}

void WorkTeam::help() noexcept {
    for (std::uint32_t seen = 0;;) {
        round_.wait(seen);
        seen = round_.load();
        if (stop_)
            return;
        burn(share_);
        ++done_;
    }
}

void WorkTeam::burn_together(std::uint64_t turns) noexcept {
    share_ = turns / (helpers_.size() + 1);
    done_ = 0;
    if (!helpers_.empty()) {
        ++round_;
        round_.notify_all();
    }
    burn(share_);
    while (done_ != helpers_.size()) {   // spins, as numerical libraries do
    }
}

ForeignLoad::ForeignLoad(std::size_t processes, double share, double turns_per_us) {
    constexpr double period_us =
        7'000;   // neither a multiple nor a fraction of the 10 ms ticks in which the kernel counts this load
    const pid_t parent = getpid();
    for (std::size_t count = 0; count < processes; ++count) {
        const pid_t child = fork();
        if (child == 0) {   // makes only system calls: threads of the parent may hold locks
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            signal(SIGINT, SIG_DFL);
            while (getppid() == parent) {
                const std::int64_t begin_ns = SteadyClock{}.now_ns();
                burn(share < 1 ? static_cast<std::uint64_t>(share * period_us * turns_per_us) : 1'000'000);
                if (share < 1)
                    sleep_us(period_us - static_cast<double>(SteadyClock{}.now_ns() - begin_ns) * 1e-3);
            }
            _exit(0);
        }
        if (child > 0)
            children_.push_back(child);
    }
}

ForeignLoad::~ForeignLoad() {
    for (const int child : children_) {
        kill(child, SIGKILL);
        while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

}   // namespace drawpoint::bench
