#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/interleavings.hpp"

namespace drawpoint::model {

/// A scenario and its name.
struct Scenario {
    std::string_view name;
    std::function<void(Run&)> run;
};

/// A weaker order that no scenario can tell from the one in the code, and why the code has the stronger one.
struct Kept {
    std::string_view where;   ///< part of the source line
    std::string_view why;
};

/// Explores all scenarios, then each of them with each memory order used in a file whose name ends in `file` weakened
/// by one step, and reports what should not be: a violation; a weaker order that nothing found, unless `kept` has it;
/// an entry of `kept` that was not needed. Prints how many schedules that took.
void check_orders(std::string_view file, const std::vector<Scenario>&, const std::vector<Kept>& kept = {});

}   // namespace drawpoint::model
