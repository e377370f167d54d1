#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>
#include <drawpoint/pipeline/loader/machine/detail/spin_policy.hpp>

#include "diagnosis/replay/pytorch_policy.hpp"
#include "diagnosis/replay/replay_demands.hpp"
#include "diagnosis/replay/replay_device.hpp"
#include "diagnosis/replay/replay_gate.hpp"
#include "diagnosis/replay/replay_reads.hpp"
#include "diagnosis/replay/replay_rows.hpp"
#include "diagnosis/replay/machine/virtual_time.hpp"

namespace drawpoint {

/// A loader and the loop that draws from it, in virtual time. A LoaderMachine decides as it does for a real loader, or
/// a PyTorchPolicy as PyTorch's does; this adds the time that workers, their reads and the loop take between decisions.
class ReplayLoader {
public:
    ReplayLoader(const RecordedRun&, const ReplayOptions&, const MemoryPlan&, const ReplayDemands&, double cores,
                 std::uint64_t steps, ReplayRows* rows);

    /// Until the last step ends.
    void run();

    [[nodiscard]] const std::vector<std::int64_t>& draws_ns() const noexcept { return draw_ns_; }
    [[nodiscard]] const std::vector<std::int64_t>& steps_ns() const noexcept {
        return step_ns_;
    }   ///< draw and compute
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    [[nodiscard]] std::int64_t now_ns() const noexcept { return time_.now_ns(); }
    [[nodiscard]] std::uint64_t peak_bytes() const noexcept;

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    enum class WorkerState : std::uint8_t {
        idle,
        spinning,
        parked,
        waking,
        looking,
        resting,
        waiting_for_read,
        making,
        collating,
        ordering
    };
    /// A piece of work waits, then computes.
    enum class Phase : std::uint8_t { begins, waits, computes, ends };
    struct Worker {
        WorkerState state = WorkerState::idle;
        std::uint32_t slot = 0, at = 0, end = 0, claimed = 0;   // at, end: places in the slot's batch
        std::uint32_t piece = 0;                                // of the sample at `at`: 0 is its read, then its stages
        Phase phase = Phase::begins;                            // of the sample, of its piece, or of collating
        std::uint32_t read = ReplayReads::nobody;
        std::int64_t spin_until_ns = 0, claim_ns = 0, sample_ns = 0, bytes_ns = 0;   // bytes_ns: when they arrived
        std::int64_t waited_ns = 0, stage_cpu_ns = 0;                                // of the sample; of its stage
        std::int64_t owes_ns = 0;            // core time that is added to what it computes next
        std::int64_t batch_cpu_ns = 0;       // of a PyTorch loader: that it computed for its batch
        std::uint64_t samples = 0, ns = 0;   // not yet reported to the machine
        ReadingBudget budget;
        bool measured = false;      // whether its claim is measured
        std::int64_t busy_ns = 0;   // of a measured claim: computing, or waiting for anything but a core
        WorkerUse use;              // not yet reported to the machine
        BatchDemand batch{};
    };
    struct Slot {
        std::uint64_t batch = 0, position = 0;   // position: of its first sample
        std::uint32_t size = 0, next = 0, remaining = 0;
        bool making = false;
        // Bytes of the arrays; bytes of the samples to be collated; when the slot took these, as a count.
        std::uint64_t arrays = 0, samples = 0, samples_taken = 0;
        BatchRow row{};
    };

    // Turns.
    void turn(bool loop_waits, bool leaves = false);
    [[nodiscard]] LoaderMachine::Seen look(bool loop_waits, bool leaves) noexcept;
    void carry_out(const LoaderMachine::Effects&);
    void open(const LoaderMachine::Open&);
    void begin_slot(std::uint32_t slot, std::uint32_t size);
    void publish(std::uint32_t slot);
    void wake(std::size_t workers);
    void recall_resting_workers();
    [[nodiscard]] bool begin_pass();   // false: the loop has to wait for the order of its samples
    void start_pass();
    [[nodiscard]] bool begin_ordering(std::uint32_t worker);   // the next pass; false: nobody wants it
    [[nodiscard]] bool order(std::uint32_t entity, Phase&);    // false: it has to wait
    void end_ordering();
    [[nodiscard]] std::uint64_t extend();                 // returns the number of new batches
    [[nodiscard]] std::uint64_t limit() const noexcept;   // batches that may be made, in all
    void give_back(std::uint32_t slot);
    void notify_spinning();
    [[nodiscard]] bool work_is_open() const noexcept { return current_ < opened_; }
    void take_samples(std::uint32_t slot) noexcept;
    void free_surplus_samples(Slot&) noexcept;
    const LoaderMachine::HeldBytes& held_bytes() noexcept;

    // Workers.
    void run_worker(std::uint32_t);   // until it has to wait
    [[nodiscard]] bool sleeps(std::uint32_t);
    [[nodiscard]] bool leaves(std::uint32_t);   // to rest, if there are too many workers
    [[nodiscard]] bool claim(std::uint32_t, Worker&);
    [[nodiscard]] bool make(std::uint32_t, Worker&);                                 // false: it has to wait
    [[nodiscard]] bool make_sample(std::uint32_t, Worker&, std::uint32_t sample);    // likewise
    [[nodiscard]] bool begin_sample(std::uint32_t, Worker&, std::uint32_t sample);   // likewise
    void end_sample(std::uint32_t, Worker&, std::uint32_t sample);
    void end_claim(Worker&);
    [[nodiscard]] bool collate(std::uint32_t, Worker&);                          // likewise
    [[nodiscard]] bool begin_waiting(std::uint32_t, Worker&, std::int64_t ns);   // false: there is nothing to wait for
    [[nodiscard]] bool begin_computing(std::uint32_t, Worker&, std::int64_t ns);   // likewise
    void finish(Worker&);
    void observe(Worker&) noexcept;
    void note_use(Worker&, bool computes, std::int64_t ns) noexcept;   // of its claim, if that is measured
    void end_use(Worker&) noexcept;
    /// How long a read takes that waits for `latency_ns` and then for its turn on the bandwidth that all reads share.
    [[nodiscard]] std::int64_t read_ns(std::uint32_t sample, std::int64_t latency_ns) noexcept;
    [[nodiscard]] bool wants(std::uint32_t sample) const noexcept;
    void note_read(std::uint32_t, Worker&);
    void begin_reads(bool running);
    void step_reader(std::uint32_t reader);

    // Workers of a PyTorch loader.
    void turn_pytorch();
    void begin_sending(std::uint32_t worker);
    void start_sender(std::uint32_t worker);
    void step_sender(std::uint32_t worker);

    // The loop.
    enum class LoopState : std::uint8_t {
        ordering,
        awaiting_order,
        drawing,
        spinning,
        suspended,
        waking,
        receiving,
        waiting_for_device,
        copying,
        waiting_first,
        computing,
        waiting,
        synchronising,
        computing_after,
        waiting_after,
        draining,
        pausing
    };
    void step_loop();
    void begin_draw();
    void draw();
    [[nodiscard]] bool may_draw();   // false: it has to wait for the device
    void take();
    void receive();
    void copy();
    void begin_compute();
    void compute_part();
    void compute_step();
    void end_part();
    void release_batch();
    void end_step();
    void pause();
    [[nodiscard]] bool ready() const noexcept { return position_ < published_; }

    const RecordedRun& run_;
    const ReplayOptions& options_;
    const MemoryPlan& plan_;
    const ReplayDemands& demands_;
    ReplayRows* rows_;   // null: no rows are kept
    VirtualTime time_;
    LoaderMachine machine_;
    ReplayGate gate_;
    ReplayReads reads_;
    std::optional<ReplayDevice> device_;
    std::uint64_t steps_;
    bool inline_;
    std::optional<PyTorchPolicy> pytorch_;   // with workers: decides in the machine's place

    std::vector<Worker> workers_;
    std::vector<std::uint32_t> sleeping_;   // parked workers, longest first
    std::vector<std::uint32_t> resting_;    // workers of which there are too many
    // Slots of each PyTorch worker: that it has not begun; that its process has to send.
    std::vector<std::deque<std::uint32_t>> sent_, sending_;
    std::vector<Phase> reader_phases_;
    std::int64_t line_free_ns_ = 0;
    std::vector<Slot> slots_;
    LoaderMachine::HeldBytes held_bytes_{};
    std::array<std::uint32_t, 64> slot_of_{};   // by batch
    std::vector<std::uint32_t> cells_;          // slots by position; their number is a power of two
    std::uint64_t current_ = 0, opened_ = 0, published_ = 0;
    std::uint64_t tokens_ = 0;
    std::size_t spinning_ = 0;

    std::uint64_t admitted_samples_ = 0;   // position of the next sample to admit
    std::int64_t pass_start_ns_ = 0;       // when its first batches were admitted
    std::uint64_t first_size_ = 0;         // of the pass's first batch, of a PyTorch loader; 0: as of the others
    std::int64_t pass_begin_ = 0;          // position of the pass being admitted; below 0 if it began before the replay
    std::uint64_t pass_end_;               // position at which it ends
    std::uint64_t undrawn_ = 0;            // batches of the current pass that are left to draw
    std::uint64_t admitted_ahead_ = 0;     // batches of the next pass, if it is already being admitted
    std::uint64_t next_epoch_ = 0;         // of the pass that begins next
    bool wants_order_ = false;             // a worker may compute the order of the pass after the one being admitted
    Phase order_phase_{};                  // of the order that the loop computes

    LoopState loop_ = LoopState::drawing;
    std::uint64_t position_ = 0;
    std::uint32_t held_ = none;
    std::int64_t wake_ns_, read_wake_ns_;
    SpinPolicy spin_;
    std::uint32_t yields_;   // of a worker before it sleeps
    StepDemand step_{};
    Demand part_{}, rest_{};      // of the step's computing: under way; after a wait for the device
    bool synchronises_ = false;   // the loop will wait for the device in this step
    bool is_queued_ = false;      // the device has the step's first command
    ReplayRows::Waits waits_{};   // of this step
    BatchRow released_{};         // of the step's batch: its slot may be in use again
    std::int64_t draw_begin_ns_ = 0, taken_ns_ = 0, released_ns_ = 0;
    Demand receiving_;   // what is left to do to receive the batch
    std::vector<std::int64_t> draw_ns_, step_ns_;

    std::uint64_t events_ = 0, slots_bytes_ = 0, sample_takes_ = 0;
    bool is_over_ = false;
};

}   // namespace drawpoint
