#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// A slice inside a step, or beside it, for the eye.
struct StepSlice {
    enum class Where : std::uint8_t { draw, batch, after } where{};
    std::string_view name;
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// Fills `slices` with the actions and pieces of a step, in order of time, without those of no length: the pieces of
/// its draw, the actions of its batch by `action_spans`, callbacks in none of them, and `between`.
void find_step_slices(const StepRow&, std::span<const SpanRow>, std::vector<StepSlice>& slices);

/// Keeps the `most` longest.
void keep_longest(std::vector<StepSlice>& slices, std::size_t most);

}   // namespace drawpoint
