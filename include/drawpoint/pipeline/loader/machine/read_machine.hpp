#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/read_policy.hpp>

namespace drawpoint {

/// What a worker measured of reads and samples since it last told.
struct ReadReport {
    std::uint64_t reads = 0, ns = 0, blocked_ns = 0;   ///< reads it looked at; of their time, that of those that waited
    std::uint64_t samples = 0, sample_ns = 0;          ///< made from bytes already read
};

/// Which of its own reads a worker looks at, as looking costs two system calls, and when it reports. One thread.
class ReadReporter {
public:
    /// A read begins. Whether to look at it: whether it waits for storage, and how long.
    [[nodiscard]] bool looks() noexcept { return reads_++ % look_at_every == 0 || blocked_; }
    void looked(std::uint64_t ns, bool blocked) noexcept {
        blocked_ = blocked;
        ++report_.reads;
        report_.ns += ns;
        report_.blocked_ns += blocked ? ns : 0;
    }
    /// A sample took `ns` to make from its bytes.
    void made(std::uint64_t ns) noexcept {
        ++report_.samples;
        report_.sample_ns += ns;
    }
    /// Whether the report is worth telling the others.
    [[nodiscard]] bool is_due() const noexcept {
        return report_.samples >= report_after || report_.blocked_ns >= report_at_once_ns;
    }
    [[nodiscard]] ReadReport take() noexcept { return std::exchange(report_, {}); }

private:
    static constexpr std::uint64_t look_at_every = 4, report_after = 8;   // reads, samples
    static constexpr std::uint64_t report_at_once_ns = 200'000;

    std::uint64_t reads_ = 0;
    bool blocked_ = true;   // the last one that was looked at
    ReadReport report_;
};

/// Every decision on reads ahead of the workers: which sample is read next, whether a reader goes on, whether another is woken
/// or started, what memory is given up. Pure, like LoaderMachine: threads or a simulator read, and tell. Allocates nothing;
/// O(slots). One caller at a time.
class ReadMachine {
public:
    /// What to do for the samples that are wanted, beside the readers at work.
    enum class Act : std::uint8_t { none, wake, start };
    struct Place {
        std::uint32_t slot, at;
    };
    /// The buffer that the next read would use.
    struct Buffer {
        bool exists = false, has_memory = false;
    };

    /// `most`: reads in flight whatever retarget() says. `memory`: bytes that what is read ahead may hold; 0: no limit.
    ReadMachine(std::size_t concurrency, std::size_t most, std::size_t num_workers, std::uint64_t memory) noexcept
        : policy_{concurrency, num_workers}, most_{most}, memory_{memory} {}
    void retarget(std::size_t concurrency, std::size_t num_workers, std::uint64_t memory) noexcept {
        policy_.retarget(concurrency < most_ ? concurrency : most_, num_workers);
        memory_ = memory;
    }
    void stop() noexcept { stopped_ = true; }

    // Samples.
    /// A batch of `size` samples is opened in the slot, after all earlier ones.
    void want(std::uint32_t slot, std::uint32_t size) noexcept {
        wanted_[wanted_count_++] = {.slot = slot, .next = 0, .size = size};
    }
    /// Samples of the slot's batch from `first` on are not wanted any more.
    void withdraw(std::uint32_t slot, std::uint32_t first) noexcept;
    /// The next sample that may be read, each once, the oldest first.
    [[nodiscard]] std::optional<Place> next() noexcept;

    // Readers.
    /// Whether a reader at work begins another read.
    [[nodiscard]] bool goes_on(const Buffer& next) const noexcept {
        return has_room(next) && held_ - late_ < policy_.hold();
    }
    /// Whether one that sleeps is woken, or one is started: then it counts as on its way.
    [[nodiscard]] Act act(const Buffer& next) noexcept;
    void sleeps() noexcept { ++asleep_; }
    void awake() noexcept { --(coming_ != 0 ? coming_ : asleep_); }   ///< one that slept
    [[nodiscard]] bool is_called() const noexcept { return coming_ != 0; }
    void not_started() noexcept {   ///< the system refuses: nobody is started any more
        refused_ = true;
        --started_;
    }
    [[nodiscard]] std::size_t started() const noexcept { return started_; }

    // Reads.
    void begun() noexcept {
        ++active_;
        if (++held_ > most_held_)
            most_held_ = held_;
    }
    /// The worker that waited for a read gave up.
    void late() noexcept {
        --active_;
        ++late_;
    }
    /// A read took `ns`; its buffer's memory is `grown` bytes larger.
    void ended(std::uint64_t ns, bool blocked, bool was_late, std::uint64_t grown) noexcept;
    /// What was read is used up, or not wanted. Whether its memory is to be given up: then gave_up().
    [[nodiscard]] bool put_back() noexcept {
        --held_;
        return exceeds_memory();
    }
    [[nodiscard]] bool exceeds_memory() const noexcept { return memory_ != 0 && bytes_ > memory_; }
    void gave_up(std::uint64_t bytes) noexcept { bytes_ -= bytes; }
    void observe(const ReadReport& report) noexcept {
        policy_.observe_reads(report.reads, report.ns, report.blocked_ns);
        policy_.observe_samples(report.samples, report.sample_ns);
    }

    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }             ///< held by what is read ahead
    [[nodiscard]] std::uint64_t most_bytes() const noexcept { return most_bytes_; }   ///< at a time
    [[nodiscard]] std::uint64_t most_held() const noexcept { return most_held_; }     ///< samples at a time

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
    std::size_t active_ = 0, late_ = 0, held_ = 0;   // reads at work; given up by a worker; samples read or being read
    std::size_t asleep_ = 0, coming_ = 0, started_ = 0;   // readers; coming: called, and not yet awake
    std::uint64_t bytes_ = 0, most_bytes_ = 0, most_held_ = 0;
    bool refused_ = false, stopped_ = false;
};

}   // namespace drawpoint
