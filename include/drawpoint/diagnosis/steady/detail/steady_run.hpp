#pragma once

#include <cstddef>
#include <optional>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/diagnosis/steady/detail/read_line.hpp>
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>

namespace drawpoint {

/// The steady part of a recording, prepared for everything that predicts from it.
struct SteadyRun {
    TimeRange window;   ///< empty: there are no steady training steps
    Blame blame;
    /// With the load of others and the shared bandwidth of reads with which the replay is closest to the recording;
    /// `unusable` says why it cannot be replayed.
    RecordedRun run;
    Interference interference;   ///< over the window, as is `trust`
    Trust trust;
    std::optional<ReadLine> line;        ///< absent also if the replay is closer to the recording without it
    double replayed_batches_per_s = 0;   ///< of the replay of the recorded setting; 0: it cannot be replayed
};

/// From the first steady training step's draw to the end of the last training step and of the time between it and the
/// next draw: the time that the measured throughput counts. A validation after the last step is not included, because
/// its load is not the training's. Steps without samples do not count.
[[nodiscard]] TimeRange steady_window(const Ledger&, std::size_t first_steady_step);

/// The time between a step and the next draw.
[[nodiscard]] std::int64_t between_ns(const Ledger&, const StepRow&);

/// Sorted ledger. Deterministic. Besides `blame` it takes half a second as a rule, and four at most.
[[nodiscard]] SteadyRun prepare(const Ledger&);

/// Sets the load of others in the run, replays the recorded setting and returns its rate; replays as many steps as hold
/// `most_samples`. The load is set to 0 if it cannot have been a limit: the replay is more than 10 % slower than the
/// recording, although workers did not wait for a core. A read line is removed if the replay is more than 20 % off with
/// it and closer without it. `loop_waits_first` and `helpers_yield` are chosen so that the replay fits; of a loop whose
/// threads spin, as much counts as work as makes it fit, within `least_loop_work`. Throws as `replay` does.
[[nodiscard]] double replay_recorded(RecordedRun&, const Interference&, std::size_t most_samples);

}   // namespace drawpoint
