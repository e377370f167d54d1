#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/detail/read_machine.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "pipeline/loader/reading/read_retry.hpp"

namespace drawpoint {

/// When a read began and ended, and the time its thread spent on a core and waiting for one; `no_stamp`: unknown.
struct ReadTimes {
    std::int64_t begin_ns = no_stamp, end_ns = no_stamp;
    std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;   // cpu_ns: since the end of the thread's previous read
};

/// The buffer of one read ahead. A reader owns it until its cell is `ready`, then the worker that takes it.
struct ReadBuffer {
    std::vector<std::byte> bytes;
    std::exception_ptr error;
    std::uint64_t index = 0;
    std::uint32_t number = 0;
    std::atomic<std::uint32_t>* cell = nullptr;
    ReadTimes times;
    std::chrono::steady_clock::time_point due;   // set only if reads have a deadline
    bool blocked = false;                        // set by the reader: the read waited for storage
    std::atomic<bool> late{false};               // set under ReadAhead's mutex: the waiting worker gave up
    std::uint64_t counted_bytes = 0;             // under ReadAhead's mutex: memory in pages touched so far
    std::mutex mutex;
    std::condition_variable arrived;
};

/// Number of times the calling thread has blocked since it began.
[[nodiscard]] long voluntary_switches() noexcept;

/// What executes the reads: threads, or an io_uring.
class Readers {
public:
    virtual ~Readers() = default;   // after join()
    /// Starts another thread. False: none was started.
    [[nodiscard]] virtual bool grow() noexcept = 0;
    /// Called when a reader that announced sleep in ReadAhead::next_read() should look again, when a read became late,
    /// and at the stop.
    virtual void wake() noexcept {}
    virtual void join() noexcept = 0;   // after ReadAhead::stop()
};

struct ReadAheadOptions {
    std::size_t concurrency = 64;       // reads in flight; 0: workers read for themselves
    std::size_t most_concurrency = 0;   // upper limit for retarget(), unless `concurrency` is larger
    std::size_t num_workers = 1, batch_size = 1, slots = 1;
    ReadRules rules;
    std::uint64_t memory = 0;   // most bytes of samples read ahead; 0: only the number of samples is limited
    bool io_uring = true;       // where the kernel and the source allow it
    bool measures = false;      // measure the CPU and run-queue time of some reads
};

/// The reads that one worker does itself.
struct WorkerReads {
    std::vector<std::byte> own;
    ReadReporter reporter;
    std::uint64_t unreported = 0;   // reads not yet in ReadAhead's counters
};

/// Counters of a ReadAhead; exact while no read is in progress.
struct ReadAheadCounters {
    std::uint64_t ahead = 0, own = 0;   ///< reads that ended: by readers, by workers
    std::uint64_t late = 0;             ///< given up at the deadline while a reader was busy with it
    std::uint64_t retries = 0;
    std::uint64_t readers = 0;      ///< threads started
    std::uint64_t bytes = 0;        ///< memory of samples read ahead, now
    std::uint64_t most_bytes = 0;   ///< its maximum so far
    std::uint64_t most_held = 0;    ///< maximum number of samples read or being read
};

/// Reads the samples of opened batches before workers reach them, in the sampler's order, with as many reads in flight
/// as ReadPolicy finds worthwhile. Each sample has a cell: idle, then either taken (by a worker that reads for itself)
/// or reading, ready, taken. Whoever changes the cell first has the sample, so a worker never waits for a reader that
/// has not begun. While reads are fast, nothing is read ahead.
class ReadAhead {
public:
    using Act = ReadMachine::Act;   // what to do about readers once no mutex is held

    ReadAhead(const SampleSource&, const SampleReads&, const ReadAheadOptions&, const AnyClock&);
    ~ReadAhead();
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    /// A batch was opened in `slot`; batches come in the sampler's order. `indices` must not change until
    /// withdraw(slot, 0), which is called before the slot's next batch. One thread at a time, before workers see the
    /// batch. perform() what it returns, once no mutex is held.
    [[nodiscard]] Act want(std::uint32_t slot, std::span<const std::uint64_t> indices) noexcept;
    /// Wakes or starts a reader: a system call.
    void perform(Act) noexcept;
    /// Allocates the cells of the first `slots` slots. One thread at a time; before want() of any of these. Throws
    /// std::bad_alloc.
    void prepare_slots(std::size_t slots);
    /// Changes the limits. Reads in flight above the new limits end normally; memory above `memory` is freed as samples
    /// are done. `concurrency`: 0 if it was 0, else 1 … most_concurrency. `memory`: as in the options.
    void retarget(std::size_t concurrency, std::size_t num_workers, std::uint64_t memory) noexcept;

    /// The samples of the slot's batch from `first` on are no longer wanted: nobody will take them.
    void withdraw(std::uint32_t slot, std::uint32_t first) noexcept;

    /// A sample's bytes, lent until done(), which is called even if making the sample fails.
    struct Taken {
        const std::vector<std::byte>* contents = nullptr;   ///< null: the source does not want them
        ReadTimes times;                                    ///< unknown if the worker read it itself
        ReadBuffer* buffer = nullptr;
    };
    /// The sample at place `at` of the batch in `slot`: read ahead, waited for, or read here. Called once per sample,
    /// by the worker that claimed it. Throws as RetriedReads::read() does.
    [[nodiscard]] Taken take(WorkerReads&, std::uint32_t slot, std::uint32_t at, std::uint64_t index);
    /// The worker has used the bytes. `made_ns`: time it took to make the sample from them; negative: not measured.
    void done(WorkerReads&, const Taken&, std::int64_t made_ns) noexcept;

    /// Ends all waiting; no further read ahead begins. Any thread.
    void stop() noexcept;
    /// stop(), then waits for the reads in progress. Afterwards readers no longer use the source.
    void join() noexcept;

    [[nodiscard]] ReadAheadCounters counters() const noexcept;

    // For readers.
    enum class Idle : std::uint8_t { returns, sleeps, blocks };   // what next_read() does if there is nothing to read
    /// Claims the next sample to read. Null: there is none now (`returns`, `sleeps`), or there will be none (`blocks`).
    /// Null from `sleeps` also announces that the caller sleeps until Readers::wake(). `slept`: its last call did so.
    [[nodiscard]] ReadBuffer* next_read(Idle, bool slept = false) noexcept;
    /// Ends a read, after its bytes or error, `blocked` and `times` are set.
    void end_read(ReadBuffer&) noexcept;
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
    /// Whether a read had to wait for storage. It took `ns`, in which the thread's voluntary_switches() rose by
    /// `switches`.
    [[nodiscard]] bool has_blocked(std::int64_t ns, long switches) const noexcept;
    [[nodiscard]] bool measures() const noexcept { return options_.measures; }
    [[nodiscard]] RetriedReads& retried() noexcept { return retried_; }
    [[nodiscard]] const AnyClock& clock() const noexcept { return clock_; }
    [[nodiscard]] std::size_t concurrency() const noexcept { return most_; }   ///< most reads in flight

private:
    using Lock = std::unique_lock<std::mutex>;

    [[nodiscard]] std::atomic<std::uint32_t>& cell(std::uint32_t slot, std::uint32_t at) noexcept {
        return cells_[slot][at];
    }

    // Both sides: read_ahead.cpp.
    [[nodiscard]] Act act() noexcept;   // under the mutex; perform() follows without it
    [[nodiscard]] Readers& readers();   // created when first needed; under start_mutex_
    void wake_readers() noexcept;
    [[nodiscard]] ReadMachine::Buffer next_buffer() const noexcept;   // under the mutex
    void put_back(ReadBuffer&) noexcept;                              // under the mutex
    void give_up(ReadBuffer&) noexcept;                               // under the mutex: frees its memory

    // Readers: read_ahead_readers.cpp.
    [[nodiscard]] ReadBuffer* claim_next() noexcept;   // under the mutex

    // Workers: read_ahead_workers.cpp.
    [[nodiscard]] ReadBuffer* take_cell(std::atomic<std::uint32_t>&);   // null: the worker reads it
    void wait_for(ReadBuffer&, std::atomic<std::uint32_t>& cell);       // throws at the deadline and when stopped
    void read_here(WorkerReads&, std::uint64_t index);

    const SampleReads* reads_;
    std::size_t source_size_;
    ReadAheadOptions options_;
    AnyClock clock_;
    std::size_t most_;       // upper limit of reads in flight; 0: nothing is read ahead
    bool counts_switches_;   // whether voluntary_switches() works on this system
    RetriedReads retried_;
    // Values of read_cell.hpp, by slot and place. A slot's are allocated before its first batch is wanted.
    std::array<std::unique_ptr<std::atomic<std::uint32_t>[]>, LoaderPolicy::max_slots> cells_;
    std::unique_ptr<ReadBuffer[]> buffers_;
    std::atomic<bool> stopping_{false};

    mutable std::mutex mutex_;
    std::condition_variable called_;
    ReadMachine machine_;
    std::array<const std::uint64_t*, LoaderPolicy::max_slots> indices_{};   // by slot
    std::vector<std::uint32_t> free_;                                       // numbers of free buffers; the last is next
    std::uint64_t ahead_ = 0, own_ = 0, late_ = 0;                          // as in ReadAheadCounters

    std::mutex start_mutex_;
    std::unique_ptr<Readers> readers_;
};

}   // namespace drawpoint
