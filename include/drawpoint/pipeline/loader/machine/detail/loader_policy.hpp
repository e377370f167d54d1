#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

/// What a LoaderPolicy is configured with.
struct PolicyOptions {
    std::size_t batch_size = 1;
    std::size_t num_workers = 1;      ///< 0: the loop makes the samples itself, one batch at a time
    std::size_t prefetch_depth = 2;   ///< 1 … 55
    OrderRule order{};
    /// Most bytes of all slots together, where batches differ in size (collating loaders); 0: bytes are not counted.
    std::uint64_t batches_budget_bytes = 0;
    std::uint64_t batch_bytes_hint = 0;   ///< assumed size of a batch until one is complete; 0: unknown
    std::size_t cores = 0;                ///< cores for the workers; 0: unknown, workers are never too many
};

/// How a worker spent the time of some claims: computing, queued for a core, waiting for anything else.
struct WorkerUse {
    std::uint64_t claims = 0, computed_ns = 0, queued_ns = 0, waited_ns = 0;
};

/// Decides about batches: which is admitted next and to which slot, which is handed over next, how many samples one
/// claim takes, and how many workers to wake. LoaderMachine adds the rest; drivers talk to that. A pure state machine
/// without threads, clock or I/O, so that threads and a simulator in virtual time drive the same decisions. Nothing
/// allocates or throws; every call costs O(slots), trims() O(slots) for each slot that it names. Calls must not overlap
/// (the driver's mutex).
///
/// A batch is *admitted* to a slot and then *open* until all of its samples are made, then *complete*, then *handed
/// over* to the loop until its slot is released. Batches are numbered in order of admission over the loader's whole
/// life, hand-overs by position. Slots 0 … prefetch_depth are places in memory; slot i is bit i of a bit set of
/// slots.
///
/// With `batches_budget_bytes`, a batch is admitted only if it fits the budget together with the memory of all slots,
/// where an open batch counts as at least the largest batch so far. Because the size of a batch is nearly known only
/// when its last sample is claimed, the next one is admitted only then. One batch may still have unclaimed samples
/// while there is room for four times the largest batch and no larger one has come for two rounds of all slots.
/// Samples are then claimed one at a time. So only one batch may exceed the budget; while sizes grow, with several
/// workers, at most one for each. When nothing is open or complete and the loop has drawn everything, a batch is
/// admitted whatever it takes.
class LoaderPolicy {
public:
    static constexpr std::size_t max_slots = loader_limits::most_prefetch_depth + 1;

    /// A batch and the slot that it gets.
    struct Admission {
        std::uint64_t batch;
        std::uint32_t slot;
    };
    /// A complete batch that becomes the loop's. `failed`: a sample or the collating failed.
    struct HandOver {
        std::uint64_t batch, position;
        std::uint32_t slot;
        bool failed;
        bool operator==(const HandOver&) const = default;
    };
    /// Bit sets of slots whose batch was given up.
    struct Abandoned {
        std::uint64_t open = 0;       ///< workers may still write there: free after complete()
        std::uint64_t complete = 0;   ///< free now
        bool operator==(const Abandoned&) const = default;
    };

    explicit LoaderPolicy(const PolicyOptions&) noexcept;

    /// Lets `batches` more batches be admitted. They are a new pass if all earlier batches are admitted, else they
    /// belong to the current one. In every order, a pass's batches are handed over only after all of the pass before.
    void extend(std::uint64_t batches) noexcept {
        if (admitted_ == limit_) {
            pass_begin_ = limit_;
            rule_ = next_rule_;
        }
        limit_ += batches;
    }
    /// Admits the next batch, if there is one, a slot is free and the budget allows it. `drawn`: number of batches
    /// drawn, or 0 where it is not known. `unclaimed`: open batches with samples that no worker has claimed. Without
    /// workers, only one batch is in flight or waits to be drawn.
    [[nodiscard]] std::optional<Admission> admit(std::uint64_t drawn = 0, std::uint64_t unclaimed = 0) noexcept;
    /// All samples of the slot's batch are made. False: the batch was abandoned, and its slot is free now.
    bool complete(std::uint32_t slot, bool failed) noexcept;
    /// The next complete batch that the order rule allows to be drawn, with its position; each once. nullopt: none.
    [[nodiscard]] std::optional<HandOver> hand_over() noexcept;
    /// The slot of a batch that was handed over has come back.
    void release(std::uint32_t slot) noexcept;
    /// Gives up every batch that is not handed over, and those that could still have been admitted.
    Abandoned abandon() noexcept;

    // Bytes, where they are counted.
    [[nodiscard]] bool counts_bytes() const noexcept { return budget_ != 0; }
    /// Sets the memory that the slot holds, and the part of it, `passing`, that another slot may take over once the
    /// batch is complete. Call it before admit() for each slot that has changed, and before hand_over() of a complete
    /// one.
    void holds(std::uint32_t slot, std::uint64_t bytes, std::uint64_t passing = 0) noexcept;
    /// Bit set of free slots whose memory must be freed before batches admitted since the last call are opened. From
    /// now on they count as empty.
    [[nodiscard]] std::uint64_t trims() noexcept;
    [[nodiscard]] std::uint64_t bytes_of(std::uint32_t slot) const noexcept { return places_[slot].bytes; }
    [[nodiscard]] std::uint64_t batches_bytes() const noexcept { return bytes_; }             ///< of all slots, now
    [[nodiscard]] std::uint64_t most_batches_bytes() const noexcept { return most_bytes_; }   ///< of all slots, ever
    [[nodiscard]] std::uint64_t largest_batch_bytes() const noexcept { return largest_; }     ///< ever, or the hint
    /// Estimates the peak of batches_bytes() when as much is prefetched as depth and budget allow and no batch is
    /// larger than the largest so far: one batch in the making, and as many finished ones as fit, with the mean and
    /// variance of those handed over lately. 0: nothing is known yet. The result is at most `most`, unless more has
    /// been held already.
    [[nodiscard]] std::uint64_t
    expected_batches_bytes(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const noexcept;

    /// From now on nothing is admitted or handed over. Final.
    void stop() noexcept { stopped_ = true; }
    /// Changes the number of workers and the depth. Slots beyond a smaller depth are not used again once they come
    /// back. Which workers are active only begin() and end() say.
    void retarget(std::size_t num_workers, std::size_t prefetch_depth) noexcept;
    /// Changes the order of the passes of which no batch is admitted yet.
    void reorder(OrderRule) noexcept;
    /// Changes `batches_budget_bytes`, ≥ 1; does nothing where bytes are not counted. Memory beyond a smaller budget
    /// is freed as slots come back.
    void rebudget(std::uint64_t batches_budget_bytes) noexcept;
    [[nodiscard]] OrderRule order() const noexcept { return rule_; }   ///< of the pass being admitted

    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    [[nodiscard]] std::size_t slots() const noexcept { return depth_ + 1; }
    [[nodiscard]] std::uint64_t admitted() const noexcept { return admitted_; }        ///< batches admitted so far
    [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }              ///< batches that may be, in all
    [[nodiscard]] std::uint64_t next_position() const noexcept { return position_; }   ///< batches handed over so far
    // Bit sets of slots: with an open or complete batch; those of them not abandoned; handed over and not yet back.
    [[nodiscard]] std::uint64_t in_flight() const noexcept { return open_ | complete_; }
    [[nodiscard]] std::uint64_t wanted() const noexcept { return in_flight() & ~abandoned_; }
    [[nodiscard]] std::uint64_t handed() const noexcept { return handed_; }

    // Claims.
    /// One worker measured that `samples` samples took `ns` in all.
    void observe(std::uint64_t samples, std::uint64_t ns) noexcept;
    /// Samples that one claim takes, 1 … batch_size: 20 to 50 µs of work, in between an equal share for each worker.
    /// 1 under a budget, and before anything was measured.
    [[nodiscard]] std::uint32_t claim_size() const noexcept;
    /// Whether a whole batch is less work than the shortest claim, 20 µs.
    [[nodiscard]] bool claims_whole_batches() const noexcept;

    // How many workers are wanted. Where workers only compute, one more than there are cores interrupts another in the
    // middle of a sample, and so delays the batch that the loop waits for.
    /// Whether there are more workers than cores, so that observe_use() can change wanted_workers().
    [[nodiscard]] bool may_have_too_many() const noexcept { return cores_ != 0 && num_workers_ > cores_; }
    /// Reports how claims were spent. The first 16 decide nothing; then the last 256 or so count.
    void observe_use(const WorkerUse&) noexcept;
    /// num_workers; but no more than cores while workers hardly do anything but compute: from when queueing for a core
    /// takes at least 1 % of computing and queueing, and other waits at most 5 % of computing and waiting, until the
    /// latter exceeds 15 %.
    [[nodiscard]] std::size_t wanted_workers() const noexcept {
        return only_compute_ && may_have_too_many() ? cores_ : num_workers_;
    }

    // Sleep and wake. A worker is active from begin() to end(), except between park() and the wake() or woken() that
    // counts it as awake. Only an active worker ends.
    void begin() noexcept { ++begun_; }
    void end() noexcept { --begun_; }
    void park() noexcept { ++parked_; }
    void woken(std::size_t workers) noexcept { parked_ -= workers; }
    [[nodiscard]] std::size_t begun() const noexcept { return begun_; }
    [[nodiscard]] std::size_t parked() const noexcept { return parked_; }
    /// How many parked workers to wake for `samples` just opened; they count as awake at once. None for work of less
    /// than 25 µs, unless no worker is active.
    [[nodiscard]] std::size_t wake(std::uint64_t samples) noexcept;
    /// The number of slots, ≥ 1, that must come back before a parked worker is woken.
    [[nodiscard]] std::size_t wake_threshold() const noexcept;

private:
    [[nodiscard]] std::uint32_t oldest_pending() const noexcept;
    [[nodiscard]] std::optional<std::uint32_t> slot_within_budget(std::uint64_t free,
                                                                  std::uint64_t unclaimed) const noexcept;
    [[nodiscard]] bool has_budget() const noexcept;
    [[nodiscard]] std::uint64_t charged_bytes() const noexcept;
    void trim_until(std::uint64_t bytes_to_go, std::uint64_t slots) noexcept;
    struct Place {
        OrderRule rule{};                                         // of the batch's pass
        std::uint64_t batch = 0, pass_begin = 0, completed = 0;   // completed: running number of the completion
        std::uint64_t bytes = 0, passing = 0;                     // memory, where counted; the part that may move on
        std::uint64_t own_before = 0;                             // own() when the batch was admitted
        std::uint32_t overtaken = 0;
        bool failed = false;
        [[nodiscard]] std::uint64_t own() const noexcept { return bytes - passing; }
    };
    void note_finished(const Place&) noexcept;

    std::array<Place, max_slots> places_{};
    // Bit sets of slots; abandoned ⊂ open.
    std::uint64_t open_ = 0, complete_ = 0, handed_ = 0, abandoned_ = 0;
    std::uint64_t limit_ = 0, pass_begin_ = 0, admitted_ = 0, position_ = 0, completions_ = 0;
    std::size_t batch_size_, num_workers_, depth_;
    OrderRule rule_, next_rule_;   // of the pass being admitted, of those after it
    std::size_t begun_ = 0, parked_ = 0;
    std::uint64_t sample_ns_x256_ = 0;   // moving average; 0: not measured yet
    std::uint64_t budget_, largest_;     // largest_: largest batch so far, or the hint; 0: unknown
    std::uint64_t calm_from_;            // completions after which largest_ is trusted; unlimited: no batch is known
    std::size_t cores_;
    double computed_ns_ = 0, queued_ns_ = 0, waited_ns_ = 0;   // of recent claims
    std::uint64_t uses_ = 0;                                   // claims observed
    bool only_compute_ = false;
    std::uint64_t bytes_ = 0, most_bytes_ = 0, trims_ = 0, drawn_ = 0;
    std::uint64_t finished_ = 0, reused_ = 0;   // batches handed over without failure; those in memory used before
    double finished_mean_ = 0, finished_variance_ = 0;   // of the own bytes of their slots, lately
    double shrunk_share_ = 0;    // share of the reused ones whose slot had fewer bytes of its own afterwards
    bool lacks_bytes_ = false;   // the last admit() was refused because of the budget
    bool stopped_ = false;
};

}   // namespace drawpoint
