#pragma once

#include <cstddef>
#include <optional>

#include "diagnosis/rows/loader_rows.hpp"
#include "diagnosis/steady/read_line.hpp"
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>

namespace drawpoint {

/// The steady part of a recording, as everything that predicts from it takes it.
struct SteadyRun {
    TimeRange window;   ///< empty: there are no steady training steps
    Blame blame;
    RecordedRun run;   ///< with the load of others and the line of reads that the replay takes; `unusable` says why not
    Interference interference;        ///< of the window, as is `trust`
    Trust trust;
    std::optional<ReadLine> line;     ///< that reads share; absent too where the replay is better without
    double replayed_batches_per_s = 0;   ///< what the replay of the recorded setting makes; 0: it cannot be replayed
};

/// From the first steady training step's draw to the end of the last training step, with what lies between it and the next
/// draw: the time that the measured throughput counts. A validation after the last step is not in it, and its load is
/// not the training's. Steps without samples do not count.
[[nodiscard]] TimeRange steady_window(const Ledger&, std::size_t first_steady_step);

/// What lies between it and the next draw.
[[nodiscard]] std::int64_t between_ns(const Ledger&, const StepRow&);

/// Sorted ledger. Deterministic. At most about half a second beside `blame`.
[[nodiscard]] SteadyRun prepare(const Ledger&);

/// What the replay of the recorded setting makes, over so many steps as hold `most_samples`, after it told the run what
/// others took. Where that much less was not to be had - the replay is a tenth slower than what was measured, and the
/// workers waited for no core - nothing was taken. A line that puts the replay far off was none. Throws as `replay` does.
[[nodiscard]] double replay_recorded(RecordedRun&, const Interference&, std::size_t most_samples);

}   // namespace drawpoint
