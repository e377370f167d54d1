#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/verdict/read_line.hpp"
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What the steady training steps of a run were like.
struct Evidence {
    std::size_t steps = 0, all_steps = 0;   ///< all: with the warm-up
    std::int64_t from_ns = 0, to_ns = 0;    ///< from the first one's draw to the last one's end
    double wall_s = 0, draw_s = 0;          ///< draws and steps, with what lies between
    double p99_draw_s = 0, mean_step_s = 0;
    double all_draw_s = 0, all_wall_s = 0;   ///< with the warm-up, whose first draw is among them
    double handoff_s = 0, order_s = 0;       ///< of draw_s
    double compute_variation = 0;            ///< standard deviation / mean of the time between draws
    double sample_variation = 0;             ///< of a sample's demand
    double sample_p99_over_p50 = 1;
    std::optional<ReadLine> line;
    bool reads_grow_with_bytes = false;
    [[nodiscard]] double draw_share() const noexcept { return wall_s > 0 ? draw_s / wall_s : 0; }
};

[[nodiscard]] Evidence evidence_of(const Ledger&, const Blame&, const RecordedRun&);

/// What the replay of the recorded setting makes, over so many steps as hold `most_samples`, after it told the run what
/// others took. Where that much less was not to be had - the replay is a tenth slower than what was measured, and the
/// workers waited for no core - nothing was taken. A line that puts the replay far off was none. Throws as `replay` does.
[[nodiscard]] double replay_recorded(RecordedRun&, const Interference&, std::size_t most_samples);

/// The evidence as sentences with numbers, the verdict's own first.
[[nodiscard]] std::vector<std::string> evidence_text(const Evidence&, const std::vector<BlameRow>&, const Interference&,
                                                     const RecordedRun&, std::string_view verdict);

}   // namespace drawpoint
