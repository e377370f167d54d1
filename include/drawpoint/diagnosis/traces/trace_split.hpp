#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Which of PyTorch's iterators the loop draws from. `single_process`: num_workers is 0, and a draw is the loading itself.
enum class LoaderIterator : std::uint8_t { unknown, single_process, multi_process };

/// One step of a trace, in nanoseconds: draw + setup + compute + between last until the next one begins.
struct TraceStep {
    std::uint32_t number = 0;   ///< as the trace has it (`ProfilerStep#N`)
    std::uint32_t draws = 0;    ///< calls of `__next__`
    std::int64_t begin_ns = 0;
    std::int64_t draw_begin_ns = 0;   ///< of the first; without one, `begin_ns`
    std::int64_t draw_ns = 0;         ///< in all its `__next__`
    std::int64_t setup_ns = 0;        ///< at a boundary: between an epoch's last `__next__` and the next epoch's first
    std::int64_t compute_ns = 0;      ///< everything else up to its end
    std::int64_t between_ns = 0;      ///< after its end: the profiler's own turn, mostly
    bool warm_up = false;
    bool boundary = false;   ///< an epoch ended or an iterator was made in it
};

/// The n-th of a hundred parts of some draws, by nearest rank.
struct DrawTail {
    std::int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
};

/// What the steps' time went to, as far as the trace names it.
struct TraceAction {
    std::string name;   ///< "forward", "backward", …
    std::int64_t ns = 0;
};

/// What a trace of a training loop says of its draws, without records of the loader: a split, never a verdict. "Steady" are
/// the steps that are neither warm-up nor a boundary.
struct TraceSplit {
    std::vector<TraceStep> steps;   ///< in order of time
    LoaderIterator iterator{};
    bool has_draws = false;       ///< false: the rest but `steps`, `notes` and `cannot_tell` says nothing
    bool steps_by_draw = false;   ///< the trace marks no steps: each lasts from one draw to the next
    std::size_t warm_up_steps = 0, boundaries = 0, steady_steps = 0;
    DrawTail steady_draw;
    std::size_t long_draws = 0;            ///< of the steady ones: those over a fifth of the 99th percentile
    std::int64_t steady_step_p50_ns = 0;   ///< draw + compute
    double draw_share = 0;                 ///< of the steady steps' time
    double draw_share_of_all = 0;          ///< draws and setup, of all steps' time
    double warm_up_share = 0;              ///< of all draws and setup: in warm-up
    double boundary_share = 0;             ///< of all draws and setup: at boundaries
    /// What steady throughput would gain if every draw took no time (0.1 = 10 %): the most that any loader could give. Absent:
    /// the steps are nothing but draws.
    std::optional<double> headroom;
    std::optional<std::pair<double, double>> headroom_90;   ///< 90 % interval, by blocks; absent below 20 steady steps
    std::optional<std::size_t>
        period;   ///< draws are long every so many steps, as with so many workers that are all late
    std::optional<double>
        hidden_share;           ///< of the steady draws: while a device still worked; absent: no device in the trace
    double between_share = 0;   ///< of all time: between steps
    std::int64_t profiler_ns = 0;           ///< what the profiler itself says it cost, of all threads
    std::vector<TraceAction> actions;       ///< of all steps, in the order of a step; empty: nothing is annotated
    std::vector<std::string> notes;         ///< what was odd in the trace, and what was made of it
    std::vector<std::string> cannot_tell;   ///< questions that no such trace answers
    std::string hint;                       ///< what the draws look like, by rule of thumb; empty: too little to say
};

/// Splits the steps of an imported trace, with or without its operators; also the training steps of a recording. Steps and
/// draws are the ranges of the thread that has the steps. A step that draws more often than most ended an epoch; so did one
/// whose draw is long and begins late. Warm-up: the first steps while they take over 1.5 times the median of the second half;
/// none below 10 steps. Sorted ledger; deterministic; O(rows + steps log steps). Any thread.
[[nodiscard]] TraceSplit split_trace(const Ledger&);

/// The split in some 20 lines of at most 120 columns.
[[nodiscard]] std::string to_text(const TraceSplit&);

}   // namespace drawpoint
