#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/diagnosis/verdict/words.hpp>

namespace drawpoint {

/// Figures of a run's steady training steps.
struct Evidence {
    std::size_t steps = 0, all_steps = 0;   ///< `all_`: with the warm-up
    double wall_s = 0, draw_s = 0;          ///< whole steps, and their draws
    double p99_draw_s = 0, mean_step_s = 0;
    double all_draw_s = 0, all_wall_s = 0;   ///< with the warm-up, which holds the first draw
    double handoff_s = 0, order_s = 0;       ///< parts of draw_s
    double sampler_s = 0;                    ///< likewise: waits for the order of a pass
    double sampler_work_s = 0;               ///< of all workers of the loader: computing orders
    double compute_variation = 0;            ///< standard deviation / mean of the time between draws
    double sample_variation = 0;             ///< the same of a sample's demand
    double sample_p99_over_p50 = 1;
    bool reads_grow_with_bytes = false;
    DeviceTotals device;   ///< of those of the steps that were timed on a device
    [[nodiscard]] double draw_share() const noexcept { return wall_s > 0 ? draw_s / wall_s : 0; }
    /// What waiting for data cost: as a share of the device's time or, without one, of the loop's.
    [[nodiscard]] double data_share() const noexcept {
        const std::int64_t all_ns = device.all_ns();
        return all_ns > 0 ? static_cast<double>(device.data_ns()) / static_cast<double>(all_ns) : draw_share();
    }
};

[[nodiscard]] Evidence evidence_of(const Ledger&, const SteadyRun&);

/// The evidence as sentences with numbers.
[[nodiscard]] std::vector<std::string> evidence_text(const Evidence&, const SteadyRun&, const std::vector<BlameRow>&,
                                                     Verdict verdict);

}   // namespace drawpoint
