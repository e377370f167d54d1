#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/steady/steady_run.hpp"

namespace drawpoint {

/// What the steady training steps of a run were like.
struct Evidence {
    std::size_t steps = 0, all_steps = 0;   ///< all: with the warm-up
    double wall_s = 0, draw_s = 0;          ///< draws and steps, with what lies between
    double p99_draw_s = 0, mean_step_s = 0;
    double all_draw_s = 0, all_wall_s = 0;   ///< with the warm-up, whose first draw is among them
    double handoff_s = 0, order_s = 0;       ///< of draw_s
    double compute_variation = 0;            ///< standard deviation / mean of the time between draws
    double sample_variation = 0;             ///< of a sample's demand
    double sample_p99_over_p50 = 1;
    bool reads_grow_with_bytes = false;
    [[nodiscard]] double draw_share() const noexcept { return wall_s > 0 ? draw_s / wall_s : 0; }
};

[[nodiscard]] Evidence evidence_of(const Ledger&, const SteadyRun&);

/// The evidence as sentences with numbers, the verdict's own first.
[[nodiscard]] std::vector<std::string> evidence_text(const Evidence&, const SteadyRun&, const std::vector<BlameRow>&,
                                                     std::string_view verdict);

}   // namespace drawpoint
