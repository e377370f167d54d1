#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

/// Which of PyTorch's iterators the loop draws from. `single_process`: num_workers is 0, and a draw is the loading
/// itself.
enum class LoaderIterator : std::uint8_t { unknown, single_process, multi_process };

/// One step of a trace. draw + setup + compute + between sum to the time until the next step begins.
struct TraceStep {
    /// N of `ProfilerStep#N`; counted from 0 if `steps_by_draw`; without a trace's ranges, `StepRow::step`.
    std::uint32_t number = 0;
    std::uint32_t draws = 0;   ///< calls of `__next__`
    std::int64_t begin_ns = 0;
    std::int64_t draw_begin_ns = 0;   ///< of the first draw; `begin_ns` if there is none
    std::int64_t draw_ns = 0;         ///< in all its calls of `__next__`
    std::int64_t setup_ns = 0;        ///< at a boundary: between an epoch's last `__next__` and the next epoch's first
    std::int64_t compute_ns = 0;      ///< everything else until the step's end
    std::int64_t between_ns = 0;      ///< after the step's end: mostly the profiler's own work
    bool warm_up = false;
    bool boundary = false;   ///< an epoch ended or an iterator was created in it
};

/// Percentiles of some draws, by nearest rank.
struct DrawTail {
    std::int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
};

/// What the steps' time went to, where the trace names it.
struct TraceAction {
    std::string name;   ///< "forward", "backward", …
    std::int64_t ns = 0;
};

/// What a trace of a training loop says about its draws, without records of the loader: a breakdown, never a verdict.
/// The *steady* steps here are those that are neither warm-up nor a boundary. Shares are 0 … 1.
struct TraceSplit {
    std::vector<TraceStep> steps;   ///< in order of time
    LoaderIterator iterator{};
    /// false: not set are `steady_steps`, `hint`, and all members from `steady_draw` to `hidden_share`.
    bool has_draws = false;
    bool steps_by_draw = false;   ///< the trace marks no steps: each lasts from one draw to the next
    std::size_t warm_up_steps = 0, boundaries = 0, steady_steps = 0;
    DrawTail steady_draw;
    /// The steady draws are divided into short and long ones where that separates the logarithms of their lengths best
    /// (Otsu's method). The number of long ones; 0: the groups' geometric means differ by less than a factor of 5.
    std::size_t long_draws = 0;
    std::int64_t steady_step_p50_ns = 0;   ///< draw + compute, without `between_ns`
    // The steps' time in these shares and in `headroom` includes `between_ns`.
    double draw_share = 0;          ///< part of the steady steps' time that is draws
    double draw_share_of_all = 0;   ///< part of all steps' time that is draws or setup
    double warm_up_share = 0;       ///< part of all draws and setup that is in warm-up
    double boundary_share = 0;      ///< part of all draws and setup that is at boundaries
    /// How much steady throughput would gain if draws took no time and nothing else changed (0.1 = 10 %). Absent if the
    /// steps consist of draws only.
    std::optional<double> headroom;
    /// 90 % interval by a block bootstrap; absent below 20 steady steps.
    std::optional<std::pair<double, double>> headroom_90;
    /// n, if every n-th draw is long, as when n workers, all too slow, finish at the same time.
    std::optional<std::size_t> period;
    /// The part of the steady draws' time during which a device ran a kernel, copy or memset; of steps with one draw.
    /// Absent if the trace has none of these.
    std::optional<double> hidden_share;
    double between_share = 0;               ///< part of all time that is between steps
    std::int64_t profiler_ns = 0;           ///< what the profiler says it cost itself, over all threads
    std::vector<TraceAction> actions;       ///< sums over all steps, in the order of a step; empty: none is annotated
    std::vector<std::string> notes;         ///< oddities of the trace, and how they were treated
    std::vector<std::string> cannot_tell;   ///< questions that no such trace answers
    std::string hint;                       ///< what the draws look like, by rule of thumb; empty: too little data
};

/// Splits the steps of an imported trace; in a ledger without a trace's ranges, the recorded training steps. Steps and
/// draws are the `ProfilerStep` and `__next__` ranges of the thread with the most steps (then draws), found in
/// `Ledger::operators`. `actions` are the sums of `Ledger::steps`, which `import_chrome_trace` may have made from
/// another thread. A step ended an epoch if it draws more often than most steps; or if its draw takes over 5 times the
/// median and begins late in the step: by over 0.1 ms + 10 times the median. Warm-up: the first steps, while each takes
/// over 1.5 times the median of the second half; none below 10 steps, or if that lasts for all of the first half.
/// Sorted ledger; deterministic; O(rows + steps log steps). Any thread.
[[nodiscard]] TraceSplit split_trace(const Ledger&);

/// The split in about 20 lines. UTF-8; names may make one wider.
[[nodiscard]] std::string to_text(const TraceSplit&, TextOptions = {});

}   // namespace drawpoint
