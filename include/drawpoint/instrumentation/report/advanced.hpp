#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// How many lines of a table to print: a count, or a share 0 … 1 of its lines.
using LineRestriction = std::variant<std::int64_t, double>;

struct AdvancedOptions {
    LineRestriction line_count_restriction = 1.0;
    std::string_view stage;    ///< shown in the title in capitals, e.g. "fit"; empty: not shown
    std::optional<int> rank;   ///< shown in the head of each block; nullopt: not shown
};
static_assert(std::is_trivially_destructible_v<AdvancedOptions>);

/// One function within one action, from its samples.
struct FunctionProfile {
    /// "file.cpp:12(function)" with the line of its declaration and without directories; "libc.so.6(memcpy)" if the
    /// line is unknown, "{memcpy}" if the file is.
    std::string place;
    std::uint64_t calls = 0;             ///< occurrences on sampled stacks, each level of a recursion counted
    std::uint64_t primitive_calls = 0;   ///< samples in which it occurs
    std::int64_t total_ns = 0;           ///< time as the innermost function
    std::int64_t cumulative_ns = 0;      ///< time anywhere on the stack, counted once per sample
};

/// One action's profile: functions by cumulative time, longest first.
struct ActionProfile {
    std::string action;   ///< from `Attribution::action_of`; "(no action)" if unknown
    std::uint64_t samples = 0;
    std::int64_t ns = 0;
    std::vector<FunctionProfile> functions;
};

/// Profiles of all actions from their stack samples, in the order of the actions' first samples. A sample counts for
/// one action only: the innermost region open at that time, else the loop's action, else the stage. O(samples ·
/// depth).
[[nodiscard]] std::vector<ActionProfile> advanced_profiles(const Ledger&);

/// Lightning's advanced report, from samples: a block per action with the columns of Python's profiler. `ncalls` counts
/// samples (for a recursive function "occurrences/samples"); times are samples times the sampling period. The sampler's
/// own cost and achieved rate follow the actions. Throws std::invalid_argument for a negative count or a share outside
/// 0 … 1.
[[nodiscard]] std::string advanced_report(const Ledger&, const AdvancedOptions& = {});

}   // namespace drawpoint
