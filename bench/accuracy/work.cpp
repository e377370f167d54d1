#include "work.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <drawpoint/instrumentation/clock.hpp>

namespace drawpoint::bench {

double thread_cpu_us() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

namespace {

constexpr std::uint64_t part_turns = 600;   // some 2 µs

void turn(std::uint64_t turns) noexcept {
    std::uint64_t state = turns | 1;
    for (; turns > 0; --turns) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        asm volatile("" : "+r"(state));
    }
}

/// What a part takes: the fastest of many.
double measure_part_us() noexcept {
    std::int64_t fastest_ns = std::numeric_limits<std::int64_t>::max();
    for (int part = 0; part < 500; ++part) {
        const std::int64_t begin_ns = SteadyClock{}.now_ns();
        turn(part_turns);
        fastest_ns = std::min(fastest_ns, SteadyClock{}.now_ns() - begin_ns);
    }
    return std::max(static_cast<double>(fastest_ns), 1.0) * 1e-3;
}

}   // namespace

// Does not ask for the thread's CPU time: the kernel would look at each call whether it is another thread's turn.
void burn(double us) noexcept {
    static const double fastest_us = measure_part_us();
    constexpr double most_slower = 4;   // a part that takes longer has lost its core
    constexpr double clock_us = 0.02;   // to read it
    thread_local double usual_us = fastest_us;
    std::int64_t at_ns = SteadyClock{}.now_ns();
    for (double left_us = us; left_us > clock_us;) {
        const double share = std::min(left_us / usual_us, 1.0), expected_us = share * usual_us;
        turn(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(part_turns))));
        const std::int64_t now_ns = SteadyClock{}.now_ns();
        const double took_us = static_cast<double>(now_ns - std::exchange(at_ns, now_ns)) * 1e-3;
        const bool kept_its_core = took_us < most_slower * expected_us;
        left_us -= kept_its_core ? took_us : expected_us;
        if (kept_its_core && share == 1)
            usual_us += (took_us - usual_us) / 16;
    }
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
        burn(share_us_);
        ++done_;
    }
}

void WorkTeam::burn_together(double us) noexcept {
    share_us_ = us / static_cast<double>(helpers_.size() + 1);
    done_ = 0;
    if (!helpers_.empty()) {
        ++round_;
        round_.notify_all();
    }
    burn(share_us_);
    while (done_ != helpers_.size()) {   // spins, as numerical libraries do
    }
}

ForeignLoad::ForeignLoad(std::size_t processes, double share) {
    constexpr double period_us =
        7'000;   // neither a multiple nor a fraction of the 10 ms ticks in which the kernel counts this load
    const pid_t parent = getpid();
    burn(0);   // makes its static, whose lock another thread might hold while this one forks
    for (std::size_t count = 0; count < processes; ++count) {
        const pid_t child = fork();
        if (child == 0) {   // makes only system calls: threads of the parent may hold locks
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            signal(SIGINT, SIG_DFL);
            while (getppid() == parent) {
                const std::int64_t begin_ns = SteadyClock{}.now_ns();
                burn(share * period_us);
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
