#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

#include "diagnosis/page/svg.hpp"

namespace drawpoint {

// The pictures of a run. Each is drawn from rows of a sorted ledger; where it has none of the kind, there is no
// picture.

/// The mean time of the steps over the run, as stacked pieces: what draws waited for (without `blame`, the parts of
/// draws), the parts of batches, and what is between.
[[nodiscard]] std::optional<Svg> step_chart(const Ledger&, const Blame* blame);

/// How many training draws (without any, validation draws) took how long, with the percentiles of the summary.
[[nodiscard]] std::optional<Svg> draw_histogram(const Summary&);

/// What each worker did over the run, and how many batches were ready.
[[nodiscard]] std::optional<Svg> worker_chart(const Ledger&, const LoaderRows&);

/// One draw and the samples of its batch: the picture of what `explain` prints.
[[nodiscard]] Svg draw_picture(const Ledger&, const LoaderRows&, const DrawBlame&);

/// What draws waited for, one bar each. `rows` are not empty.
[[nodiscard]] Svg blame_chart(const std::vector<BlameRow>& rows);

/// Call stacks, or the pieces of the loop's time where no stack was sampled.
[[nodiscard]] std::optional<Svg> stack_flame(const Ledger&);
/// Operators by their callers, over all threads of the host.
[[nodiscard]] std::optional<Svg> operator_flame(const Ledger&);

/// The largest of 1, 2 and 5 times powers of ten that is at most `value`; value > 0.
[[nodiscard]] double round_step(double value) noexcept;
/// A place in a plot for each time between two.
struct PlotScale {
    std::int64_t from_ns = 0, to_ns = 0;
    double left = 0, width = 0;
    [[nodiscard]] double at(std::int64_t ns) const noexcept {
        return left + width * std::min(static_cast<double>(length_ns(from_ns, ns)) /
                                           static_cast<double>(std::max<std::int64_t>(length_ns(from_ns, to_ns), 1)),
                                       1.0);
    }
};

}   // namespace drawpoint
