#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

namespace drawpoint {

/// What a running loader may use at most: as configured, or less while an increase waits for memory to be freed.
struct LiveLimits {
    std::size_t num_workers = 0, prefetch_depth = 1, read_concurrency = 0;
    std::size_t sample_sets = 0;              ///< slots that may hold sample buffers; only where samples are collated
    std::uint64_t batches_budget_bytes = 0;   ///< memory of all slots; 0: batches are not counted by their bytes
    std::uint64_t reads_bytes = 0;            ///< memory of samples read ahead; 0: no limit
    std::uint64_t worker_bytes = 0;           ///< planned for one worker's stack and scratch
    bool operator==(const LiveLimits&) const = default;
};

/// The smaller of each limit; `worker_bytes` is the second's.
[[nodiscard]] LiveLimits least(const LiveLimits&, const LiveLimits&) noexcept;

/// At most `capacity` values, stored in place; push_back() beyond that is undefined. Only values that were added are
/// ever read.
template <class T, std::size_t capacity>
class FixedVector {
public:
    void clear() noexcept { size_ = 0; }
    void push_back(const T& value) noexcept { values_[size_++] = value; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] const T* begin() const noexcept { return values_.data(); }
    [[nodiscard]] const T* end() const noexcept { return values_.data() + size_; }
    [[nodiscard]] bool operator==(const FixedVector& other) const {
        return std::equal(begin(), end(), other.begin(), other.end());
    }

private:
    std::array<T, capacity> values_;
    std::size_t size_ = 0;
};

/// Makes every decision of a prefetching loader: which batches are admitted, handed over and given up, whose memory is
/// freed, which workers are woken or rest, which limits apply, and when the next pass is prepared. A pure state
/// machine without threads, clock, atomics, heap memory or I/O: the loader's threads, the simulator in virtual time
/// and randomised tests drive the same class.
///
/// A driver reports what it has seen (`Seen`) and carries out the `Effects` that come back, in the order in which they
/// are declared. Nothing allocates or throws; a call costs O(slots), a turn O(slots) for each batch that it admits or
/// hands over. Calls must not overlap: the loader makes them under its mutex, from any of its threads.
///
/// One turn of the driver: `if (takes_up(…)) take slots from the gate; turn(seen); carry out the effects; arm or
/// disarm the gate`. If the gate cannot be armed because a slot has come back in the meantime, the driver turns again.
class LoaderMachine {
public:
    /// Memory held by one slot. `passing` is the part of it that another slot may take over once the batch is complete.
    struct SlotBytes {
        std::uint64_t all = 0, passing = 0;
        bool operator==(const SlotBytes&) const = default;
    };
    using HeldBytes = std::array<SlotBytes, LoaderPolicy::max_slots>;

    /// State of the gate, which counts the slots that come back. `counting`: it wakes a sleeping worker after `left`
    /// more slots. `fired`: it has woken one since it was armed, and is off again.
    enum class Gate : std::uint8_t { off, counting, fired };

    /// What the driver has seen when it turns.
    struct Seen {
        std::uint64_t given_back = 0;   ///< bit set of slots that came back since the last turn
        Gate gate = Gate::off;
        std::size_t left = 0;              ///< slots until a counting gate fires
        std::uint64_t drawn = 0;           ///< number of batches drawn; 0 where the calling thread cannot know it
        std::uint64_t unclaimed = 0;       ///< open batches with samples that no worker has claimed
        const HeldBytes* held = nullptr;   ///< memory of the slots; required where bytes are counted
        bool loop_waits = false;           ///< the loop is about to wait: wake at least one worker if work is open
        bool leaves = false;               ///< a worker leaves, maybe the only one awake: wake likewise
        std::size_t wakes_at_least = 0;    ///< sleeping workers to wake, whether or not work is open
    };
    /// A batch to be offered to the workers.
    struct Open {
        std::uint64_t batch;
        std::uint32_t slot, size;   ///< size: its samples
        bool operator==(const Open&) const = default;
    };
    /// What the driver must do after a turn.
    struct Effects {
        std::uint64_t trim = 0;                            ///< bit set of slots whose memory is to be freed
        FixedVector<Open, LoaderPolicy::max_slots> open;   ///< batches to be offered to the workers
        FixedVector<LoaderPolicy::HandOver, LoaderPolicy::max_slots> hand_over;   ///< batches to be offered to the loop
        std::size_t wake = 0;                                                     ///< sleeping workers to wake
        /// Disarm the gate: no worker sleeps any more. If the gate has fired in the meantime, it has already woken one
        /// of the `wake` workers.
        bool disarm = false;
        std::optional<std::size_t> arm;   ///< arm the gate: wake a worker after this number of slots
        bool prepare_order = false;       ///< the next pass's order may be computed: begin_preparing()
        bool begin_next = false;          ///< admit the next pass: begin_next(), extend(), and turn again
        bool operator==(const Effects&) const = default;
    };

    /// A pass of `samples` samples in `batches` batches. All have batch_size samples but the last, and the first where
    /// `first_size` is not 0.
    struct PassShape {
        std::uint64_t batches = 0, samples = 0;
        std::uint32_t first_size = 0;
    };

    /// `asked`: the limits in force from the start.
    LoaderMachine(const PolicyOptions&, const LiveLimits& asked) noexcept;

    [[nodiscard]] const LoaderPolicy& policy() const noexcept { return policy_; }

    // Turns.
    /// Whether this turn takes the slots that came back from the gate. Where a batch is less work than one claim,
    /// taking them would cost as much as filling them: they are left at the gate while work is open and no sleeping
    /// worker waits for them.
    [[nodiscard]] bool takes_up(bool loop_waits, bool gate_is_armed, bool work_is_open) const noexcept {
        return loop_waits || gate_is_armed || !policy_.claims_whole_batches() || policy_.parked() != 0 || !work_is_open;
    }
    /// Decides. The effects are valid until the next call.
    [[nodiscard]] const Effects& turn(const Seen&) noexcept;
    /// Updates the memory of the slots outside of a turn: call it before freeing memory that a batch has needed, so
    /// that the batch is counted with it.
    void count(const HeldBytes&) noexcept;
    /// All samples of the slot's batch are made or given up.
    void complete(std::uint32_t slot, bool failed) noexcept { policy_.complete(slot, failed); }
    /// Whether a batch that is complete frees its sample buffers, while `sample_sets` slots hold some.
    [[nodiscard]] bool frees_samples(std::size_t sample_sets) const noexcept {
        return sample_sets > limits_.sample_sets;
    }
    /// From now on nothing is admitted or handed over. Final.
    void stop() noexcept { policy_.stop(); }

    // Passes.
    /// Lets the batches of a pass be admitted.
    void extend(const PassShape&) noexcept;
    /// A pass begins. True: it is being admitted already. False: the driver must abandon() what is left, have the order
    /// of samples, and call orders() and extend().
    [[nodiscard]] bool begin_pass(std::uint64_t epoch) noexcept;
    void orders(std::uint64_t epoch) noexcept { epoch_ = epoch; }           ///< says whose epoch extend() is about
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }   ///< of the pass being admitted
    /// Whether the pass of `epoch` is being admitted, or will be once its order is made.
    [[nodiscard]] bool expects(std::uint64_t epoch) const noexcept {
        return next_has_begun_ ? epoch_ == epoch : next_ != Next::unwanted && epoch_ + 1 == epoch;
    }
    /// After abandon(): a pass of `epoch` begins whose order is to be computed first, as that of a next pass.
    void expect(std::uint64_t epoch) noexcept {
        epoch_ = epoch - 1;
        next_ = Next::wanted;
    }
    /// Whether the next pass is admitted as soon as all batches of this one are. `has_order`: its order need not be
    /// computed.
    void want_next(bool wanted, bool has_order) noexcept {
        next_ = !wanted ? Next::unwanted : has_order ? Next::ordered : Next::wanted;
    }
    /// The epoch whose order the caller must compute now; then it calls prepared(). nullopt: none is wanted, or another
    /// thread computes it.
    [[nodiscard]] std::optional<std::uint64_t> begin_preparing() noexcept;
    /// Ends what begin_preparing() began. `made`: the order was computed. False: it was not, or nobody wants it any
    /// more.
    [[nodiscard]] bool prepared(bool made) noexcept;
    /// Whether a thread computes the order of the next pass.
    [[nodiscard]] bool is_preparing() const noexcept { return next_ == Next::being_ordered; }
    /// Carries out Effects::begin_next: from now on epoch() is the next one.
    void begin_next() noexcept;
    /// Gives up every batch that is not drawn yet. `undrawn`: bit set of slots that are handed over and not drawn.
    /// Slots whose batch is still being made become free with complete().
    [[nodiscard]] LoaderPolicy::Abandoned abandon(std::uint64_t undrawn) noexcept;

    // Workers. One that finds no work sleeps until there is some; one that is not wanted rests until recall() wakes it.
    /// Reports claims that a worker measured: `samples` took `ns` in all. True: the number of workers wanted may have
    /// changed, call recall().
    bool observe(std::uint64_t samples, std::uint64_t ns, const WorkerUse&) noexcept;
    /// A worker found no work. True: it counts as asleep from now on, and the driver must arm the gate at
    /// policy().wake_threshold(); if that fails, call woken(). False: it must look for work again.
    [[nodiscard]] bool sleeps(bool work_is_open) noexcept;
    void woken() noexcept { policy_.woken(1); }   ///< a worker that counted as asleep did not sleep
    /// A new worker thread begins. False: there are enough, it must rest until recall() wakes it.
    [[nodiscard]] bool arrives() noexcept;
    /// Whether more workers work or sleep than are wanted: one leaves at the end of its claim.
    [[nodiscard]] bool too_many() const noexcept { return policy_.begun() > policy_.wanted_workers(); }
    /// A worker asks whether to leave. True: it frees what it holds, calls rests() and sleeps until recall() wakes it.
    /// False: others have left in the meantime, it works on.
    [[nodiscard]] bool leaves() noexcept;
    void rests() noexcept;   ///< a worker that left has freed what it held
    /// The number of resting workers that the driver must wake because they are wanted; they no longer count as
    /// resting.
    [[nodiscard]] std::size_t recall() noexcept;
    /// Workers that work, sleep, or rest only because there are more of them than cores.
    [[nodiscard]] std::size_t running() const noexcept;

    // Limits of a running loader.
    [[nodiscard]] const LiveLimits& limits() const noexcept { return limits_; }
    /// Whether an increase waits for memory to be freed.
    [[nodiscard]] bool waits_for_room() const noexcept { return limits_ != asked_; }
    /// Asks for other limits, and for another order of the passes of which no batch is admitted yet. Decreases apply
    /// at once; so do increases, unless `holds_back` (there is a memory budget) delays them until has_room().
    /// `slots_bytes`: memory of all slots, used where bytes are not counted. Returns how many sleeping workers the
    /// following turn must wake (`Seen::wakes_at_least`) because they have to leave.
    [[nodiscard]] std::size_t reconfigure(const LiveLimits& asked, OrderRule, bool holds_back,
                                          std::uint64_t slots_bytes) noexcept;
    /// Whether there is room for all that was asked for. `drawn`: number of batches drawn; `reads_bytes`: memory held
    /// by samples read ahead. Always true once the batches in flight at reconfigure() are drawn and surplus workers
    /// and slots are gone.
    [[nodiscard]] bool has_room(std::uint64_t drawn, std::uint64_t reads_bytes) const noexcept;
    /// Puts all limits that were asked for into force. `slots_bytes` as in reconfigure().
    void raise_limits(std::uint64_t slots_bytes) noexcept { apply(asked_, slots_bytes); }
    /// No worker thread could be started: the loop makes the samples itself.
    void work_inline() noexcept;
    /// Bit set of slots beyond the depth that have become free, each once: the driver must free their memory.
    [[nodiscard]] std::uint64_t retire() noexcept;
    /// Whether no batch can come because the user holds all of them. `drawn`: number of batches drawn.
    [[nodiscard]] bool holds_all(std::uint64_t drawn) const noexcept;

    // Memory, in bytes.
    /// Reports what all slots hold together, where bytes are not counted.
    void holds_slots(std::uint64_t bytes) noexcept {
        most_slots_bytes_ = most_slots_bytes_ < bytes ? bytes : most_slots_bytes_;
    }
    /// The most that all slots held under the present limits.
    [[nodiscard]] std::uint64_t most_slots_bytes() const noexcept { return most_slots_bytes_; }
    /// The most that workers (as planned) and slots (as counted) ever held together.
    [[nodiscard]] std::uint64_t peak_bytes() const noexcept;
    /// The most that one slot held in sample buffers, and in the rest of its memory. Where bytes are counted.
    [[nodiscard]] std::uint64_t largest_samples_bytes() const noexcept { return largest_samples_bytes_; }
    [[nodiscard]] std::uint64_t largest_rest_bytes() const noexcept { return largest_rest_bytes_; }

private:
    void count_but(std::uint64_t retired, const HeldBytes&) noexcept;
    void admit(const Seen&) noexcept;
    void wake(const Seen&, std::uint64_t samples) noexcept;
    void apply(const LiveLimits&, std::uint64_t slots_bytes) noexcept;
    [[nodiscard]] std::uint32_t next_size() noexcept;

    LoaderPolicy policy_;
    std::size_t batch_size_;
    Effects effects_;

    std::uint64_t epoch_ = 0, samples_left_ = 0;   // of the pass being admitted
    std::uint32_t first_size_ = 0;                 // of its first batch, until that is admitted; 0: batch_size_
    /// What is known of the pass after the one being admitted.
    enum class Next : std::uint8_t { unwanted, wanted, being_ordered, ordered } next_ = Next::unwanted;
    bool is_preparing_ = false;     // a thread computes an order, maybe one that nobody wants any more
    bool next_has_begun_ = false;   // the pass being admitted is not begun by the loop yet
    std::uint64_t half_ = 0;        // number of the batch in the middle of the pass being admitted

    std::size_t resting_ = 0;   // workers that sleep until they are wanted
    std::size_t leaving_ = 0;   // workers that have left and still free what they hold

    LiveLimits asked_, limits_;
    std::size_t slots_used_;         // number of slots ever used
    std::uint64_t retiring_ = 0;     // bit set of slots beyond the depth that still hold memory
    std::uint64_t settled_at_ = 0;   // position after the batches that were in flight when the limits changed

    std::uint64_t most_workers_bytes_, most_slots_bytes_ = 0;            // under the limits in force
    std::uint64_t past_peak_bytes_ = 0;                                  // of both together, under earlier limits
    std::uint64_t largest_samples_bytes_ = 0, largest_rest_bytes_ = 0;   // of one slot
};

}   // namespace drawpoint
