#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/async_result.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>

#include "pipeline/loader/batch_digest.hpp"
#include "pipeline/loader/loader_core.hpp"
#include "pipeline/loader/threads/loop_wake.hpp"
#include "pipeline/loader/reading/read_ahead.hpp"
#include "pipeline/loader/threads/sample_maker.hpp"
#include "pipeline/loader/threads/worker_pool.hpp"

namespace drawpoint {

/// In a loop that waits for another thread.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// What a DataLoader, its passes and its workers share: the policy under one mutex, a mailbox of finished batches by position,
/// and claims by atomic addition. Ready draws, claims inside a batch and give-backs take no lock.
class PrefetchCore final : public LoaderCore, public CrewWork {
public:
    using Handler = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;
    enum Kind : std::uint64_t { batch = 1, failed = 2, stopped = 3, waiting = 4, waiting_blocked = 5 };

    /// `plan`: of these needs, which it fits.
    PrefetchCore(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, const MemoryNeeds&,
                 const MemoryPlan& plan, std::string_view name);

    // The loop's side: its thread only.
    /// Begins a pass; its serial number.
    [[nodiscard]] std::uint64_t begin_pass(std::size_t epoch, EpochOptions);
    void end_pass(std::uint64_t serial) noexcept;
    /// Whether the pass has no more batches.
    [[nodiscard]] bool exhausted(std::uint64_t serial) const noexcept {
        return serial != pass_serial_ || pass_left_ == 0;
    }
    [[nodiscard]] bool ready() const noexcept {
        const std::uint64_t cell = cells_[position_ & cell_mask].word.load(std::memory_order_acquire);
        return cell >> 32 == ((position_ + 1) & 0xffff'ffff) && (cell & 7) <= stopped && !stopping();
    }
    /// Spins for some µs, or makes the batch where there are no workers; true: announced as waiting, suspend now.
    /// Throws std::logic_error while the user holds every slot, and operation_aborted.
    [[nodiscard]] bool must_wait(Kind how);
    void wait_blocked() noexcept;
    void resumed() noexcept;
    [[nodiscard]] Batch take();
    void park(Handler&& handler) { handler_.emplace(std::move(handler)); }
    void shut_down_loader() noexcept;   // by the loader's destructor
    /// Runs on with these numbers, of which a LoaderChange's alone may differ. Throws std::bad_alloc, with nothing changed.
    void reconfigure(const LoaderOptions& asked, const MemoryNeeds&, const MemoryPlan&);
    void enable_digest() noexcept { digest_.emplace(); }

    /// Any thread.
    void stop() noexcept;
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

    /// The event loop is going away.
    void context_shutdown() noexcept;

    [[nodiscard]] LoaderCounters counters() noexcept;
    [[nodiscard]] std::string digest() const { return digest_ ? digest_->hex() : BatchDigest{}.hex(); }
    [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }
    [[nodiscard]] const LoaderOptions& asked() const noexcept { return asked_; }
    [[nodiscard]] const MemoryNeeds& needs() const noexcept { return needs_; }
    [[nodiscard]] std::size_t max_threads() const noexcept { return max_threads_; }
    [[nodiscard]] const MemoryPlan& memory_plan() const noexcept { return memory_plan_; }
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept { return batches_per_epoch_; }

    void work(std::size_t worker) noexcept override;
    void resume();   // by the wake-up, on the loop's thread

private:
    /// What is to be done once the mutex is free.
    struct Wakes {
        std::size_t workers = 0;
        bool loop = false, prepare_next = false;
        Wakes& operator+=(const Wakes& more) noexcept {
            workers += more.workers;
            loop |= more.loop;
            prepare_next |= more.prepare_next;
            return *this;
        }
    };
    /// How much there may be, of each.
    struct Numbers {
        std::size_t num_workers, prefetch_depth, read_concurrency, sample_sets;
        std::uint64_t batches_budget_bytes, reads_bytes;
        bool operator==(const Numbers&) const = default;
    };
    struct Asks {
        bool loop_waits = false;   // a worker is awake for what is open when the turn is over
        bool leaves = false;       // a worker does, and may have been that one
        std::size_t wakes = 0;     // of as many who sleep, whatever is open
    };
    struct WakeOp;

    ~PrefetchCore() override;
    [[noreturn]] static void throw_aborted();
    [[nodiscard]] bool holds_all() const noexcept;   // under the mutex; the user: no batch can come
    [[noreturn]] void throw_all_held() const;

    bool claim_one(SampleWorker&) noexcept;
    void finish(SampleWorker&, std::uint32_t slot) noexcept;
    [[nodiscard]] Wakes turn(const Asks&) noexcept;   // under the mutex
    [[nodiscard]] Wakes turn() noexcept { return turn(Asks{}); }
    /// Whether what came back can stay where it is: work is open, and nobody sleeps who may want to know. For batches so short
    /// that taking up each slot by itself would cost as much as filling it.
    [[nodiscard]] bool may_leave_slots() const noexcept {
        return !armed_ && policy_.claims_whole_batches() && policy_.parked() == 0 && work_is_open();
    }
    [[nodiscard]] std::uint64_t take_up() noexcept;   // under the mutex; the gate as it was
    [[nodiscard]] bool is_armed() const noexcept;     // under the mutex; the threshold is no higher than it should be
    [[nodiscard]] bool arm() noexcept;                // under the mutex; false: a slot is back
    void open(LoaderPolicy::Admission) noexcept;      // under the mutex
    void complete(std::uint32_t slot, bool has_failed) noexcept;   // under the mutex
    void begin_making(Slot&) noexcept;                             // of samples that will be collated
    void count_bytes() noexcept;   // under the mutex; of slots whose batches differ in size
    void trim_slots() noexcept;    // under the mutex
    [[nodiscard]] bool publish(std::uint64_t position, std::uint64_t slot,
                               Kind) noexcept;   // under the mutex; the loop waits
    void perform(Wakes) noexcept;
    void wake_loop() noexcept;
    void prepare_next_order() noexcept;
    void observe(SampleWorker&) noexcept;              // under the mutex
    [[nodiscard]] bool idle(SampleWorker&) noexcept;   // false: stop
    static void wait_for_token(std::atomic<std::uint32_t>& tokens) noexcept;

    // Live control: prefetch_control.cpp.
    void start_crew();
    void start_workers(std::size_t num_workers);        // up to so many in all
    void arrive() noexcept;                             // of a worker; on the bench while there are enough
    [[nodiscard]] bool leave(SampleWorker&) noexcept;   // for the bench, if there are too many; false: stop
    [[nodiscard]] Numbers numbers() const noexcept;     // as the options at hand and their plan say
    [[nodiscard]] static Numbers least(const Numbers&, const Numbers&) noexcept;
    void hold_to(const Numbers&) noexcept;               // under the mutex
    [[nodiscard]] bool has_room() const noexcept;        // under the mutex; of what there is to be less, there is
    [[nodiscard]] Wakes go_on() noexcept;                // under the mutex; to all numbers, if there is room
    void look_for_room() noexcept;                       // the loop's, at a draw while something waits for room
    void count_workers() noexcept;                       // under the mutex; some come back from the bench
    void retire_slots() noexcept;                        // under the mutex; memory of free ones beyond the depth
    [[nodiscard]] SettingRow setting() const noexcept;   // under the mutex; from now on
    void note_setting() noexcept;                        // under the mutex; in the recording, if it is another
    void extend() noexcept;                              // under the mutex; by a pass
    [[nodiscard]] bool spin_until_ready() noexcept;
    [[nodiscard]] bool work_is_open() const noexcept {
        return current_.load(std::memory_order_acquire) < opened_.load(std::memory_order_acquire);
    }
    [[nodiscard]] std::uint64_t unclaimed() const noexcept {   // batches; those of a stale hint, too
        const std::uint64_t current = current_.load(std::memory_order_acquire);
        return opened_.load(std::memory_order_acquire) - current;
    }
    void abandon() noexcept;               // under the mutex
    void count_released(Slot&) noexcept;   // under the mutex; what its samples gave up
    void draw_inline();
    void record(const Slot&, std::uint32_t slot, BatchStatus, std::int64_t at_ns, std::uint64_t ready_batches) noexcept;
    [[noreturn]] void throw_failure(std::uint32_t slot);

    [[nodiscard]] static LoaderOptions within(const MemoryPlan&, LoaderOptions) noexcept;   // what it leaves of them
    [[nodiscard]] static std::uint64_t reads_memory(const LoaderOptions&, const MemoryPlan&) noexcept;
    [[nodiscard]] static std::int64_t most_spin_ns(std::size_t num_workers) noexcept;

    /// Of a worker, and of the loop where threads outnumber cores: there a longer one harms.
    static constexpr std::int64_t spin_ns = 5'000;
    /// Of the loop with a core of its own: waking it costs a worker 5 to 10 µs.
    static constexpr std::int64_t long_spin_ns = 80'000;

    static constexpr std::size_t cell_count = 64;   // a power of two ≥ slots + 1: stopped needs a cell but no slot
    static constexpr std::size_t cell_mask = cell_count - 1;
    static_assert(cell_count > LoaderPolicy::max_slots);

    /// (position + 1) << 32 | slot << 3 | kind.
    struct alignas(line_bytes) Cell {
        std::atomic<std::uint64_t> word{0};
        std::uint32_t size = 0;   // of a batch: its samples
    };
    std::array<Cell, cell_count> cells_;
    alignas(line_bytes) std::atomic<std::uint64_t> current_{0};     // a hint: the oldest batch with unclaimed samples
    alignas(line_bytes) std::atomic<std::uint64_t> opened_{0};      // batches
    std::array<std::atomic<std::uint32_t>, 64> slot_of_{};          // by batch
    alignas(line_bytes) std::atomic<std::uint64_t> published_{0};   // positions; kept while something is recorded

    // Hardly ever written: every draw and every claim reads them.
    alignas(line_bytes) std::atomic<bool> stopping_{false};
    std::atomic<std::uint32_t> claim_size_{1};
    std::atomic<bool> too_many_{false};       // workers: the next at the end of a claim leaves
    std::atomic<bool> measures_use_{false};   // of claims, as there may be too many workers

    alignas(line_bytes) std::atomic<std::uint32_t> bench_tokens_{0};   // wakes for workers on the bench

    // Read only after construction.
    asio::io_context* context_;
    WorkerPool* pool_;
    void (*on_worker_start_)() noexcept;
    const Sampler* sampler_;
    std::size_t max_threads_;
    LoaderOptions asked_,
        options_;   // as the budget leaves them; with what follows written by the loop under the mutex
    MemoryNeeds needs_;
    MemoryPlan memory_plan_;
    const SampleCache* cache_;   // in memory; null: there is none
    std::size_t order_size_, batches_per_epoch_;
    Recorder* recorder_;   // null: nothing is recorded
    AnyClock clock_;
    std::uint8_t pipeline_;
    std::unique_ptr<ReadAhead> reads_;   // null: the source reads for itself, or nothing
    SampleMaker maker_;

    // Under the mutex.
    alignas(line_bytes) std::mutex mutex_;
    std::condition_variable order_done_;
    LoaderPolicy policy_;
    std::vector<std::uint64_t> order_;   // of the epoch being admitted; written without the mutex while order_busy_
    std::uint64_t order_epoch_ = 0, order_first_batch_ = 0;
    bool order_busy_ = false;
    bool next_wanted_ = false;     // prefetch into order_epoch_ + 1 once all of it is admitted
    bool next_prepared_ = false;   // done so
    bool armed_ = false;           // the gate's threshold wakes a worker
    std::size_t benched_ = 0;      // workers that are not wanted, asleep until they are
    std::size_t leaving_ = 0;      // workers that have ended and still give up what they hold
    std::uint64_t retiring_ = 0;   // slots beyond the depth with memory, a bit each
    Numbers held_to_;              // less than what is asked for while that waits for room
    SettingRow noted_{};           // last in the recording
    std::uint64_t turns_ = 0, parks_ = 0, wakes_ = 0;
    std::uint64_t most_workers_bytes_ = 0, most_slots_bytes_ = 0;        // under the setting at hand
    std::uint64_t past_peak_bytes_ = 0;                                  // of both together, under those before
    std::uint64_t largest_samples_bytes_ = 0, largest_rest_bytes_ = 0;   // of a slot

    // The loop's.
    alignas(line_bytes) std::uint64_t position_ = 0;   // of the next draw
    std::uint64_t pass_serial_ = 0, pass_left_ = 0;
    std::int64_t last_offered_ns_ = no_stamp;   // of the batch drawn last
    bool waits_for_room_ = false;               // what is to be more, for what is to be less
    std::uint64_t settled_at_ = 0;              // the position behind what was in flight when they changed
    std::uint64_t batches_taken_ = 0, batches_abandoned_ = 0, samples_taken_ = 0, suspensions_ = 0;
    std::uint64_t waits_ = 0;               // draws that were not ready at once
    std::int64_t most_spin_ns_, spin_ns_;   // before the loop suspends: longer while that succeeds
    std::optional<Handler> handler_;
    std::optional<BatchDigest> digest_;
    std::unique_ptr<SampleWorker> inline_worker_;
    bool inline_ = false, started_ = false;
    std::vector<Crew> crews_;

    alignas(line_bytes) WakeBuffer wake_buffer_;
    std::atomic<std::uint32_t> posting_{0};
    std::atomic<bool> down_{false};
    std::shared_ptr<ParkedDraws::Registry> registry_;
};

}   // namespace drawpoint
