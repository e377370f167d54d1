#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <drawpoint/diagnosis/blame/blame.hpp>

namespace drawpoint {

/// One step's draw as a small timeline for a terminal, UTF-8 without colour: a line for each sample of the batch drawn (the
/// 32 that ended last) and for its collate, on one axis with the draw and the batch's stamps; then the pieces of the draw
/// in nanoseconds, and a sentence that says what the loop waited for. `step`: a `StepRow::step`; none: the steady step
/// with the longest draw, else the longest of all. `blame`: of this ledger. At most `width` columns, 60 or more, unless a
/// name is longer. Any thread. Throws std::invalid_argument where the ledger has no such step, or none.
[[nodiscard]] std::string explain(const Ledger&, const Blame& blame, std::optional<std::uint32_t> step = std::nullopt,
                                  std::size_t width = 100);

}   // namespace drawpoint
