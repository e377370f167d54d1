#pragma once

#include <string>
#include <vector>

#include "child.hpp"
#include "roster.hpp"

namespace drawpoint::bench {

/// How a contender's batches differ from drawpoint's: pictures in levels of 255 before normalising, rows by value.
struct Check {
    bool passed = false;
    std::string what;   ///< one line: what was compared, and what was found
    double max_difference = 0, mean_difference = 0;
};

/// Which batches of a pass to check: of pictures the first, middle and last; of items out of order all.
[[nodiscard]] std::vector<std::size_t> batches_to_check(const Workload&);

/// Compares the same batches of the same epoch.
[[nodiscard]] Check check_batches(const std::vector<BatchCopy>& ours, const std::vector<BatchCopy>& theirs,
                                  const Entry&);

}   // namespace drawpoint::bench
