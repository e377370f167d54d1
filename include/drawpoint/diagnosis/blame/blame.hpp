#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What the loop was waiting for during a piece of a draw.
enum class Cause : std::uint8_t {
    callbacks,   ///< before_draw's
    admission,   ///< the batch was not admitted yet: all slots were taken (prefetch_depth), or the pass had just begun
    budget,      ///< the same, for the memory budget's sake
    worker,      ///< admitted, and no worker was free for it
    read,        ///< its last sample's bytes, read ahead
    stage,       ///< a stage of its last sample: `BlamePiece::stage`
    other_samples,   ///< between the first claim and the last sample's begin: its workers were at its other samples
    collate_queue,   ///< made, not yet collated
    collate,
    transfer_queue,
    transfer,
    order,     ///< finished, behind an older batch that the loop had to take first
    handoff,   ///< there, and the loop had not resumed
    unknown,   ///< the batch's or its samples' records are missing, or no batch came
};
[[nodiscard]] std::string_view to_string(Cause) noexcept;

/// How the time of a piece was spent by the thread that made the loop wait, where that was measured.
enum class Spent : std::uint8_t { unknown, computing, run_queue, waiting };
[[nodiscard]] std::string_view to_string(Spent) noexcept;

/// Part of a draw. Pieces of a draw are disjoint, in order, none empty, neighbours differ, and they tile it to the nanosecond.
struct BlamePiece {
    Cause cause{};
    Spent spent = Spent::unknown;
    std::uint8_t stage = 0;           ///< of the batch's pipeline; of `Cause::stage` only
    std::uint32_t sample = nothing;   ///< of `Ledger::samples`; of read and stage only
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const BlamePiece&) const = default;
};

/// One draw. `pieces` of `Blame::pieces`.
struct DrawBlame {
    std::uint32_t step = 0;                ///< of `Ledger::steps`
    std::uint32_t batch = nothing;         ///< of `Ledger::batches`: the one drawn
    std::uint32_t last_sample = nothing;   ///< of `Ledger::samples`: the one the batch was complete with
    Slice pieces;
    /// Of the draw, while another batch of the pass was complete and this one was not: an overlay, in no sum.
    std::int64_t order_ns = 0;
    bool warm_up = false;
    bool first_of_pass = false;   ///< up to a pass's first draw that brought a batch
    bool operator==(const DrawBlame&) const = default;
};

/// A sample of the data set that made the loop wait: by how much earlier its batch would have been complete without it,
/// if its worker had gone on and the others had done as they did.
struct SlowSample {
    std::uint32_t sample = 0;    ///< of `Ledger::samples`: the time it stalled longest
    std::uint8_t stage = 0;      ///< its longest then
    std::uint32_t times = 1;     ///< that it stalled, over all epochs
    std::int64_t stall_ns = 0;   ///< of draws after warm-up, that it alone caused
    bool operator==(const SlowSample&) const = default;
};

/// Where a worker's time went, from the first steady step's begin to the last step's end. The columns sum to its span.
struct WorkerBlame {
    std::uint16_t worker = 0;
    std::uint8_t pipeline = 0;   ///< of `Ledger::pipelines`: whose worker it is
    /// By stage; those of all pipelines in the order of `Ledger::pipelines`. Without `run_queue_ns`.
    std::vector<std::int64_t> stages_ns;
    std::int64_t collate_ns = 0;
    std::int64_t run_queue_ns = 0;   ///< in stages, waiting for a core; of the samples where that was measured
    std::int64_t overhead_ns = 0;    ///< between samples while there was one to claim: claiming, waking, recording
    std::int64_t idle_no_slot_ns =
        0;                         ///< nothing to claim and all slots taken: the loop is slower, or the depth small
    std::int64_t idle_ns = 0;      ///< nothing to claim otherwise
    std::int64_t unknown_ns = 0;   ///< not seen at work while a batch was made whose samples are not all recorded
    std::int64_t span_ns = 0;
    bool operator==(const WorkerBlame&) const = default;
};

/// Every draw cut into what it waited for, and the sums.
struct Blame {
    std::vector<DrawBlame> draws;   ///< of the steps of both phases, in order
    std::vector<BlamePiece> pieces;
    std::size_t first_steady_step = 0;      ///< of `Ledger::steps`: those before are warm-up
    std::int64_t max_residual_ns = 0;       ///< largest |draw - its pieces|; 0, or there is a mistake
    std::vector<SlowSample> slow_samples;   ///< by stall, the largest first, then by index; at most 100
    std::vector<WorkerBlame> workers;       ///< by number; without those that an inline loader counts as
    /// While steady training draws waited for a worker: in which stage (of the loader's) the workers were, in
    /// worker-nanoseconds / workers.
    std::vector<std::int64_t> worker_wait_by_stage_ns;
    std::vector<std::int64_t>
        other_samples_by_stage_ns;   ///< the same while they waited for other samples of the batch
    /// The same while they waited for anything in the making of a batch: workers with nothing to claim, all slots taken.
    /// Large: deeper prefetching would have had them at work.
    std::int64_t idle_no_slot_while_waiting_ns = 0;
    bool operator==(const Blame&) const = default;
};

/// Walks each drawn batch's chain backwards from the moment the loop resumed and clips it to the draw. Folded steps are not
/// there. Warm-up ends after prefetch_depth training batches and where MSER-5 truncates the logarithms of the step times,
/// at half of the steps at the latest (validation steps where none trained). Sorted ledger; O(rows log rows). Any thread.
[[nodiscard]] Blame blame(const Ledger&);

/// Which draws a table sums up: the first that applies of warm_up, first_of_pass, steady.
enum class DrawKind : std::uint8_t { steady, warm_up, first_of_pass };
[[nodiscard]] DrawKind kind_of(const DrawBlame&) noexcept;

/// A sum of pieces that are one thing: a cause, a stage each.
struct BlameRow {
    std::string key;     ///< stable: "admission", "stage:decode"; `to_string(Cause)`, of a stage with its name
    std::string cause;   ///< "prefetch_depth", "decode": as the report says it
    std::int64_t ns = 0;
    double share = 0;                                                  ///< of these draws
    std::int64_t computing_ns = 0, run_queue_ns = 0, waiting_ns = 0;   ///< of `ns`, where it was measured
    bool operator==(const BlameRow&) const = default;
};

/// The training draws of one kind, as rows, largest first, then by key. The rows sum to the draws.
[[nodiscard]] std::vector<BlameRow> blame_table(const Ledger&, const Blame&, DrawKind = DrawKind::steady);

/// What a piece is called in reports: "num_workers", "read", a stage's name. `piece` of `draw`.
[[nodiscard]] std::string name_of(const Ledger&, const DrawBlame& draw, const BlamePiece& piece);

}   // namespace drawpoint
