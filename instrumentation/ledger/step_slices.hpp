#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// A slice that a trace shows inside a step or after it.
struct StepSlice {
    enum class Where : std::uint8_t { draw, batch, after } where{};
    std::string_view name;
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// Fills `slices`, in order of time, with what is longer than 0 of a step's parts: the pieces of its draw, the actions
/// of its batch (`action_spans`), callbacks outside of these, and `between`.
void find_step_slices(const StepRow&, std::span<const SpanRow>, std::vector<StepSlice>& slices);

/// Keeps the `most` longest.
void keep_longest(std::vector<StepSlice>& slices, std::size_t most);

}   // namespace drawpoint
