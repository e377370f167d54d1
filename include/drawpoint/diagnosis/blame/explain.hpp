#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

/// One step's draw as a small timeline for a terminal, in UTF-8: a line for each sample of the drawn batch (at most the
/// 32 that ended last) and one for collating, on a common axis with the draw and the batch's timestamps; then the
/// pieces of the draw in nanoseconds, and a sentence that says what the loop waited for. `step` is a `StepRow::step`;
/// without one, the steady training step with the longest draw is taken, else the step with the longest draw of all.
/// `blame` must be of this ledger. Lines are at most as wide as asked for, and 60. Any thread. Throws
/// std::invalid_argument if the ledger does not have this step, or has none.
[[nodiscard]] std::string explain(const Ledger&, const Blame& blame, std::optional<std::uint32_t> step = std::nullopt,
                                  TextOptions = {.width = 100});

}   // namespace drawpoint
