#pragma once

#include <span>

/// Arithmetic that rounds in every step as NumPy does, so that a report computed here equals one computed there bit for
/// bit.
namespace drawpoint::statistics {

/// The sum of `values`, added in the order of NumPy's pairwise summation of contiguous doubles; 0 for none. Relative to
/// the sum of |x|, the rounding error grows with log n only. O(n), never allocates. Any thread.
[[nodiscard]] double sum(std::span<const double> values) noexcept;

/// The arithmetic mean; NaN for no values. O(n), never allocates. Any thread.
[[nodiscard]] double mean(std::span<const double> values) noexcept;

/// The population standard deviation (divided by n, not n - 1); NaN for no values. O(n) time and memory. Any thread.
[[nodiscard]] double population_std_dev(std::span<const double> values);

/// `value` rounded to a whole number, halves to the even neighbour. O(1). Any thread.
[[nodiscard]] double round_half_even(double value) noexcept;

/// The q-quantile of `values`, interpolated linearly between neighbours; NaN for no values. A q outside 0 … 1 counts as
/// 0 or 1; neither q nor a value may be NaN. O(n log n) time, O(n) memory; for several quantiles of the same values
/// sort once and use `quantile_of_sorted`. Any thread.
[[nodiscard]] double quantile(std::span<const double> values, double q);

/// The same for values in ascending order. O(1), never allocates. Any thread.
[[nodiscard]] double quantile_of_sorted(std::span<const double> sorted, double q) noexcept;

}   // namespace drawpoint::statistics
