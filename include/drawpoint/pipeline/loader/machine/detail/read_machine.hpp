#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/detail/read_policy.hpp>

namespace drawpoint {

/// What a worker has measured of reads and samples since its last report.
struct ReadReport {
    std::uint64_t reads = 0, ns = 0, blocked_ns = 0;   ///< reads measured, their time, and the time of blocked ones
    std::uint64_t samples = 0, sample_ns = 0;          ///< samples made from bytes already read, and their time
};

/// Decides which of a worker's own reads are measured, as that costs two system calls, and when the worker reports.
/// One for each worker; one thread.
class ReadReporter {
public:
    /// A read begins. Returns whether to measure it, and then to call looked().
    [[nodiscard]] bool looks() noexcept { return reads_++ % look_at_every == 0 || blocked_; }
    /// The read took `ns`; `blocked`: it waited for storage.
    void looked(std::uint64_t ns, bool blocked) noexcept {
        blocked_ = blocked;
        ++report_.reads;
        report_.ns += ns;
        report_.blocked_ns += blocked ? ns : 0;
    }
    /// Making a sample from its bytes took `ns`.
    void made(std::uint64_t ns) noexcept {
        ++report_.samples;
        report_.sample_ns += ns;
    }
    /// Whether there is enough to report to ReadMachine::observe().
    [[nodiscard]] bool is_due() const noexcept {
        return report_.samples >= report_after || report_.blocked_ns >= report_at_once_ns;
    }
    [[nodiscard]] ReadReport take() noexcept { return std::exchange(report_, {}); }

private:
    static constexpr std::uint64_t look_at_every = 4, report_after = 8;   // reads, samples
    static constexpr std::uint64_t report_at_once_ns = 200'000;

    std::uint64_t reads_ = 0;
    bool blocked_ = true;   // of the last read measured
    ReadReport report_;
};

/// Makes every decision about reading ahead of the workers: which sample is read next, whether a reader begins another
/// read, whether a reader is woken or started, and which memory is freed. A pure state machine like LoaderMachine,
/// driven by reader threads or by the simulator. Nothing allocates or throws; O(slots). Calls must not overlap (the
/// driver's mutex).
class ReadMachine {
public:
    /// What the driver must do about readers: nothing, wake one that sleeps, or start one more.
    enum class Act : std::uint8_t { none, wake, start };
    /// Sample `at` of the batch in `slot`.
    struct Place {
        std::uint32_t slot, at;
    };
    /// The buffer that the next read would use.
    struct Buffer {
        bool exists = false, has_memory = false;
    };

    /// `most`: upper limit of reads in flight, also for retarget(). `memory`: bytes that samples read ahead may hold;
    /// 0: no limit.
    ReadMachine(std::size_t concurrency, std::size_t most, std::size_t num_workers, std::uint64_t memory) noexcept
        : policy_{concurrency, num_workers}, most_{most}, memory_{memory} {}
    /// Changes the numbers; a `concurrency` of 0 stays 0.
    void retarget(std::size_t concurrency, std::size_t num_workers, std::uint64_t memory) noexcept {
        policy_.retarget(concurrency < most_ ? concurrency : most_, num_workers);
        memory_ = memory;
    }
    void stop() noexcept { stopped_ = true; }   ///< no further read begins. Final

    // Samples.
    /// A batch of `size` samples is opened in the slot; it is read after all earlier ones.
    void want(std::uint32_t slot, std::uint32_t size) noexcept {
        wanted_[wanted_count_++] = {.slot = slot, .next = 0, .size = size};
    }
    /// Samples of the slot's batch from `first` on need not be read any more.
    void withdraw(std::uint32_t slot, std::uint32_t first) noexcept;
    /// The next sample to read, the oldest first, each once; nullopt: none.
    [[nodiscard]] std::optional<Place> next() noexcept;

    // Readers.
    /// Whether a reader that has ended a read begins another one, into `next`.
    [[nodiscard]] bool goes_on(const Buffer& next) const noexcept {
        return has_room(next) && held_ - late_ < policy_.hold();
    }
    /// Whether to wake or start a reader. One that is to be woken counts as coming until awake().
    [[nodiscard]] Act act(const Buffer& next) noexcept;
    void sleeps() noexcept { ++asleep_; }                                    ///< a reader goes to sleep
    void awake() noexcept { --(coming_ != 0 ? coming_ : asleep_); }          ///< a reader has woken up
    [[nodiscard]] bool is_called() const noexcept { return coming_ != 0; }   ///< a sleeping reader was told to wake up
    /// The system refused to start a reader: no further one is started.
    void not_started() noexcept {
        refused_ = true;
        --started_;
    }
    [[nodiscard]] std::size_t started() const noexcept { return started_; }

    // Reads.
    /// A read begins.
    void begun() noexcept {
        ++active_;
        if (++held_ > most_held_)
            most_held_ = held_;
    }
    /// The worker that waited for a read has given up at the deadline; the read is still running.
    void late() noexcept {
        --active_;
        ++late_;
    }
    /// A read has ended after `ns`; the memory of its buffer has grown by `grown` bytes.
    void ended(std::uint64_t ns, bool blocked, bool was_late, std::uint64_t grown) noexcept;
    /// A buffer is free again: its sample was made, or is not wanted. True: the driver must free its memory and call
    /// gave_up().
    [[nodiscard]] bool put_back() noexcept {
        --held_;
        return exceeds_memory();
    }
    [[nodiscard]] bool exceeds_memory() const noexcept { return memory_ != 0 && bytes_ > memory_; }
    void gave_up(std::uint64_t bytes) noexcept { bytes_ -= bytes; }
    /// A worker reports.
    void observe(const ReadReport& report) noexcept {
        policy_.observe_reads(report.reads, report.ns, report.blocked_ns);
        policy_.observe_samples(report.samples, report.sample_ns);
    }

    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }             ///< held by samples read ahead
    [[nodiscard]] std::uint64_t most_bytes() const noexcept { return most_bytes_; }   ///< the maximum of bytes()
    [[nodiscard]] std::uint64_t most_held() const noexcept { return most_held_; }     ///< most samples held at a time

private:
    struct Wanted {
        std::uint32_t slot = 0, next = 0, size = 0;
    };
    [[nodiscard]] bool has_room(const Buffer& next) const noexcept {
        return policy_.ahead() && !stopped_ && active_ < policy_.in_flight() && next.exists &&
               (memory_ == 0 || bytes_ < memory_ || next.has_memory);
    }

    ReadPolicy policy_;
    std::size_t most_;
    std::uint64_t memory_;
    std::array<Wanted, LoaderPolicy::max_slots> wanted_{};   // oldest first
    std::size_t wanted_count_ = 0;
    // Reads running that are still wanted, and that their worker gave up; samples read or being read.
    std::size_t active_ = 0, late_ = 0, held_ = 0;
    std::size_t asleep_ = 0, coming_ = 0, started_ = 0;   // readers; coming: told to wake up and not yet awake
    std::uint64_t bytes_ = 0, most_bytes_ = 0, most_held_ = 0;
    bool refused_ = false, stopped_ = false;
};

}   // namespace drawpoint
