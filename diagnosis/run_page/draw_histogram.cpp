#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr double left = 70, width = 870, top = 48, height = 170;

}   // namespace

std::optional<Svg> draw_histogram(const Summary& summary) {
    const auto row = std::ranges::find_if(summary.rows, [&](const SummaryRow& one) {
        return summary.draws && one.phase == summary.draws->phase && one.action == Action::draw;
    });
    if (row == summary.rows.end())
        return std::nullopt;
    const Summary::Draws& draws = *summary.draws;
    const auto& counts = draws.counts;
    const double most = static_cast<double>(std::ranges::max(counts)),
                 bin_width = width / static_cast<double>(counts.size());

    Svg svg{960, 256,
            fmt::format("How long {} draws of the phase {} took: half took at most {}, 99 % at most {}.", draws.all(),
                        row->phase, format_duration(row->median_s), format_duration(row->p99_s))};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double high = height * static_cast<double>(counts[i]) / most;
        svg.rect(left + bin_width * static_cast<double>(i) + 1, top + height - high, bin_width - 2, high, "w0",
                 fmt::format("{} draws from {} to {}", counts[i], format_duration(draws.begin_s(i)),
                             format_duration(draws.begin_s(i + 1))));
    }
    svg.line(left, top + height, left + width, top + height, "axis");
    svg.text(left - 6, top + 10, format_count(static_cast<std::int64_t>(most)), "end");
    svg.text(left - 6, top + height, "0", "end");
    const auto place = [&](double s) {
        const double bins =
            std::log10(std::max(s / std::max(draws.begin_s(0), 1e-7), 1.0)) * Summary::Draws::bins_a_decade;
        return left + width * std::min(bins / static_cast<double>(counts.size()), 1.0);
    };
    const std::size_t apart = counts.size() / 9 + 1;
    for (std::size_t i = 0; i <= counts.size(); i += apart)
        svg.text(left + bin_width * static_cast<double>(i), top + height + 18, format_duration(draws.begin_s(i)),
                 "mid");
    int level = 0;
    for (const auto& [name, s] : {std::pair{"median", row->median_s}, {"p90", row->p90_s}, {"p99", row->p99_s}}) {
        const double x = place(s);
        svg.line(x, top - 34 + 14 * level, x, top + height, "mark");
        svg.text(x > left + width - 130 ? x - 4 : x + 4, top - 30 + 14 * level++,
                 fmt::format("{} {}", name, format_duration(s)), x > left + width - 130 ? "end" : "");
    }
    return svg;
}

}   // namespace drawpoint
