#pragma once

#include <string>
#include <vector>

#include "child.hpp"
#include "roster.hpp"

namespace drawpoint::bench {

/// How a contender's batches differ from drawpoint's, in levels of 255 before normalising (pictures) or plainly (rows).
struct Check {
    bool passed = false;
    std::string what;   ///< what was compared and found, one line
    double max_difference = 0, mean_difference = 0;
};

/// Which batches of a pass a check looks at: of pictures the first, one in the middle, the last; of items out of order all.
[[nodiscard]] std::vector<std::size_t> batches_to_check(const Workload&);

/// Compares the same batches of the same epoch.
[[nodiscard]] Check compare(const std::vector<BatchCopy>& ours, const std::vector<BatchCopy>& theirs, const Entry&);

}   // namespace drawpoint::bench
