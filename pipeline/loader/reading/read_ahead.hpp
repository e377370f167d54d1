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
#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/read_machine.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>

#include "pipeline/loader/reading/read_retry.hpp"

namespace drawpoint {

/// When a read began and ended, and what its thread used; `no_stamp`: not known.
struct ReadTimes {
    std::int64_t begin_ns = no_stamp, end_ns = no_stamp;
    std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;   // cpu: from the end of the read before
};

/// One read ahead: where its bytes go and who waits for them. Belongs to a reader until its cell says `ready`, then to the
/// worker that takes it.
struct ReadBuffer {
    std::vector<std::byte> bytes;
    std::exception_ptr error;
    std::uint64_t index = 0;
    std::uint32_t number = 0;
    std::atomic<std::uint32_t>* cell = nullptr;
    ReadTimes times;
    std::chrono::steady_clock::time_point due;   // if reads have a deadline
    bool blocked = false;                        // out of the reader: it waited for storage
    std::atomic<bool> late{false};               // set under ReadAhead's mutex: given up by the worker that waited
    std::uint64_t counted_bytes = 0;             // under ReadAhead's mutex: pages ever touched
    std::mutex mutex;
    std::condition_variable arrived;
};

/// How often the calling thread has waited for something since it began.
[[nodiscard]] long voluntary_switches() noexcept;

/// Who reads: threads, or a ring of the kernel's.
class Readers {
public:
    virtual ~Readers() = default;   // ended before: join()
    /// One thread more. False: the system refuses.
    [[nodiscard]] virtual bool grow() noexcept = 0;
    /// One that announced sleep in ReadAhead::next_read() is to look again; or for reads that became late; or for the stop.
    virtual void wake() noexcept {}
    virtual void join() noexcept = 0;   // told to stop before
};

struct ReadAheadOptions {
    std::size_t concurrency = 64;       // 0: workers read for themselves
    std::size_t most_concurrency = 0;   // what retarget() may ask for; or `concurrency`, if that is more
    std::size_t num_workers = 1, batch_size = 1, slots = 1;
    ReadRules rules;
    std::uint64_t memory = 0;   // bytes that what is read ahead may hold; 0: no limit but the number of samples
    bool io_uring = true;       // where the kernel and the source allow it
    bool measures = false;      // what readers' threads use, of some reads
};

/// What a worker keeps of its own reads.
struct WorkerReads {
    std::vector<std::byte> own;
    ReadReporter reporter;
    std::uint64_t unreported = 0;   // reads
};

/// Counters of a ReadAhead; exact when nothing is being read.
struct ReadAheadCounters {
    std::uint64_t ahead = 0, own = 0;   ///< reads that ended, by whom
    std::uint64_t late = 0;             ///< given up at the deadline while a reader was at it
    std::uint64_t retries = 0;
    std::uint64_t readers = 0;      ///< threads started
    std::uint64_t bytes = 0;        ///< held now by what is read ahead
    std::uint64_t most_bytes = 0;   ///< at a time
    std::uint64_t most_held = 0;    ///< samples read or being read at a time
};

/// Reads the samples of opened batches before workers come to them, in the sampler's order, with as many reads in flight as pay.
/// Each sample has a cell: idle, then either taken (by a worker that reads for itself) or reading, ready, taken. Whoever comes
/// first has it, so a worker never waits for a reader that has not begun. While reads are fast nobody reads ahead.
class ReadAhead {
public:
    ReadAhead(const SampleSource&, const SampleReads&, const ReadAheadOptions&, const AnyClock&);
    ~ReadAhead();
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    /// A batch is opened in `slot`, after all earlier ones; the indices stay as they are until withdraw(slot, 0), which comes
    /// before the next batch in this slot. By whoever opens, one thread at a time, before workers see the batch.
    void want(std::uint32_t slot, std::span<const std::uint64_t> indices) noexcept;
    /// Makes room for batches in so many slots. One thread at a time; before want() of any of these. Throws
    /// std::bad_alloc.
    void prepare_slots(std::size_t slots);
    /// Other numbers from now on: reads beyond them end, memory beyond `memory` is given up as samples are done.
    /// `concurrency`: 0 if it was, else 1 … most_concurrency. `memory`: as in the options.
    void retarget(std::size_t concurrency, std::size_t num_workers, std::uint64_t memory) noexcept;

    /// Samples of the slot's batch from `first` on are not wanted any more and will not be taken.
    void withdraw(std::uint32_t slot, std::uint32_t first) noexcept;

    /// A sample's bytes. Given back by done(), also when the sample fails.
    struct Taken {
        const std::vector<std::byte>* contents = nullptr;   ///< null: the source does not want them
        ReadTimes times;                                    ///< of a read ahead of the worker
        ReadBuffer* buffer = nullptr;
    };
    /// The sample at place `at` of the batch in `slot`: read ahead, waited for, or read here. Each once; by the worker that
    /// claimed it. Throws what storage throws, and by the rules of RetriedReads.
    [[nodiscard]] Taken take(WorkerReads&, std::uint32_t slot, std::uint32_t at, std::uint64_t index);
    /// `made_ns`: how long the sample took from its bytes.
    void done(WorkerReads&, const Taken&, std::int64_t made_ns) noexcept;

    /// Ends all waiting; nothing further is read ahead. Any thread.
    void stop() noexcept;
    /// stop(), and waits for reads under way. After that the source is not touched any more.
    void join() noexcept;

    [[nodiscard]] ReadAheadCounters counters() const noexcept;

    // For readers.
    enum class Idle : std::uint8_t { returns, sleeps, blocks };
    /// The next sample to read, begun; null: none now (`returns`, `sleeps`: and the caller is to be woken by Readers::wake())
    /// or none any more (`blocks`). `slept`: the caller's last call announced sleep.
    [[nodiscard]] ReadBuffer* next_read(Idle, bool slept = false) noexcept;
    /// The read is over: its bytes or error, `blocked` and `times` are set.
    void end_read(ReadBuffer&) noexcept;
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
    /// Whether a read of `ns`, during which the thread's voluntary_switches() rose by `switches`, had to wait for storage.
    [[nodiscard]] bool has_blocked(std::int64_t ns, long switches) const noexcept;
    [[nodiscard]] bool measures() const noexcept { return options_.measures; }
    [[nodiscard]] RetriedReads& retried() noexcept { return retried_; }
    [[nodiscard]] const AnyClock& clock() const noexcept { return clock_; }
    [[nodiscard]] std::size_t concurrency() const noexcept { return most_; }   ///< the most there may be

private:
    using Lock = std::unique_lock<std::mutex>;
    using Act = ReadMachine::Act;

    [[nodiscard]] std::atomic<std::uint32_t>& cell(std::uint32_t slot, std::uint32_t at) noexcept {
        return cells_[slot][at];
    }
    [[nodiscard]] ReadBuffer* claim_next() noexcept;                  // under the mutex
    [[nodiscard]] ReadMachine::Buffer next_buffer() const noexcept;   // under the mutex
    [[nodiscard]] Act act() noexcept;                                 // under the mutex; performed without it
    void perform(Act) noexcept;
    void put_back(ReadBuffer&) noexcept;                                // under the mutex
    void give_up(ReadBuffer&) noexcept;                                 // under the mutex; its memory
    [[nodiscard]] ReadBuffer* take_cell(std::atomic<std::uint32_t>&);   // null: nobody had begun
    void wait_for(ReadBuffer&, std::atomic<std::uint32_t>& cell);       // throws when given up
    void wake_readers() noexcept;
    void read_here(WorkerReads&, std::uint64_t index);
    [[nodiscard]] Readers& readers();   // made when first needed; under start_mutex_

    const SampleReads* reads_;
    std::size_t source_size_;
    ReadAheadOptions options_;
    AnyClock clock_;
    std::size_t most_;       // reads in flight, whatever retarget() says; 0: nothing is read ahead
    bool counts_switches_;   // the system tells whether a thread had to wait
    RetriedReads retried_;
    // buffer << 3 | state, by slot and place; a slot's are there before its first batch is wanted.
    std::array<std::unique_ptr<std::atomic<std::uint32_t>[]>, LoaderPolicy::max_slots> cells_;
    std::unique_ptr<ReadBuffer[]> buffers_;
    std::atomic<bool> stopping_{false};

    mutable std::mutex mutex_;
    std::condition_variable called_;
    ReadMachine machine_;
    std::array<const std::uint64_t*, LoaderPolicy::max_slots> indices_{};   // by slot
    std::vector<std::uint32_t> free_;                                       // buffers
    std::uint64_t ahead_ = 0, own_ = 0, late_ = 0;                          // reads that ended, by whom; given up

    std::mutex start_mutex_;
    std::unique_ptr<Readers> readers_;
};

}   // namespace drawpoint
