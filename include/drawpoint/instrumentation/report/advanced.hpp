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
    std::string_view stage;    ///< of the title, in capitals: "fit"; empty: a title without
    std::optional<int> rank;   ///< named in each head; nullopt: not named
};
static_assert(std::is_trivially_destructible_v<AdvancedOptions>);

/// One function within one action, from its samples.
struct FunctionProfile {
    std::string place;         ///< "file.cpp:12(function)", directories stripped; "libc.so.6(memcpy)" without a line
    std::uint64_t calls = 0;   ///< times it stood on a sampled stack, recursion counted
    std::uint64_t primitive_calls = 0;   ///< samples it stood in
    std::int64_t total_ns = 0;           ///< as the innermost
    std::int64_t cumulative_ns = 0;      ///< anywhere on the stack, once a sample
};

/// One action's profile: functions by cumulative time, longest first.
struct ActionProfile {
    std::string action;   ///< as `Attribution::action_of`; "(no action)" where nothing is known
    std::uint64_t samples = 0;
    std::int64_t ns = 0;
    std::vector<FunctionProfile> functions;
};

/// The stack samples of every action, in the order of the actions' first samples. A sample counts for the innermost region (else
/// loop action, else stage) open then, and for it alone: an outer action goes on when an inner one ends. O(samples · depth).
[[nodiscard]] std::vector<ActionProfile> advanced_profiles(const Ledger&);

/// Lightning's advanced report in sampled terms: a block per action with Python's profile columns. `ncalls` counts samples (with recursion
/// "on stacks/samples"), times are samples times the sampling period. After the actions stands what the sampler itself cost
/// and the rate it obtained. Throws std::invalid_argument for a negative count or a share outside 0 … 1.
[[nodiscard]] std::string advanced_report(const Ledger&, const AdvancedOptions& = {});

}   // namespace drawpoint
