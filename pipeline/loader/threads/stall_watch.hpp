#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// What a worker is at, for the watch to read from its own thread. The worker alone writes it: two relaxed stores.
class WorkerActivity {
public:
    enum class What : std::uint8_t { idle, sample, read, collate, order };
    /// `number`: the sample's index, the batch's number or the epoch, modulo 2^56.
    void is(What what, std::uint64_t number = 0) noexcept {
        now_.store(std::uint64_t{static_cast<std::uint8_t>(what)} << 56 | (number & numbers),
                   std::memory_order_relaxed);
        changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    /// Sets an activity, if there is one, until its own end.
    class For {
    public:
        For(WorkerActivity* activity, What what, std::uint64_t number) noexcept : activity_{activity} {
            if (activity_ != nullptr)
                activity_->is(what, number);
        }
        For(const For&) = delete;
        For& operator=(const For&) = delete;
        ~For() {
            if (activity_ != nullptr)
                activity_->is(What::idle);
        }

    private:
        WorkerActivity* activity_;
    };

private:
    friend class StallWatch;
    static constexpr std::uint64_t numbers = (std::uint64_t{1} << 56) - 1;
    std::atomic<std::uint64_t> now_{0}, changes_{0};
};

/// Tells, from a thread of its own, when the loop has waited for a batch longer than `LoaderOptions::stall_timeout`,
/// and what the workers have been at meanwhile. It looks at counters from time to time, so nobody reads the clock for
/// it.
class StallWatch {
public:
    /// The source must outlive it.
    StallWatch(std::chrono::nanoseconds timeout, StallObserver*, std::string loader, const SampleSource&);
    ~StallWatch() { stop(); }

    /// Starts the thread, unless it runs; without one, nothing is told.
    void start() noexcept;
    void stop() noexcept;   ///< joins it; idempotent

    /// Of a new worker, by its number in the recording, if there is one; valid as long as the watch. Throws
    /// std::bad_alloc. Any thread.
    [[nodiscard]] WorkerActivity& add_worker(std::optional<std::uint32_t> number);
    /// What the loop makes itself: samples without workers, an order that no worker has begun.
    [[nodiscard]] WorkerActivity& loop() noexcept { return loop_; }

    // For the loop's thread.
    /// It waits for the next batch of this pass, of which `drawn` are drawn.
    void begin_wait(std::uint64_t epoch, std::uint64_t drawn) noexcept;
    void end_wait() noexcept;   ///< also where no wait has begun

private:
    using Clock = std::chrono::steady_clock;
    /// Something that is the same since the watch saw it first.
    struct Seen {
        std::uint64_t changes = 0;
        Clock::time_point since{};
    };
    struct Worker {
        std::uint64_t number = 0;
        WorkerActivity activity;
        Seen seen;
    };
    void run() noexcept;
    // Under the mutex; throw std::bad_alloc.
    [[nodiscard]] std::string look(Clock::time_point now);   // what is to be told; empty: nothing
    [[nodiscard]] std::string told(Clock::time_point now) const;
    [[nodiscard]] std::string told_of(const WorkerActivity&, std::chrono::nanoseconds since) const;

    std::chrono::nanoseconds timeout_, tick_;
    StallObserver* observer_;
    std::string loader_;
    const SampleSource* source_;

    std::atomic<std::uint64_t> waits_{0};   // odd while the loop waits
    std::atomic<std::uint64_t> epoch_{0}, drawn_{0};

    std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
    std::deque<Worker> workers_;
    WorkerActivity loop_;
    Seen wait_, seen_loop_;
    std::chrono::nanoseconds tell_after_;   // the wait's length at which it is told
    std::thread thread_;
};

}   // namespace drawpoint
