#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What the loop was waiting for during a piece of a draw. The batch is the one drawn; its last sample is the one that
/// ended last.
enum class Cause : std::uint8_t {
    callbacks,   ///< callbacks of `before_draw` were running
    sampler,     ///< the sampler was computing the order of the pass's samples
    admission,   ///< the batch was not admitted yet: all slots were taken (prefetch_depth), or the pass had just begun
    budget,      ///< the batch was not admitted yet because of the memory budget
    worker,      ///< the batch was admitted, but no worker was free to begin it
    read,        ///< a worker waited for its last sample's bytes, which were being read ahead
    stage,       ///< a stage of its last sample: `BlamePiece::stage`
    other_samples,    ///< from the first claim to its last sample's begin: the workers were at its other samples
    collate_queue,    ///< all its samples were made, but collating had not begun
    collate,          ///< it was being collated
    transfer_queue,   ///< it was made, but its transfer to the device had not begun
    transfer,         ///< it was being copied to the device
    order,            ///< it was complete, but the loop had to take an older batch first
    handoff,          ///< it was available, but the loop had not resumed yet
    hidden,           ///< whatever it was: a device had work meanwhile, or the step's first command (DeviceStepRow)
    unknown,          ///< records of the batch or its samples are missing, or no batch came
};
[[nodiscard]] std::string_view to_string(Cause) noexcept;

/// How the thread that made the loop wait spent the time of a piece, where that was measured: computing, waiting for a
/// core (`run_queue`), or waiting for anything else.
enum class Spent : std::uint8_t { unknown, computing, run_queue, waiting };
[[nodiscard]] std::string_view to_string(Spent) noexcept;

/// Part of a draw. The pieces of a draw are in order, disjoint and not empty, no two neighbours are alike, and together
/// they cover the draw to the nanosecond.
struct BlamePiece {
    Cause cause{};
    Spent spent = Spent::unknown;
    std::uint8_t stage = 0;           ///< index into the stages of the batch's pipeline; for `Cause::stage` only
    std::uint32_t sample = nothing;   ///< index into `Ledger::samples`; for `Cause::read` and `stage` only
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const BlamePiece&) const = default;
};

/// One draw. Indices are `nothing` where no row is recorded.
struct DrawBlame {
    std::uint32_t step = 0;                ///< index into `Ledger::steps`
    std::uint32_t batch = nothing;         ///< index into `Ledger::batches`: the batch drawn
    std::uint32_t last_sample = nothing;   ///< index into `Ledger::samples`: the sample of the batch that ended last
    Slice pieces;                          ///< of `Blame::pieces`
    /// How long during the draw another batch of the pass was complete while this one was not. Overlaps the pieces, and
    /// is in no sum.
    std::int64_t order_ns = 0;
    bool warm_up = false;         ///< before `Blame::first_steady_step`
    bool first_of_pass = false;   ///< belongs to the start of a pass: up to its first draw that brought a batch
    bool operator==(const DrawBlame&) const = default;
};

/// A sample of the data set that made the loop wait. Its stall is how much earlier its batch would have been complete
/// if its worker had skipped it and the other workers had done what they did.
struct SlowSample {
    std::uint32_t sample = 0;    ///< index into `Ledger::samples`: the occurrence with the longest stall
    std::uint8_t stage = 0;      ///< its longest stage in that occurrence
    std::uint32_t times = 1;     ///< number of occurrences that stalled the loop, over all epochs
    std::int64_t stall_ns = 0;   ///< sum of its stalls over draws after warm-up
    bool operator==(const SlowSample&) const = default;
};

/// Where the sample comes from, if the program that recorded said so (`facts::sample_path_prefix`). Any thread.
[[nodiscard]] std::optional<std::string> path_of(const Ledger&, const SlowSample&);

/// Where a worker's time went, from the begin of the first steady step to the end of the last step. The columns sum to
/// `span_ns`.
struct WorkerBlame {
    std::uint16_t worker = 0;
    std::uint16_t pipeline = 0;   ///< index into `Ledger::pipelines`: whose worker it is
    /// By stage, without `run_queue_ns`: one column for each stage of each pipeline, in the order of
    /// `Ledger::pipelines`.
    std::vector<std::int64_t> stages_ns;
    std::int64_t collate_ns = 0;
    std::int64_t sampler_ns = 0;     ///< computing the order of a pass's samples
    std::int64_t run_queue_ns = 0;   ///< waiting for a core within stages, where that was measured
    std::int64_t overhead_ns = 0;    ///< between samples while there was one to claim: claiming, waking, recording
    /// Nothing to claim, because all slots were taken: the loop is slower than the workers, or the depth is small.
    std::int64_t idle_no_slot_ns = 0;
    std::int64_t idle_ns = 0;   ///< nothing to claim for another reason, such as the memory budget or a pass's end
    /// No recorded work, while a batch was being made whose samples are not all recorded.
    std::int64_t unknown_ns = 0;
    std::int64_t span_ns = 0;
    bool operator==(const WorkerBlame&) const = default;
};

/// All draws, cut into what they waited for, with sums. The *steady* steps are those from `first_steady_step` on.
struct Blame {
    std::vector<DrawBlame> draws;   ///< of the steps of both phases, in order
    std::vector<BlamePiece> pieces;
    std::size_t first_steady_step = 0;      ///< index into `Ledger::steps`: the steps before it are warm-up
    std::int64_t max_residual_ns = 0;       ///< largest |draw - sum of its pieces|; 0, unless there is a bug
    std::vector<SlowSample> slow_samples;   ///< longest stall first, then by index; at most 100
    std::vector<WorkerBlame> workers;       ///< by number; an inline loader has none
    /// How long the workers were in each stage of the loader while steady training draws waited for a free worker
    /// (`Cause::worker`), in nanoseconds, mean over the workers. Stages at the end that took no time may be missing.
    std::vector<std::int64_t> worker_wait_by_stage_ns;
    /// The same while they waited for other samples of the batch (`Cause::other_samples`).
    std::vector<std::int64_t> other_samples_by_stage_ns;
    /// The same for workers without anything to claim because all slots were taken, while steady training draws waited
    /// for a batch to be made. If large, a larger prefetch_depth would have kept the workers busy.
    std::int64_t idle_no_slot_while_waiting_ns = 0;
    bool operator==(const Blame&) const = default;
};

/// Explains each draw by following its batch backwards from the moment the loop resumed. Warm-up lasts for
/// prefetch_depth training batches, or longer if MSER-5, a usual rule for the start of simulations, truncates more of
/// the logarithms of the step times, but for at most half of the steps. (Validation steps, if there are no training
/// steps.) Covers the rows that the ledger keeps, not the totals in `Ledger::folded`. Sorted ledger; O(rows log rows).
/// Any thread.
[[nodiscard]] Blame blame(const Ledger&);

/// Which draws a table sums up. A draw is the first that applies of warm_up, first_of_pass and steady.
enum class DrawKind : std::uint8_t { steady, warm_up, first_of_pass };
[[nodiscard]] DrawKind kind_of(const DrawBlame&) noexcept;

/// The sum of all pieces with the same cause, and for `Cause::stage` the same stage.
struct BlameRow {
    std::string key;     ///< the same in all versions: `to_string(Cause)`, with a stage's name: "stage:decode"
    std::string cause;   ///< as in the report: "prefetch_depth", "decode"
    std::int64_t ns = 0;
    double share = 0;                                                  ///< part of the table's draws, 0 … 1
    std::int64_t computing_ns = 0, run_queue_ns = 0, waiting_ns = 0;   ///< parts of `ns`, where measured, as in Spent
    bool operator==(const BlameRow&) const = default;
};

/// The training draws of one kind as rows, largest first, then by key. The rows sum to the draws; if steps were timed
/// on a device, to the draws of those that were. The Blame must be of
/// this ledger. O(pieces).
[[nodiscard]] std::vector<BlameRow> blame_table(const Ledger&, const Blame&, DrawKind = DrawKind::steady);

/// What reports call a piece: "num_workers", "read", a stage's name. `piece` belongs to `draw`.
[[nodiscard]] std::string name_of(const Ledger&, const DrawBlame& draw, const BlamePiece& piece);

}   // namespace drawpoint
