#pragma once

#include <cstddef>
#include <cstdint>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

#include "truth.hpp"

namespace drawpoint::bench {

/// What `tune` came to on a case's live loader, and what that is worth.
struct TunedCase {
    LoaderSetting chosen, best;   ///< best: of the truth's grid
    double effect = 0;            ///< of the best over the case's own setting, by the truth: 0.1 = 10 %
    double regret =
        0;   ///< by which the chosen one is slower, of the best one's rate; measured now, in pairs, so it may be below 0
    std::size_t steps_used = 0;
    bool separated = false;
    std::uint64_t peak_bytes = 0;   ///< of the loader's memory, over all that was tried
};

/// Tunes as `drawpoint tune` does, within the truth's grid, which is not empty. Throws what `tune_live` throws.
[[nodiscard]] TunedCase tune_case(const Case&, const Truth&, Rig&);

}   // namespace drawpoint::bench
