#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>

namespace drawpoint {

/// How much of each a loader may use at a time: what its options say, or less while an increase waits for room.
struct LiveLimits {
    std::size_t num_workers = 0, prefetch_depth = 1, read_concurrency = 0;
    std::size_t sample_sets = 0;   ///< batches whose samples lie beside their arrays, where samples are collated
    std::uint64_t batches_budget_bytes = 0;   ///< 0: batches are not counted by their bytes
    std::uint64_t reads_bytes = 0;            ///< of what is read ahead; 0: no limit
    std::uint64_t worker_bytes = 0;           ///< a worker's stack and scratch
    bool operator==(const LiveLimits&) const = default;
};

/// The smaller of each.
[[nodiscard]] LiveLimits least(const LiveLimits&, const LiveLimits&) noexcept;

/// At most `capacity` values in place. Only what was added is ever read.
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

/// Every decision of a prefetching loader: what a turn admits, hands over, frees, whom it wakes, when a sleeping worker wants
/// to know of free slots, which workers rest, which limits hold while it runs, when the next pass is prepared. Pure: no
/// threads, clock, atomics, memory or I/O, so worker threads, a simulator in virtual time and a test's random events drive the
/// same decisions. A driver tells what it has seen and carries out the effects that come back, in the order of their
/// declaration. Allocates nothing; O(slots) a call. One caller at a time (the driver's lock).
///
/// A turn: `if (takes_up(…)) take slots from the gate; turn(seen); carry out the effects; arm or disarm the gate`. Where the
/// gate cannot be armed because a slot came back meanwhile, the driver turns again.
class LoaderMachine {
public:
    /// Bytes of a slot's memory; of these `passing` may go to another slot once the batch is complete.
    struct SlotBytes {
        std::uint64_t all = 0, passing = 0;
        bool operator==(const SlotBytes&) const = default;
    };
    using HeldBytes = std::array<SlotBytes, LoaderPolicy::max_slots>;

    /// The gate counts slots that come back. `counting`: it wakes a sleeping worker after `left` more. `fired`: it has woken
    /// one since it was armed, and is off.
    enum class Gate : std::uint8_t { off, counting, fired };

    struct Seen {
        std::uint64_t given_back = 0;   ///< slots that came back since the last turn, a bit each
        Gate gate = Gate::off;
        std::size_t left = 0;              ///< of a counting gate
        std::uint64_t drawn = 0;           ///< positions drawn; 0 where the caller cannot know
        std::uint64_t unclaimed = 0;       ///< open batches with samples that no worker has claimed
        const HeldBytes* held = nullptr;   ///< what the slots hold; not null where bytes are counted
        bool loop_waits = false;           ///< a worker must be awake for what is open when the turn is over
        bool leaves = false;               ///< a worker ends, which may have been the one that was awake for it
        std::size_t wakes_at_least = 0;    ///< of the workers that sleep, whether or not work is open
    };
    struct Open {
        std::uint64_t batch;
        std::uint32_t slot, size;   ///< size: its samples
        bool operator==(const Open&) const = default;
    };
    struct Effects {
        std::uint64_t trim = 0;                            ///< slots whose memory is given up, a bit each
        FixedVector<Open, LoaderPolicy::max_slots> open;   ///< batches to be offered to workers
        FixedVector<LoaderPolicy::HandOver, LoaderPolicy::max_slots> hand_over;   ///< batches for the loop
        std::size_t wake = 0;                                                     ///< sleeping workers to wake
        bool disarm = false;   ///< the gate: nobody sleeps. One that has fired meanwhile has woken one of `wake`
        std::optional<std::size_t> arm;   ///< the gate: wake a worker after so many slots
        bool prepare_order = false;       ///< the next pass may be prepared: begin_preparing()
        bool operator==(const Effects&) const = default;
    };

    /// A pass of `samples` in `batches` of batch_size, but for a first one of `first_size` (0: like the others) and the last.
    struct PassShape {
        std::uint64_t batches = 0, samples = 0;
        std::uint32_t first_size = 0;
    };

    /// `asked` are the limits in force from the start.
    LoaderMachine(const PolicyOptions&, const LiveLimits& asked) noexcept;

    [[nodiscard]] const LoaderPolicy& policy() const noexcept { return policy_; }

    // Turns.
    /// Whether slots that are back are taken up by this turn. Where batches are shorter than a claim it would cost as much as
    /// filling them, so they stay where they are while work is open and nobody sleeps who may want to know.
    [[nodiscard]] bool takes_up(bool loop_waits, bool gate_is_armed, bool work_is_open) const noexcept {
        return loop_waits || gate_is_armed || !policy_.claims_whole_batches() || policy_.parked() != 0 || !work_is_open;
    }
    /// The effects are valid until the next call.
    [[nodiscard]] const Effects& turn(const Seen&) noexcept;
    /// Says what the slots hold now: before memory is given up that a batch took until then.
    void count(const HeldBytes&) noexcept;
    /// All samples of the slot's batch are made, or given up.
    void complete(std::uint32_t slot, bool failed) noexcept { policy_.complete(slot, failed); }
    /// Whether a complete batch gives up the buffers of its samples, where so many slots have some.
    [[nodiscard]] bool frees_samples(std::size_t sample_sets) const noexcept {
        return sample_sets > limits_.sample_sets;
    }
    /// Nothing is admitted or handed over any more.
    void stop() noexcept { policy_.stop(); }

    // Passes.
    /// Lets the batches of a pass be admitted.
    void extend(const PassShape&) noexcept;
    /// A pass begins. True: it was prepared and is being admitted; else the driver abandons what is left, orders the samples
    /// and calls extend().
    [[nodiscard]] bool begin_pass(std::uint64_t epoch) noexcept;
    void orders(std::uint64_t epoch) noexcept { epoch_ = epoch; }           ///< extend() is of this epoch
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }   ///< of the pass being admitted
    /// Whether the pass after this one is prepared as soon as all of this one is admitted.
    void want_next(bool wanted) noexcept { wants_next_ = wanted; }
    /// The epoch to prepare, if that is still to be done and nobody does it; then prepared() follows.
    [[nodiscard]] std::optional<std::uint64_t> begin_preparing() noexcept;
    /// The order is made, or could not be; true: extend() the pass.
    [[nodiscard]] bool prepared(bool made) noexcept;
    [[nodiscard]] bool is_preparing() const noexcept { return is_preparing_; }
    /// Gives up every batch not drawn yet; `undrawn`: slots handed over and not drawn. complete() frees those still open.
    [[nodiscard]] LoaderPolicy::Abandoned abandon(std::uint64_t undrawn) noexcept;

    // Workers.
    /// What a worker measured of its claims. True: see recall().
    bool observe(std::uint64_t samples, std::uint64_t ns, const WorkerUse&) noexcept;
    /// Whether a worker that found no work sleeps: then it counts as asleep, and the gate is to be armed at
    /// policy().wake_threshold(). Where that fails, woken().
    [[nodiscard]] bool sleeps(bool work_is_open) noexcept;
    void woken() noexcept { policy_.woken(1); }
    /// A worker begins. False: there are enough, it rests.
    [[nodiscard]] bool arrives() noexcept;
    /// There are more workers than wanted: one leaves at the end of its claim.
    [[nodiscard]] bool too_many() const noexcept { return policy_.begun() > policy_.wanted_workers(); }
    /// The worker that asks leaves; it rests once it has given up what it holds: rests(). False: it works on.
    [[nodiscard]] bool leaves() noexcept;
    void rests() noexcept;
    /// How many resting workers are to be woken, which then count as at work.
    [[nodiscard]] std::size_t recall() noexcept;
    /// Workers at work, and resting ones that are wanted as soon as claims wait for more than cores.
    [[nodiscard]] std::size_t running() const noexcept;

    // Limits of a running loader.
    [[nodiscard]] const LiveLimits& limits() const noexcept { return limits_; }
    [[nodiscard]] bool waits_for_room() const noexcept { return limits_ != asked_; }
    /// Other limits are asked for, and an order for passes of which nothing is admitted. Under a budget (`holds_back`) increases
    /// wait until there is less of the rest. `slots_bytes`: what all slots hold, where bytes are not counted. Returns how many
    /// sleepers the turn that follows must wake, because they are too many.
    [[nodiscard]] std::size_t reconfigure(const LiveLimits& asked, OrderRule, bool holds_back,
                                          std::uint64_t slots_bytes) noexcept;
    /// Whether there is room for all that is asked for; `reads_bytes`: held by what is read ahead, `drawn`: positions.
    [[nodiscard]] bool has_room(std::uint64_t drawn, std::uint64_t reads_bytes) const noexcept;
    /// All that is asked for is in force from now on.
    void raise_limits(std::uint64_t slots_bytes) noexcept { apply(asked_, slots_bytes); }
    /// The loop makes the samples itself: no thread could be had.
    void work_inline() noexcept;
    /// Free slots beyond the depth, whose memory is to be given up; a bit each, each once.
    [[nodiscard]] std::uint64_t retire() noexcept;
    /// No batch can come: the user holds all.
    [[nodiscard]] bool holds_all(std::uint64_t drawn) const noexcept;

    // Memory.
    /// All slots together hold so much, where bytes are not counted.
    void holds_slots(std::uint64_t bytes) noexcept {
        most_slots_bytes_ = most_slots_bytes_ < bytes ? bytes : most_slots_bytes_;
    }
    [[nodiscard]] std::uint64_t most_slots_bytes() const noexcept {
        return most_slots_bytes_;
    }   ///< under these limits
    [[nodiscard]] std::uint64_t peak_bytes() const noexcept;   ///< of workers and slots together, ever
    [[nodiscard]] std::uint64_t largest_samples_bytes() const noexcept {
        return largest_samples_bytes_;
    }   ///< of a slot
    [[nodiscard]] std::uint64_t largest_rest_bytes() const noexcept { return largest_rest_bytes_; }   ///< likewise

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
    std::uint32_t first_size_ = 0;                 // of its next batch, if that is the first and not batch_size_
    bool wants_next_ = false, is_preparing_ = false, next_is_prepared_ = false;

    std::size_t resting_ = 0;   // workers that are not wanted, asleep until they are
    std::size_t leaving_ = 0;   // workers that have ended and still give up what they hold

    LiveLimits asked_, limits_;
    std::size_t slots_used_;         // slots ever used
    std::uint64_t retiring_ = 0;     // slots beyond the depth with memory, a bit each
    std::uint64_t settled_at_ = 0;   // the position behind what was in flight when the limits changed

    std::uint64_t most_workers_bytes_, most_slots_bytes_ = 0;            // under the limits in force
    std::uint64_t past_peak_bytes_ = 0;                                  // of both together, under those before
    std::uint64_t largest_samples_bytes_ = 0, largest_rest_bytes_ = 0;   // of a slot
};

}   // namespace drawpoint
