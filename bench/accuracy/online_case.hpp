#pragma once

#include <cstddef>
#include <vector>

#include <drawpoint/diagnosis/tuner/online_tuner.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// A part of the run in which the loop's own time is `pace` times that of the case.
struct OnlinePhase {
    double pace = 1;
    LoaderSetting reached;   ///< after 300 steps of the phase
    LoaderSetting best;      ///< of the case's grid, at this pace
    /// by what share of the best rate `reached` is slower; measured separately, in pairs, so it may be below 0
    double behind = 0;
    /// The slowest 200 steps in a row, as a ratio to the rate of the setting that the phase began with: of the phase,
    /// and of that setting left unchanged, since a host has slow moments of its own.
    double worst_window = 0, untuned_window = 0;
};

struct OnlineCase {
    std::vector<OnlinePhase> phases;
    std::vector<TunerDecision> decisions;
};

/// Trains a case that has a grid with an OnlineTuner, for 500 steps each as the case is, and with 0.3 and 3 times the
/// loop's own time.
[[nodiscard]] OnlineCase tune_online(const Case&, Rig&);

}   // namespace drawpoint::bench
