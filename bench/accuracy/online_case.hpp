#pragma once

#include <cstddef>
#include <vector>

#include <drawpoint/diagnosis/tuner/online_tuner.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// A stretch of the run in which the loop's own time is `pace` times the case's.
struct OnlinePhase {
    double pace = 1;
    LoaderSetting reached;   ///< after 300 of its steps
    LoaderSetting best;      ///< of the case's grid, at this pace
    double behind =
        0;   ///< of the best one's rate, by which `reached` is slower; measured apart, in pairs, so it may be below 0
    /// Of all windows of 200 steps the slowest, over the rate of the setting that the phase began with: of the phase, and of
    /// that setting left as it is, since a host has slow moments of its own.
    double worst_window = 0, untuned_window = 0;
};

struct OnlineCase {
    std::vector<OnlinePhase> phases;
    std::vector<TunerDecision> decisions;
};

/// Trains a case that has a grid with an OnlineTuner, first as it is, then at 0.3 and at 3 times the loop's own time: 500
/// steps each.
[[nodiscard]] OnlineCase tune_online(const Case&, Rig&);

}   // namespace drawpoint::bench
