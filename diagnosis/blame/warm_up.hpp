#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

/// How many of the first `values` differ from the rest, by MSER-5: the truncation that minimises the standard error of
/// the mean over groups of five, among truncations of at most half of the values. 0 … values.size() / 2. O(n).
[[nodiscard]] std::size_t mser5_truncation(std::span<const double> values);

/// Index into `Ledger::steps` of the first step after warm-up.
[[nodiscard]] std::size_t first_steady_step(const Ledger&, const LoaderRows&);

/// For each step, whether it belongs to the start of a pass: up to its first draw that brought a batch.
[[nodiscard]] std::vector<bool> first_of_pass(const Ledger&);

}   // namespace drawpoint
