#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr double left = 70, width = 870, top = 48, height = 170;
constexpr int bins_a_decade = 6;
constexpr double shortest_ns = 100;   // all shorter draws are in the first bin

int bin_of(double ns) noexcept {
    return static_cast<int>(std::floor(std::log10(std::max(ns, shortest_ns)) * bins_a_decade));
}
double begin_of(double bin) noexcept { return std::pow(10.0, bin / bins_a_decade); }

}   // namespace

std::optional<Svg> draw_histogram(const Ledger& ledger, const Summary& summary) {
    const auto row = std::ranges::find(summary.rows, Action::draw, &SummaryRow::action);
    if (row == summary.rows.end())
        return std::nullopt;
    std::vector<double> draws;
    for (const StepRow& step : ledger.steps)
        if (name_of(step.phase) == row->phase && step.size > 0 && step.status != StepStatus::failed)
            draws.push_back(static_cast<double>(step.draw_ns));
    if (draws.empty())
        return std::nullopt;
    const auto [shortest, longest] = std::ranges::minmax(draws);
    const int first = bin_of(shortest), last = bin_of(longest);
    std::vector<std::size_t> counts(static_cast<std::size_t>(last - first) + 1, 0);
    for (const double ns : draws)
        ++counts[static_cast<std::size_t>(bin_of(ns) - first)];
    const double most = static_cast<double>(std::ranges::max(counts)),
                 bin_width = width / static_cast<double>(counts.size());

    Svg svg{960, 256,
            fmt::format("How long {} draws of the phase {} took: half took at most {}, 99 % at most {}.", draws.size(),
                        row->phase, format_duration(row->median_s), format_duration(row->p99_s))};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double high = height * static_cast<double>(counts[i]) / most;
        const double from = begin_of(first + static_cast<double>(i));
        svg.rect(left + bin_width * static_cast<double>(i) + 1, top + height - high, bin_width - 2, high, "w0",
                 fmt::format("{} draws from {} to {}", counts[i], format_duration(from / 1e9),
                             format_duration(begin_of(first + static_cast<double>(i) + 1) / 1e9)));
    }
    svg.line(left, top + height, left + width, top + height, "axis");
    svg.text(left - 6, top + 10, format_count(static_cast<std::int64_t>(most)), "end");
    svg.text(left - 6, top + height, "0", "end");
    const auto place = [&](double ns) {
        return left + width * std::clamp((std::log10(std::max(ns, shortest_ns)) * bins_a_decade - first) /
                                             static_cast<double>(counts.size()),
                                         0.0, 1.0);
    };
    const std::size_t apart = counts.size() / 9 + 1;
    for (std::size_t i = 0; i <= counts.size(); i += apart)
        svg.text(left + bin_width * static_cast<double>(i), top + height + 18,
                 format_duration(begin_of(first + static_cast<double>(i)) / 1e9), "mid");
    int level = 0;
    for (const auto& [name, s] : {std::pair{"median", row->median_s}, {"p90", row->p90_s}, {"p99", row->p99_s}}) {
        const double x = place(s * 1e9);
        svg.line(x, top - 34 + 14 * level, x, top + height, "mark");
        svg.text(x > left + width - 130 ? x - 4 : x + 4, top - 30 + 14 * level++,
                 fmt::format("{} {}", name, format_duration(s)), x > left + width - 130 ? "end" : "");
    }
    return svg;
}

}   // namespace drawpoint
