#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "diagnosis/rows/loader_rows.hpp"

namespace drawpoint {

/// Where the first of `values` are not yet like the rest: MSER-5, the truncation after which the standard error of the
/// mean of groups of five is smallest, among truncations of at most half of them. 0 … values.size() / 2. O(n).
[[nodiscard]] std::size_t mser5_truncation(std::span<const double> values);

/// Of `Ledger::steps`: the first that is not warm-up.
[[nodiscard]] std::size_t first_steady_step(const Ledger&, const LoaderRows&);

/// Of each step, whether it is of a pass's beginning: up to its first draw that brought a batch.
[[nodiscard]] std::vector<bool> first_of_pass(const Ledger&);

}   // namespace drawpoint
