#include <drawpoint/diagnosis/trust/capacity.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "diagnosis/trust/core_probe.hpp"
#include <drawpoint/instrumentation/clock.hpp>

namespace drawpoint {
namespace {

constexpr std::int64_t probe_ns = 2'000'000;

/// Threads that run a piece of work at once. They sleep between rounds, so that a probe of one thread is undisturbed.
class Crew {
public:
    using Work = std::function<void(std::size_t thread)>;

    Crew(std::size_t threads, Work work) : work_{std::move(work)}, times_(threads) {
        try {
            for (std::size_t thread = 1; thread < threads; ++thread)
                threads_.emplace_back([this, thread] { run(thread); });
        } catch (...) {
            stop();
            throw;
        }
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    ~Crew() { stop(); }

    /// Runs the work on `threads` threads: 1, the caller, or all. Returns the time of the slowest.
    std::int64_t round(std::size_t threads) {
        if (threads == 1)
            return timed(0);
        here_.store(0, std::memory_order_relaxed);
        done_.store(0, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        times_[0] = together();
        while (done_.load(std::memory_order_acquire) < threads_.size())
            std::this_thread::yield();
        return *std::ranges::max_element(times_);
    }

private:
    void run(std::size_t thread) {
        for (std::uint32_t seen = 0;;) {
            round_.wait(seen, std::memory_order_acquire);
            seen = round_.load(std::memory_order_acquire);
            if (stop_.load(std::memory_order_relaxed))
                return;
            times_[thread] = together(thread);
            done_.fetch_add(1, std::memory_order_release);
        }
    }

    /// Spins until all threads are here: with a barrier that sleeps they would begin one after the other.
    std::int64_t together(std::size_t thread = 0) {
        here_.fetch_add(1, std::memory_order_acq_rel);
        for (std::size_t spins = 0; here_.load(std::memory_order_acquire) <= threads_.size(); ++spins)
            if (spins % 4096 == 4095)
                std::this_thread::yield();   // another process may have the core that the last thread needs
        return timed(thread);
    }

    std::int64_t timed(std::size_t thread) const {
        const std::int64_t begin_ns = SteadyClock{}.now_ns();
        work_(thread);
        return SteadyClock{}.now_ns() - begin_ns;
    }

    void stop() noexcept {
        stop_.store(true, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        for (std::thread& thread : threads_)
            thread.join();
    }

    Work work_;
    std::vector<std::int64_t> times_;
    std::atomic<std::uint32_t> round_ = 0;
    std::atomic<std::size_t> here_ = 0, done_ = 0;
    std::atomic<bool> stop_ = false;
    std::vector<std::thread> threads_;
};

/// Four chains of integer and four of floating-point operations, each step depending on the one before: a load much
/// like decoding.
std::uint64_t compute(std::uint64_t rounds, std::uint64_t seed) {
    std::array<std::uint64_t, 4> a{seed + 1, seed + 2, seed + 3, seed + 4};
    std::array<double, 4> b{1, 2, 3, 4};
    for (std::uint64_t i = 0; i < rounds; ++i)
        for (std::size_t chain = 0; chain < 4; ++chain) {
            a[chain] = a[chain] * 6364136223846793005u + 1442695040888963407u;
            b[chain] = b[chain] * 0.999 + 0.5;
        }
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ static_cast<std::uint64_t>(b[0] + b[1] + b[2] + b[3]);
}

double compute_efficiency(std::size_t threads, std::size_t probes) {
    std::atomic<std::uint64_t> sink = 0;
    std::uint64_t rounds = 1024;
    for (std::int64_t took_ns = 0; took_ns < probe_ns / 2 && rounds < (1u << 30);) {   // until they take half a probe
        rounds *= 2;
        took_ns = std::numeric_limits<std::int64_t>::max();
        for (int i = 0; i < 3; ++i) {
            const std::int64_t begin_ns = SteadyClock{}.now_ns();
            sink.fetch_add(compute(rounds, sink.load()));
            took_ns = std::min(took_ns, SteadyClock{}.now_ns() - begin_ns);
        }
    }
    Crew crew{threads, [&](std::size_t thread) {
                  // so that it is not optimised away
                  sink.fetch_add(compute(rounds, thread), std::memory_order_relaxed);
              }};
    return core_efficiency([&](std::size_t count) { return crew.round(count); }, threads, probes);
}

double copy_efficiency(std::size_t threads, std::size_t probes) {
    // Two buffers per thread that fit in no cache. With many threads they are smaller and used in turn, so that the
    // total stays at 1 GiB.
    const std::size_t bytes = std::min<std::size_t>(24'000'000, (std::size_t{1} << 29) / threads);
    std::vector<std::vector<std::byte>> from(threads, std::vector<std::byte>(bytes, std::byte{1})), to = from;
    std::vector<std::size_t> turns(threads);
    Crew crew{threads, [&](std::size_t thread) {
                  const std::size_t which = (thread + turns[thread]++) % threads;
                  std::memcpy(to[which].data(), from[which].data(), bytes);
              }};
    return core_efficiency([&](std::size_t count) { return crew.round(count); }, threads, probes);
}

}   // namespace

double core_efficiency(const CoreProbe& probe, std::size_t threads, std::size_t probes) {
    constexpr std::size_t group = 10;
    if (threads <= 1)
        return 1;
    std::int64_t alone_ns = std::numeric_limits<std::int64_t>::max(), together_ns = alone_ns;
    for (std::size_t done = 0; done < std::max<std::size_t>(probes, 1); done += group) {
        const std::size_t now = std::min(group, std::max<std::size_t>(probes, 1) - done);
        for (std::size_t i = 0; i < now; ++i)
            alone_ns = std::min(alone_ns, probe(1));
        for (std::size_t i = 0; i < now; ++i)
            together_ns = std::min(together_ns, probe(threads));
    }
    return std::clamp(static_cast<double>(std::max<std::int64_t>(alone_ns, 1)) /
                          static_cast<double>(std::max<std::int64_t>(together_ns, 1)),
                      0.0, 1.0);
}

Capacity measure_capacity(std::size_t probes) {
    const double cores = usable_cores();
    const auto threads = std::max<std::size_t>(1, static_cast<std::size_t>(std::floor(cores)));
    if (threads == 1)
        return {.cores = cores};
    return {.cores = cores,
            .core_efficiency = compute_efficiency(threads, probes),
            .copy_efficiency = copy_efficiency(threads, probes)};
}

}   // namespace drawpoint
