#pragma once

#include <string>

#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

namespace drawpoint {

/// "wall time 1.20 s -> 1.50 s, +300 ms (1.250 times); steps 60 -> 60"
[[nodiscard]] std::string headline(const RunComparison&);
/// "+10 ms … +12 ms", or "".
[[nodiscard]] std::string interval_text(const WaterfallRow&);
/// What part of the whole difference the row is: "83 %", or "" if there is none.
[[nodiscard]] std::string share_text(const RunComparison&, const WaterfallRow&);

}   // namespace drawpoint
