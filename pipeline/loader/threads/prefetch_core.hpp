#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <asio/async_result.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/instrumentation/host/detail/fork_check.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>
#include <drawpoint/pipeline/loader/machine/detail/spin_policy.hpp>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>
#include "pipeline/loader/core/loader_core.hpp"
#include "pipeline/loader/core/loader_state.hpp"
#include "pipeline/loader/core/spin_pause.hpp"
#include "pipeline/loader/reading/read_ahead.hpp"
#include "pipeline/loader/threads/claim_board.hpp"
#include "pipeline/loader/threads/draw_mailbox.hpp"
#include "pipeline/loader/threads/guarded.hpp"
#include "pipeline/loader/threads/loop_wake.hpp"
#include "pipeline/loader/threads/machine_log.hpp"
#include "pipeline/loader/threads/pass_progress.hpp"
#include "pipeline/loader/threads/sample_maker.hpp"
#include "pipeline/loader/threads/stall_watch.hpp"
#include "pipeline/runtime/worker_pool.hpp"

namespace drawpoint {

/// Shared by a DataLoader, its passes and its workers: drives a LoaderMachine with threads. The machine decides under
/// one mutex, and this class carries out its effects. Ready draws, claims within a batch and give-backs take no lock.
class PrefetchCore final : public LoaderCore, public CrewWork {
public:
    using Handler = asio::async_result<asio::use_awaitable_t<>, void(std::exception_ptr)>::handler_type;

    /// `plan` is that of the needs given, and fits the budget.
    PrefetchCore(Runtime&, const SampleSource&, const Sampler&, const LoaderOptions&, const MemoryNeeds&,
                 const MemoryPlan& plan, std::string_view name);

    // For the loop's thread only.
    /// Begins a pass and returns its serial number. If its order still has to be computed, the first draw does that.
    /// Throws std::logic_error while another pass is not used up.
    [[nodiscard]] std::uint64_t begin_pass(std::size_t epoch, EpochOptions);
    void end_pass(std::uint64_t serial) noexcept;
    /// Whether the pass has no more batches to draw.
    [[nodiscard]] bool exhausted(std::uint64_t serial) const noexcept {
        return serial != pass_serial_ || pass_left_ == 0;
    }
    /// Batches of the current pass that are drawn, those before restore() included; all, for an earlier pass.
    [[nodiscard]] std::uint64_t drawn(std::uint64_t serial) const noexcept {
        return serial == pass_serial_ ? drawn() : batches_per_epoch_;
    }
    /// Throws what the sampler throws.
    [[nodiscard]] LoaderState state() const;
    /// Throws std::invalid_argument for a state of other data, std::logic_error during a pass.
    void restore(const LoaderState&);
    /// Whether the next draw takes a batch that is there. False too while must_wait() has more to do or to refuse.
    [[nodiscard]] bool ready() const noexcept { return mailbox_.has(position_) && !is_special_ && !stopping(); }
    /// Whether the draw `ahead` draws after the next one takes a batch that is there, unless one before has not.
    [[nodiscard]] bool has_batch(std::size_t ahead) const noexcept {
        return !is_special_ && !stopping() && mailbox_.has(position_ + ahead) &&
               mailbox_.at(position_ + ahead).kind == DrawMailbox::Kind::batch;
    }
    /// Its position in `Ledger::pipelines`.
    [[nodiscard]] std::uint16_t pipeline() const noexcept { return pipeline_; }
    /// Draws that the pass has left.
    [[nodiscard]] std::uint64_t left(std::uint64_t serial) const noexcept {
        return serial == pass_serial_ ? pass_left_ : 0;
    }
    /// A batch that is there.
    [[nodiscard]] ReadyBatch peek(std::size_t ahead) const noexcept;
    /// Spins for some µs, or makes the batch if there are no workers. True: the loop is announced as waiting and must
    /// suspend now. Throws std::logic_error while the user holds every slot, operation_aborted, and what the sampler
    /// throws.
    [[nodiscard]] bool must_wait(DrawMailbox::Kind how);
    void wait_blocked() noexcept;
    /// As Pass::wait_for() and ready_descriptor(). A wait that is announced goes on until end_outside_wait().
    [[nodiscard]] bool wait_outside(std::chrono::nanoseconds timeout);
    [[nodiscard]] int ready_descriptor();
    /// Ends it if the draw need not wait any more.
    void settle_outside_wait() noexcept {
        if (waits_outside_ && mailbox_.has(position_)) [[unlikely]]
            end_outside_wait();
    }
    /// Draws the ready batch if all its samples were skipped (`LoaderOptions::on_error`). False: take() draws it.
    [[nodiscard]] bool passes_over() { return mailbox_.at(position_).kind != DrawMailbox::Kind::batch && pass_over(); }
    [[nodiscard]] Batch take();
    /// Suspends the loop until resume() or interrupt() calls the handler. The handler's cancellation slot interrupts.
    void park(Handler&& handler);
    /// Takes back what must_wait() announced for the draw of this number (suspensions()), unless it was parked: then
    /// resume() or interrupt() has done so, and another draw may wait by now.
    void withdraw_unless_parked(std::uint64_t draw) noexcept;
    /// Ends the suspended draw with an error; the batch that it waited for is the next draw's. Nothing, if no draw is
    /// suspended.
    void interrupt(const std::error_code& why) noexcept;
    /// The same, unless another draw has been suspended since suspensions() was `draw`.
    void interrupt_draw(std::uint64_t draw, const std::error_code& why) noexcept {
        if (suspensions_ == draw)
            interrupt(why);
    }
    [[nodiscard]] std::uint64_t suspensions() const noexcept { return suspensions_; }
    [[nodiscard]] asio::io_context& context() const noexcept { return *context_; }
    void shut_down_loader() noexcept;   // called by the loader's destructor
    /// Changes the numbers of a LoaderChange while the loader runs; the others must be as before. Throws
    /// std::bad_alloc; then nothing has changed.
    void reconfigure(const LoaderOptions& asked, const MemoryNeeds&, const MemoryPlan&);
    void enable_digest() noexcept { digest_.emplace(); }

    /// Any thread.
    void stop() noexcept;
    [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

    /// The event loop is being destroyed.
    void context_shutdown() noexcept;

    [[nodiscard]] LoaderCounters counters() noexcept;
    [[nodiscard]] std::string digest() const { return digest_ ? digest_->hex() : BatchDigest{}.hex(); }
    [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }
    [[nodiscard]] const LoaderOptions& asked() const noexcept { return asked_; }
    [[nodiscard]] const MemoryNeeds& needs() const noexcept { return needs_; }
    [[nodiscard]] std::size_t max_threads() const noexcept { return max_threads_; }
    [[nodiscard]] const MemoryPlan& memory_plan() const noexcept { return memory_plan_; }
    [[nodiscard]] std::size_t batches_per_epoch() const noexcept { return batches_per_epoch_; }
    [[nodiscard]] std::int64_t now_ns() const noexcept { return recorder_ ? clock_.now_ns() : no_stamp; }

    void work(std::size_t worker) noexcept override;
    void resume();   // called by the wake-up, on the loop's thread

private:
    /// The state that the mutex guards. Functions that need the mutex take a reference to it.
    struct Guard {
        Guard(const PolicyOptions& policy, const LiveLimits& limits, std::size_t order_size)
            : machine{policy, limits}, order(order_size), next_order(policy.num_workers == 0 ? 0 : order_size) {}

        LoggedMachine machine;
        /// Sample indices of the epoch being admitted, and of the next one; empty if the sampler has parts. While an
        /// order is prepared, its thread writes next_order without the mutex.
        std::vector<std::uint64_t> order, next_order;
        std::uint64_t first_batch = 0;   // position of the epoch's first batch
        struct Resumed {
            std::uint64_t epoch, end;
            std::vector<std::uint64_t> undrawn;   // numbers below `end`
        };
        std::optional<Resumed> resumed;   // the pass of this epoch lacks what is drawn
        /// Of the epoch's batches, these come first, then those from this number on.
        std::vector<std::uint64_t> undrawn;
        std::uint64_t first_number = 0;
        LoaderMachine::HeldBytes held{};   // as of the last turn
        SettingRow noted{};                // the last setting recorded
        std::uint64_t turns = 0, parks = 0, wakes = 0;
    };
    /// What the thread must do after it has released the mutex.
    struct Wakes {
        std::size_t workers = 0, readers = 0, new_readers = 0;
        bool loop = false, prepare_next = false;
        Wakes& operator+=(const Wakes& more) noexcept {
            workers += more.workers;
            readers += more.readers;
            new_readers += more.new_readers;
            loop |= more.loop;
            prepare_next |= more.prepare_next;
            return *this;
        }
        void add(ReadAhead::Act act) noexcept {
            readers += act == ReadAhead::Act::wake;
            new_readers += act == ReadAhead::Act::start;
        }
    };
    struct Asks {
        bool loop_waits = false, leaves = false;
        std::size_t wakes_at_least = 0;   // each as in LoaderMachine::Seen
    };
    struct WakeOp;

    ~PrefetchCore() override;
    [[noreturn]] static void throw_aborted();
    [[noreturn]] static void throw_another_waits();
    /// Whether this is a forked child, in which the loader's threads are missing. For the loop's thread.
    [[nodiscard]] bool lacks_threads() const noexcept { return (!inline_ || reads_ || watch_) && fork_.is_forked(); }
    void check_process() const;   // throws std::logic_error if it lacks threads
    [[noreturn]] void throw_all_held() const;

    // Turns: prefetch_core.cpp.
    Wakes turn(Guard&, const Asks&) noexcept;
    Wakes turn(Guard& guard) noexcept { return turn(guard, Asks{}); }
    [[nodiscard]] LoaderMachine::Seen look(Guard&, const Asks&) noexcept;
    const LoaderMachine::HeldBytes& held_bytes_of_all(Guard&) const noexcept;
    void carry_out(Guard&, const LoaderMachine::Effects&, Wakes&) noexcept;
    void trim_slots(std::uint64_t slots) noexcept;
    void open(Guard&, const LoaderMachine::Open&, Wakes&) noexcept;
    [[nodiscard]] bool publish(std::uint64_t position, const DrawMailbox::Entry&) noexcept;   // true: wake the loop
    void complete(Guard&, std::uint32_t slot, bool has_failed) noexcept;
    void count_released(Guard&, Slot&) noexcept;   // counts the memory that the slot's samples have freed
    void observe(Guard&, SampleWorker&) noexcept;
    void recall_resting_workers(Guard&) noexcept;
    void perform(Wakes) noexcept;   // leaves the next order to a worker
    void perform(Wakes, SampleWorker&) noexcept;
    void wake_loop() noexcept;

    // Passes: prefetch_passes.cpp.
    struct DuePass {   // begun by the loop, its order not there yet
        std::size_t epoch;
        bool wants_next;
    };
    void begin_due_pass();   // in the draw; throws what the sampler throws
    void abandon(Guard&) noexcept;
    void extend(Guard&) noexcept;       // admits one more pass
    void begin_next(Guard&) noexcept;   // admits the next one
    [[nodiscard]] Wakes turn_at_pass(Guard&, bool wants_next) noexcept;
    void prepare_next_order(SampleWorker&) noexcept;
    void compute_order(std::uint64_t epoch, std::span<std::uint64_t> order, SampleWorker*);   // and records it
    void fill_indices(Slot&, std::uint32_t first, std::uint32_t count) const noexcept;        // by the sampler's parts

    // The position: prefetch_position.cpp.
    [[nodiscard]] std::uint64_t drawn() const noexcept { return batches_per_epoch_ - pass_left_; }
    void begin_progress(std::uint64_t epoch);
    void go_on_at(std::uint64_t epoch, std::uint64_t end, std::vector<std::uint64_t> undrawn = {});   // the next pass
    void note_progress() noexcept;   // from now on, progress_ follows each draw

    // Workers: prefetch_workers.cpp.
    bool claim_one(SampleWorker&) noexcept;
    void begin_making(Slot&) noexcept;   // gives the slot buffers for samples that will be collated
    void finish(SampleWorker&, std::uint32_t slot) noexcept;
    [[nodiscard]] bool idle(SampleWorker&) noexcept;    // false: stop
    void arrive() noexcept;                             // a worker begins; it rests while there are enough
    [[nodiscard]] bool leave(SampleWorker&) noexcept;   // rests if there are too many workers; false: stop
    void start_crew();
    void start_workers(std::size_t num_workers);   // up to this number in all

    // The loop: prefetch_loop.cpp.
    [[nodiscard]] Handler unpark() noexcept;
    [[nodiscard]] bool waits_for_batch(DrawMailbox::Kind how);   // what must_wait() does, unwatched
    void end_wait() noexcept;
    void end_outside_wait() noexcept;
    void drain_descriptor() const noexcept;
    [[nodiscard]] bool spin_until_ready() noexcept;
    void draw_inline();
    void record(const Slot&, std::uint32_t slot, BatchStatus, std::int64_t at_ns, std::uint64_t ready_batches) noexcept;
    [[nodiscard]] bool pass_over();
    void advance(Slot&, std::uint32_t slot, bool comes) noexcept;   // the batch is drawn: it comes, or its error
    /// Counts the failures of a drawn batch, and leaves the size that is kept. False: they are raised.
    [[nodiscard]] bool settle_failed(Slot&) noexcept;
    [[noreturn]] void throw_failure(std::uint32_t slot);

    // Live control: prefetch_control.cpp.
    [[nodiscard]] LiveLimits limits_asked() const noexcept;   // by the present options and memory plan
    void follow_limits(Guard&) noexcept;                      // after the machine's limits have changed
    void follow_cores() noexcept;                             // how threads wait, after num_workers has changed
    [[nodiscard]] Wakes raise_limits_if_room(Guard&) noexcept;
    void retry_raise_at_draw() noexcept;
    [[nodiscard]] SettingRow setting(Guard&) const noexcept;
    void note_setting(Guard&) noexcept;   // records the setting, if it has changed

    [[nodiscard]] static LoaderOptions within(const MemoryPlan&, LoaderOptions) noexcept;   // reduced to the plan
    [[nodiscard]] static std::uint64_t reads_memory(const LoaderOptions&, const MemoryPlan&) noexcept;

    DrawMailbox mailbox_;
    ClaimBoard board_;
    alignas(line_bytes) std::atomic<std::uint64_t> published_{0};   // positions handed over; counted if recorded

    // Rarely written, because every draw and every claim reads them.
    alignas(line_bytes) std::atomic<bool> stopping_{false};
    std::atomic<bool> too_many_{false};       // the next worker that ends a claim leaves
    std::atomic<bool> measures_use_{false};   // measure claims, because there may be too many workers
    std::atomic<int> worker_yields_{0};       // see SpinPolicy

    alignas(line_bytes) WakeTokens rest_tokens_;   // for resting workers

    // Read only after construction.
    asio::io_context* context_;
    WorkerPool* pool_;
    void (*on_worker_start_)() noexcept;
    const Sampler* sampler_;
    const OrderParts* parts_;   // the sampler's, or null
    std::size_t max_threads_;
    LoaderOptions asked_;
    LoaderOptions options_;   // asked_ within the budget; it and the next two are written by the loop under the mutex
    MemoryNeeds needs_;
    MemoryPlan memory_plan_;
    const SampleCache* cache_;   // a cache in memory; null: there is none
    std::size_t order_size_, batches_per_epoch_;
    Recorder* recorder_;   // null: nothing is recorded
    AnyClock clock_;
    std::uint16_t pipeline_;
    std::unique_ptr<ReadAhead> reads_;   // null: the source reads for itself, or there is nothing to read
    SampleMaker maker_;
    std::unique_ptr<StallWatch> watch_;   // null: nobody asked for it
    std::uint64_t most_errors_;           // samples of a pass that may be skipped or substituted

    ForkCheck fork_;
    bool inline_;   // no workers, the loop makes the batches; the loop writes it while there are no workers

    alignas(line_bytes) Guarded<Guard> guarded_;
    std::condition_variable order_done_;

    // For the loop's thread.
    alignas(line_bytes) std::uint64_t position_ = 0;   // of the next draw
    std::uint64_t pass_serial_ = 0, pass_left_ = 0, pass_errors_ = 0;
    bool is_special_ = false;         // there is a due pass, or a draw waits; for ready()
    bool waits_outside_ = false;      // a draw is announced as `waiting_outside`
    int descriptor_ = -1;             // an eventfd, once asked for; the loop sets it before it is announced
    std::uint64_t parked_draw_ = 0;   // suspensions_ when a draw was last parked
    std::optional<DuePass> due_pass_;
    PassProgress progress_;
    bool counts_draws_ = false;   // the pass's batches come in order: drawn() says all, and progress_ only the epoch
    bool may_overtake_ = false;   // batches may come out of order
    bool is_restored_ = false;    // progress_ is where the next pass begins
    mutable std::optional<std::pair<std::uint64_t, std::uint64_t>> fingerprints_;   // of data and order, once asked for
    std::int64_t last_offered_ns_ = no_stamp;                                       // of the batch drawn last
    bool waits_for_room_ = false;                                                   // an increase waits for room
    std::uint64_t batches_taken_ = 0, batches_abandoned_ = 0, samples_taken_ = 0, samples_settled_ = 0,
                  suspensions_ = 0;
    SpinPolicy spin_{1, 1};   // how long the loop spins before it suspends; follow_cores() sets it up
    std::optional<Handler> handler_;
    std::optional<BatchDigest> digest_;
    std::unique_ptr<SampleWorker> inline_worker_;
    bool started_ = false;
    std::vector<Crew> crews_;

    alignas(line_bytes) WakeBuffer wake_buffer_;
    std::atomic<std::uint32_t> posting_{0};
    std::atomic<bool> down_{false};
    std::shared_ptr<ParkedDraws::Registry> registry_;
};

}   // namespace drawpoint
