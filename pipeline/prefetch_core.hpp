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

#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/pipeline/data_loader.hpp>
#include <drawpoint/pipeline/loader_policy.hpp>

#include "pipeline/batch_digest.hpp"
#include "pipeline/loader_core.hpp"
#include "pipeline/worker_pool.hpp"

namespace drawpoint {

class PrefetchCore;

/// One fixed buffer for the wake-up that is posted to the loop: there is never more than one under way.
class WakeBuffer {
public:
    [[nodiscard]] void* take(std::size_t bytes);
    void give(void* memory) noexcept;
    [[nodiscard]] std::uint64_t fallbacks() const noexcept { return fallbacks_.load(std::memory_order_relaxed); }

private:
    alignas(std::max_align_t) std::byte memory_[192];
    std::atomic<bool> used_{false};
    std::atomic<std::uint64_t> fallbacks_{0};
};

/// Asio's view of a WakeBuffer.
template <class T>
class WakeAllocator {
public:
    using value_type = T;
    explicit WakeAllocator(WakeBuffer* buffer) noexcept : buffer_{buffer} {}
    template <class U>
    WakeAllocator(const WakeAllocator<U>& other) noexcept : buffer_{other.buffer()} {}
    T* allocate(std::size_t n) { return static_cast<T*>(buffer_->take(n * sizeof(T))); }
    void deallocate(T* memory, std::size_t) noexcept { buffer_->give(memory); }
    [[nodiscard]] WakeBuffer* buffer() const noexcept { return buffer_; }
    template <class U>
    bool operator==(const WakeAllocator<U>& other) const noexcept {
        return buffer_ == other.buffer();
    }

private:
    WakeBuffer* buffer_;
};

/// Lets an event loop that goes away take the coroutines suspended in its loaders with it: the frame of such a coroutine owns
/// its pass, the pass the loader's core, and the core the coroutine's handler; only the loop can cut that ring.
class ParkedDraws : public asio::execution_context::service {
public:
    static asio::execution_context::id id;
    explicit ParkedDraws(asio::execution_context&);

    /// Shared with the cores, which may outlive the loop.
    struct Registry {
        std::mutex mutex;
        std::vector<PrefetchCore*> cores;
        void add(PrefetchCore*);
        void remove(PrefetchCore*) noexcept;
    };
    [[nodiscard]] const std::shared_ptr<Registry>& registry() const noexcept { return registry_; }

private:
    void shutdown() override;
    std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

/// What a DataLoader, its passes and its workers share: the policy under one mutex, a mailbox of finished batches by position,
/// and claims by atomic addition. Ready draws, claims inside a batch and give-backs take no lock.
class PrefetchCore final : public LoaderCore, public CrewWork {
public:
    using Handler = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;
    enum Kind : std::uint64_t { batch = 1, failed = 2, stopped = 3, waiting = 4, waiting_blocked = 5 };

    PrefetchCore(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, std::string_view name);

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
    void enable_digest() noexcept { digest_.emplace(); }

    /// Any thread.
    void stop() noexcept;
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

    /// The event loop is going away.
    void context_shutdown() noexcept;

    [[nodiscard]] LoaderCounters counters() noexcept;
    [[nodiscard]] std::string digest() const { return digest_ ? digest_->hex() : BatchDigest{}.hex(); }
    [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept { return batches_per_epoch_; }

    void work(std::size_t worker) noexcept override;
    void resume();   // by the wake-up, on the loop's thread

private:
    struct Worker;   // a thread's own things
    /// What is to be done once the mutex is free.
    struct Wakes {
        std::size_t workers = 0;
        bool loop = false, prepare_next = false;
    };
    struct WakeOp;

    ~PrefetchCore() override;
    [[noreturn]] static void throw_aborted();
    [[noreturn]] void throw_all_held() const;

    bool claim_one(Worker&) noexcept;
    void make_samples(Worker&, std::uint32_t slot, std::uint32_t first, std::uint32_t count) noexcept;
    void note_failure(Slot&, const SampleTask&, const char* where, std::exception_ptr) noexcept;
    void finish(Worker&, std::uint32_t slot) noexcept;
    /// Under the mutex. `loop_waits`: a worker is awake for what is open when it returns.
    [[nodiscard]] Wakes turn(bool loop_waits = false) noexcept;
    [[nodiscard]] std::uint64_t take_up() noexcept;   // under the mutex; the gate as it was
    [[nodiscard]] bool arm() noexcept;                // under the mutex; false: a slot is back
    void open(LoaderPolicy::Admission) noexcept;      // under the mutex
    [[nodiscard]] bool publish(std::uint64_t position, std::uint64_t slot,
                               Kind) noexcept;   // under the mutex; the loop waits
    void perform(Wakes) noexcept;
    void wake_loop() noexcept;
    void prepare_next_order() noexcept;
    void observe(Worker&) noexcept;   // under the mutex
    [[nodiscard]] std::unique_ptr<Worker> make_worker();
    [[nodiscard]] bool idle(Worker&) noexcept;   // false: stop
    void wait_for_token() noexcept;
    [[nodiscard]] bool spin_until_ready() const noexcept;
    [[nodiscard]] bool work_is_open() const noexcept {
        return current_.load(std::memory_order_acquire) < opened_.load(std::memory_order_acquire);
    }
    void abandon() noexcept;   // under the mutex
    void start_crew();
    void draw_inline();
    void record(const Slot&, std::uint32_t slot, BatchStatus, std::int64_t at_ns, std::uint64_t ready_batches) noexcept;
    [[noreturn]] void throw_failure(std::uint32_t slot);

    static constexpr std::size_t cell_count = 64;   // a power of two ≥ slots + 1: stopped needs a cell but no slot
    static constexpr std::size_t cell_mask = cell_count - 1;
    static_assert(cell_count > LoaderPolicy::max_slots);

    /// (position + 1) << 32 | slot << 3 | kind.
    struct alignas(line_bytes) Cell {
        std::atomic<std::uint64_t> word{0};
    };
    std::array<Cell, cell_count> cells_;
    alignas(line_bytes) std::atomic<std::uint64_t> opened_{0};    // batches
    alignas(line_bytes) std::atomic<std::uint64_t> current_{0};   // a hint: the oldest batch with unclaimed samples
    std::array<std::atomic<std::uint32_t>, 64> slot_of_{};        // by batch
    std::atomic<std::uint32_t> claim_size_{1};
    std::atomic<std::uint64_t> published_{0};
    std::atomic<bool> stopping_{false};

    // Read only after construction.
    alignas(line_bytes) asio::io_context* context_;
    WorkerPool* pool_;
    const SampleSource* source_;
    const Sampler* sampler_;
    LoaderOptions options_;
    std::vector<std::string> stages_;
    std::size_t source_size_, order_size_, batches_per_epoch_;
    Recorder* recorder_;   // null: nothing is recorded
    AnyClock clock_;
    std::uint8_t pipeline_ = 0;

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
    std::uint64_t turns_ = 0, parks_ = 0, wakes_ = 0;

    // The loop's.
    alignas(line_bytes) std::uint64_t position_ = 0;   // of the next draw
    std::uint64_t pass_serial_ = 0, pass_left_ = 0;
    std::uint64_t batches_taken_ = 0, batches_abandoned_ = 0, samples_taken_ = 0, suspensions_ = 0;
    std::optional<Handler> handler_;
    std::optional<BatchDigest> digest_;
    std::unique_ptr<Worker> inline_worker_;
    bool inline_ = false, started_ = false;
    Crew crew_;

    alignas(line_bytes) WakeBuffer wake_buffer_;
    std::atomic<std::uint32_t> posting_{0};
    std::atomic<bool> down_{false};
    std::shared_ptr<ParkedDraws::Registry> registry_;
};

}   // namespace drawpoint
