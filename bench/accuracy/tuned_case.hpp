#pragma once

#include <cstddef>
#include <cstdint>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

#include "truth.hpp"

namespace drawpoint::bench {

/// What `tune` chose on a case's live loader, and what the choice is worth.
struct TunedCase {
    LoaderSetting chosen, best;   ///< best: of the truth's grid
    double effect = 0;            ///< gain of the best over the case's own setting, by the truth: 0.1 = 10 %
    /// by what share of the best rate the chosen setting is slower; measured now, in pairs, so it may be below 0
    double regret = 0;
    std::size_t steps_used = 0;
    bool separated = false;
    std::uint64_t peak_bytes = 0;   ///< the loader's peak memory over all settings tried
};

/// Tunes as `drawpoint tune` does, within the truth's grid, which must not be empty. Throws what `tune_live` throws.
[[nodiscard]] TunedCase tune_case(const Case&, const Truth&, Rig&);

}   // namespace drawpoint::bench
