#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include <drawpoint/pipeline/loader/loader_setting.hpp>

namespace drawpoint {

/// The plain facts a LoaderPolicy decides from.
struct PolicyOptions {
    std::size_t batch_size = 1;
    std::size_t num_workers = 1;      ///< 0: the loop makes the samples itself, one batch at a time
    std::size_t prefetch_depth = 2;   ///< 1 … 55
    OrderRule order{};
    /// Most bytes of all slots together, where a batch takes as many as its samples need; 0: slots are not counted.
    std::uint64_t batches_budget_bytes = 0;
    std::uint64_t batch_bytes_hint = 0;   ///< what a batch takes, before one is complete; 0: unknown
    std::size_t cores = 0;                ///< that workers can compute on; 0: unknown, never too few
};

/// How a worker spent some of its claims: computing, waiting for a core, waiting for anything else.
struct WorkerUse {
    std::uint64_t claims = 0, computed_ns = 0, queued_ns = 0, waited_ns = 0;
};

/// What a loader decides about every batch: admit, open, hand over, take back, what one claim takes, whom to wake. A
/// pure state machine without threads, clock or I/O, so that worker threads, the loop itself and a simulator in
/// virtual time drive the same decisions. Batches are numbered by admission over the loader's whole life; slots 0 …
/// prefetch_depth are places in memory; positions number the hand-overs. Nothing allocates; everything is O(slots).
/// One thread at a time (the driver's mutex).
///
/// With a `batches_budget_bytes`, a batch is admitted only if it fits beside all slots' memory, where one that is open
/// counts as the largest so far, if not more. It is admitted only once all samples of the open ones are claimed, when
/// what those take is nearly known, or all but one's while there is room for four times the largest and twice as many
/// batches as slots have brought no larger one. Samples are then claimed one at a time. So what is unknown, and may
/// exceed the budget, is one batch; with several workers at most one each while sizes grow. Whatever it takes, a batch
/// is admitted when none is open or complete and the loop has drawn them all.
class LoaderPolicy {
public:
    static constexpr std::size_t max_slots = loader_limits::most_prefetch_depth + 1;

    struct Admission {
        std::uint64_t batch;
        std::uint32_t slot;
    };
    struct HandOver {
        std::uint64_t batch, position;
        std::uint32_t slot;
        bool failed;
        bool operator==(const HandOver&) const = default;
    };
    /// Slots by state, a bit each.
    struct Abandoned {
        std::uint64_t open = 0;       ///< workers may still write there: complete() frees them
        std::uint64_t complete = 0;   ///< free already
        bool operator==(const Abandoned&) const = default;
    };

    explicit LoaderPolicy(const PolicyOptions&) noexcept;

    /// Lets `batches` more be admitted: a pass of its own if all before are admitted, else more of the same. Whatever
    /// the order, no batch is handed over before the last one of the pass before.
    void extend(std::uint64_t batches) noexcept {
        if (admitted_ == limit_) {
            pass_begin_ = limit_;
            rule_ = next_rule_;
        }
        limit_ += batches;
    }
    /// The next batch to open to the workers, while there is one, a slot is free and the budget allows it. `drawn`:
    /// the positions drawn so far, or 0 where that is not known. `unclaimed`: open batches with samples that no worker
    /// has claimed. Without workers nothing is admitted while a batch waits.
    [[nodiscard]] std::optional<Admission> admit(std::uint64_t drawn = 0, std::uint64_t unclaimed = 0) noexcept;
    /// All of the batch's samples are done. False: nobody wants it any more, and its slot is free.
    bool complete(std::uint32_t slot, bool failed) noexcept;
    /// The next complete batch whose turn it is, with its position; each once.
    [[nodiscard]] std::optional<HandOver> hand_over() noexcept;
    /// The slot of a handed-over batch came back.
    void release(std::uint32_t slot) noexcept;
    /// Gives up every batch not handed over yet and all that could have been admitted.
    Abandoned abandon() noexcept;

    // Bytes, where they are counted.
    [[nodiscard]] bool counts_bytes() const noexcept { return budget_ != 0; }
    /// The slot's memory is so large now; to be said before admit() of each that has changed, and before hand_over()
    /// of one that is complete. `passing`: of these, bytes that another slot may take over once the batch is complete.
    void holds(std::uint32_t slot, std::uint64_t bytes, std::uint64_t passing = 0) noexcept;
    /// Free slots, a bit each, whose memory is to be given up before anything admitted since is opened; they count as
    /// empty.
    [[nodiscard]] std::uint64_t trims() noexcept;
    [[nodiscard]] std::uint64_t bytes_of(std::uint32_t slot) const noexcept { return places_[slot].bytes; }
    [[nodiscard]] std::uint64_t batches_bytes() const noexcept { return bytes_; }   ///< of all slots now
    [[nodiscard]] std::uint64_t most_batches_bytes() const noexcept { return most_bytes_; }
    [[nodiscard]] std::uint64_t largest_batch_bytes() const noexcept { return largest_; }   ///< or the hint
    /// What batches_bytes() comes to once as much is ahead as depth and budget allow, if no batch is larger than the
    /// largest so far: one that is being made, beside as many finished ones as find room, of the sizes that were
    /// handed over lately; 0: nothing is known yet. `all_slots`: the most that all of them could take.
    [[nodiscard]] std::uint64_t
    expected_batches_bytes(std::uint64_t all_slots = std::numeric_limits<std::uint64_t>::max()) const noexcept;

    /// Nothing is admitted or handed over any more.
    void stop() noexcept { stopped_ = true; }
    /// Other numbers from now on: slots beyond the new depth are left unused as they come back. Between none and some
    /// workers nothing changes, beyond what begin() and end() say.
    void retarget(std::size_t num_workers, std::size_t prefetch_depth) noexcept;
    /// Of the pass being admitted if none of its batches is yet, else of the passes after it.
    void reorder(OrderRule) noexcept;
    /// Another `batches_budget_bytes`, ≥ 1: of a policy that counts bytes, else nothing happens. What is held beyond it
    /// is given up as slots come back.
    void rebudget(std::uint64_t batches_budget_bytes) noexcept;
    [[nodiscard]] OrderRule order() const noexcept { return rule_; }   ///< of the pass being admitted

    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    [[nodiscard]] std::size_t slots() const noexcept { return depth_ + 1; }
    [[nodiscard]] std::uint64_t admitted() const noexcept { return admitted_; }
    [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
    [[nodiscard]] std::uint64_t next_position() const noexcept { return position_; }
    [[nodiscard]] std::uint64_t in_flight() const noexcept { return open_ | complete_; }        ///< slots, a bit each
    [[nodiscard]] std::uint64_t wanted() const noexcept { return in_flight() & ~abandoned_; }   ///< to be handed over
    [[nodiscard]] std::uint64_t handed() const noexcept { return handed_; }   ///< slots not given back

    // Claims.
    /// `samples` took `ns` in all, as one worker measured.
    void observe(std::uint64_t samples, std::uint64_t ns) noexcept;
    /// Samples one claim should take: about 20 … 200 µs of work, a share for every worker; 1 under a budget. Never 0.
    [[nodiscard]] std::uint32_t claim_size() const noexcept;
    /// A batch is less work than the shortest claim.
    [[nodiscard]] bool claims_whole_batches() const noexcept;

    // How many workers are wanted. One beyond the cores that only computes loses its core to another in the midst of a
    // sample, and the batch that the loop waits for with it.
    /// Whether observe_use() can change anything.
    [[nodiscard]] bool may_have_too_many() const noexcept { return cores_ != 0 && num_workers_ > cores_; }
    /// How claims were spent since the last call. At least 16 are to be known, then the last 256 or so count.
    void observe_use(const WorkerUse&) noexcept;
    /// All workers; no more than cores once at least 1 % of the claims' time was queueing for these and at most 5 % another wait, until
    /// more than 15 % is.
    [[nodiscard]] std::size_t wanted_workers() const noexcept {
        return only_compute_ && may_have_too_many() ? cores_ : num_workers_;
    }

    // Sleep and wake. A worker is active from begin() to end(), except between park() and the wake that is counted for
    // it. Only an active one ends.
    void begin() noexcept { ++begun_; }
    void end() noexcept { --begun_; }
    void park() noexcept { ++parked_; }
    void woken(std::size_t workers) noexcept { parked_ -= workers; }
    [[nodiscard]] std::size_t begun() const noexcept { return begun_; }
    [[nodiscard]] std::size_t parked() const noexcept { return parked_; }
    /// How many parked workers are worth waking for `samples` just opened; counted as awake at once.
    [[nodiscard]] std::size_t wake(std::uint64_t samples) noexcept;
    /// Parked workers sleep until so many slots are back. ≥ 1.
    [[nodiscard]] std::size_t wake_threshold() const noexcept;

private:
    [[nodiscard]] std::uint32_t oldest_pending() const noexcept;
    [[nodiscard]] std::optional<std::uint32_t> slot_within_budget(std::uint64_t free,
                                                                  std::uint64_t unclaimed) const noexcept;
    [[nodiscard]] bool has_budget() const noexcept;
    [[nodiscard]] std::uint64_t charged_bytes() const noexcept;
    void trim_until(std::uint64_t bytes_to_go, std::uint64_t slots) noexcept;
    struct Place {
        OrderRule rule{};                                         // of its pass
        std::uint64_t batch = 0, pass_begin = 0, completed = 0;   // completed: running number of its completion
        std::uint64_t bytes = 0, passing = 0;                     // of its memory, where counted; of these may pass on
        std::uint64_t own_before = 0;                             // its own bytes when it was admitted
        std::uint32_t overtaken = 0;
        bool failed = false;
        [[nodiscard]] std::uint64_t own() const noexcept { return bytes - passing; }
    };
    void note_finished(const Place&) noexcept;

    std::array<Place, max_slots> places_{};
    std::uint64_t open_ = 0, complete_ = 0, handed_ = 0,
                  abandoned_ = 0;   // slots by state, a bit each; abandoned ⊂ open
    std::uint64_t limit_ = 0, pass_begin_ = 0, admitted_ = 0, position_ = 0, completions_ = 0;
    std::size_t batch_size_, num_workers_, depth_;
    OrderRule rule_, next_rule_;   // of the pass being admitted, of those after it
    std::size_t begun_ = 0, parked_ = 0;
    std::uint64_t sample_ns_x256_ = 0;   // moving average; 0: not measured yet
    std::uint64_t budget_, largest_;     // largest_: or what a batch is believed to take; 0: unknown
    std::uint64_t calm_from_;            // completions from which on largest_ is believed; unlimited: no batch is known
    std::size_t cores_;
    double computed_ns_ = 0, queued_ns_ = 0, waited_ns_ = 0;   // in the claims observed lately
    std::uint64_t uses_ = 0;                                   // claims observed
    bool only_compute_ = false;
    std::uint64_t bytes_ = 0, most_bytes_ = 0, trims_ = 0, drawn_ = 0;
    std::uint64_t finished_ = 0, reused_ = 0;            // batches handed over whole; of these in memory that was there
    double finished_mean_ = 0, finished_variance_ = 0;   // of their slots' own bytes, lately
    double shrunk_share_ = 0;                            // of the latter: those that left their slot with less
    bool lacks_bytes_ = false;                           // the last refusal was for the budget's sake
    bool stopped_ = false;
};

}   // namespace drawpoint
