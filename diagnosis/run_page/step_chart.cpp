#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include <fmt/format.h>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/blame/blame_parts.hpp"
#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_columns = 600, named_causes = 5, ticks = 61;
constexpr double left = 70, width = 880, top = 12, height = 240;

/// A kind of time and its part of each step, from the bottom of the picture on.
struct Piece {
    std::string name, style;
    std::vector<double> ns;   // by column: the sum over its steps
};

/// The columns of the chart: each stands for some steps that follow one another.
class StepColumns {
public:
    StepColumns(const Ledger& ledger, const Blame* blame)
        : ledger_{ledger}, count_{std::min(ledger.steps.size(), most_columns)} {
        for (std::size_t step = 0; step < ledger.steps.size(); ++step)
            add_batch(step);
        if (blame)
            add_causes(*blame);
        else
            for (std::size_t step = 0; step < ledger.steps.size(); ++step)
                add_draw_parts(step);
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// The first step of a column.
    [[nodiscard]] std::size_t first_of(std::size_t column) const noexcept {
        return column * ledger_.steps.size() / count_;
    }

    /// Draws first, the largest cause first; then the parts of batches, in their order.
    [[nodiscard]] std::vector<Piece> pieces() const {
        const auto total = [](const std::vector<double>& ns) {
            double sum = 0;
            for (const double one : ns)
                sum += one;
            return sum;
        };
        std::vector<Piece> pieces, draws;
        double all = 0;
        for (const auto& [name, ns] : draws_) {
            draws.push_back({name, "", ns});
            all += total(ns);
        }
        for (const auto& ns : actions_)
            all += ns.empty() ? 0 : total(ns);
        std::ranges::stable_sort(draws, [&](const Piece& a, const Piece& b) { return total(a.ns) > total(b.ns); });
        for (std::size_t i = named_causes + 1; i < draws.size(); ++i)
            for (std::size_t column = 0; column < count_; ++column)
                draws[named_causes].ns[column] += draws[i].ns[column];
        if (draws.size() > named_causes + 1) {
            draws.resize(named_causes + 1);
            draws.back().name = "others";
        }
        for (std::size_t i = 0; i < draws.size(); ++i) {
            draws[i].name = "draw: " + draws[i].name;
            draws[i].style = fmt::format("w{}", i);
            pieces.push_back(std::move(draws[i]));
        }
        for (std::size_t i = 0; i < actions_.size(); ++i)
            if (!actions_[i].empty())
                pieces.push_back(
                    {std::string{name_of(static_cast<Action>(i))}, fmt::format("k{}", style_of(i)), actions_[i]});
        std::erase_if(pieces, [&](const Piece& piece) { return total(piece.ns) < 0.002 * all; });
        return pieces;
    }

private:
    [[nodiscard]] std::size_t column_of(std::size_t step) const noexcept {
        return ((step + 1) * count_ - 1) / ledger_.steps.size();
    }

    static std::size_t style_of(std::size_t action) noexcept {
        constexpr std::array order{Action::forward,   Action::loss,    Action::backward,
                                   Action::opt_step,  Action::between, Action::callbacks,
                                   Action::zero_grad, Action::predict, Action::other};
        const auto found = std::ranges::find(order, static_cast<Action>(action));
        return static_cast<std::size_t>(found - order.begin());
    }

    void add(std::vector<double>& to, std::size_t step, std::int64_t ns) {
        to.resize(count_);
        to[column_of(step)] += static_cast<double>(ns);
    }

    void add_batch(std::size_t step) {
        const StepRow& row = ledger_.steps[step];
        for (const SpanRow& piece : ledger_.spans_of(row))
            if (const Action action = action_of_piece(ledger_, row, piece); action != Action::draw && piece.ns > 0)
                add(actions_[static_cast<std::size_t>(action)], step, piece.ns);
    }

    void add_draw_parts(std::size_t step) {
        const StepRow& row = ledger_.steps[step];
        for (const SpanRow& piece : ledger_.spans_of(row))
            if (action_of_piece(ledger_, row, piece) == Action::draw && piece.ns > 0) {
                const bool named =
                    piece.span == Span::starved || piece.span == Span::handoff || piece.span == Span::transfer;
                add(draws_[std::string{named ? name_of(piece.span) : name_of(Span::callbacks)}], step, piece.ns);
            }
    }

    void add_causes(const Blame& blame) {
        for (const DrawBlame& draw : blame.draws)
            for (const BlamePiece& piece : pieces_of(blame, draw))
                add(draws_[name_of(ledger_, draw, piece)], draw.step, piece.ns);
    }

    const Ledger& ledger_;
    std::size_t count_;
    std::map<std::string, std::vector<double>> draws_;
    std::array<std::vector<double>, action_count> actions_;
};

/// The part between two curves of steps, one value a column.
std::string area_between(std::span<const double> low, std::span<const double> high, double most) {
    const auto x = [&](std::size_t column) {
        return coordinate(1000 * static_cast<double>(column) / static_cast<double>(low.size()));
    };
    const auto y = [&](double value) { return coordinate(height * (1 - std::min(value / most, 1.0))); };
    std::string shape = fmt::format("M0 {}", y(high[0]));
    for (std::size_t i = 0; i < high.size(); ++i)
        shape += fmt::format("V{}H{}", y(high[i]), x(i + 1));
    for (std::size_t i = low.size(); i-- > 0;)
        shape += fmt::format("V{}H{}", y(low[i]), x(i));
    return shape + "Z";
}

}   // namespace

double round_step(double value) noexcept {
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    return value >= 5 * power ? 5 * power : value >= 2 * power ? 2 * power : power;
}

std::optional<Svg> step_chart(const Ledger& ledger, const Blame* blame) {
    if (ledger.steps.empty())
        return std::nullopt;
    const StepColumns columns{ledger, blame};
    const std::vector<Piece> pieces = columns.pieces();
    const auto steps_in = [&](std::size_t column) {
        const std::size_t end = column + 1 < columns.size() ? columns.first_of(column + 1) : ledger.steps.size();
        return static_cast<double>(end - columns.first_of(column));
    };
    // By piece: the mean time of a column's steps in all pieces up to it.
    std::vector<std::vector<double>> sums{std::vector<double>(columns.size(), 0)};
    for (const Piece& piece : pieces) {
        sums.push_back(sums.back());
        for (std::size_t i = 0; i < columns.size(); ++i)
            sums.back()[i] += piece.ns[i] / steps_in(i);
    }
    std::vector<double> totals = sums.back();
    std::ranges::sort(totals);
    // A few steps that take very long are cut off, so that the others can be seen.
    const double usual = totals[(totals.size() - 1) * 99 / 100];
    const double most = std::max(std::min(totals.back(), 1.5 * usual), 1.0);
    const std::size_t cut =
        static_cast<std::size_t>(std::ranges::count_if(totals, [&](double ns) { return ns > most; }));

    Svg svg{960, 330, fmt::format("The time of {} steps, as stacked pieces: {}.", ledger.steps.size(), [&] {
                std::string names;
                for (const Piece& piece : pieces)
                    names += (names.empty() ? "" : ", ") + piece.name;
                return names;
            }())};
    const double grid = round_step(most / 3);
    for (double value = 0; value <= most; value += grid) {
        const double y = top + height * (1 - value / most);
        svg.line(left, y, left + width, y, "grid");
        svg.text(left - 6, y + 4, value == 0 ? "0" : format_duration(value / 1e9), "end");
    }
    svg.begin_plot(left, top, width, height);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::string shape = area_between(sums[i], sums[i + 1], most);
        svg.path(shape, pieces[i].style, pieces[i].name);
        if (pieces[i].style.starts_with('w'))
            svg.path(shape, "_" + pieces[i].style, pieces[i].name);
    }
    svg.end_plot();
    if (cut > 0)
        svg.text(left + width, top + 12, fmt::format("{} higher than {}", cut, format_duration(most / 1e9)),
                 "end small");
    svg.line(left, top + height, left + width, top + height, "axis");
    const std::int64_t start_ns = ledger.steps.front().draw_begin_ns;
    for (std::size_t i = 0; i < ticks; ++i) {
        const std::size_t step = i * (ledger.steps.size() - 1) / (ticks - 1);
        if (i > 0 && step == (i - 1) * (ledger.steps.size() - 1) / (ticks - 1))
            continue;
        const double at = 1000 * static_cast<double>(step) / static_cast<double>(ledger.steps.size());
        const StepRow& row = ledger.steps[step];
        svg.tick(left + width * at / 1000, top + height + 18,
                 fmt::format("step {}, {}", row.step,
                             format_duration(static_cast<double>(length_ns(start_ns, row.draw_begin_ns)) / 1e9)),
                 i % 10 == 0 && i + 1 < ticks ? "" : "fine", at);
    }
    std::vector<std::pair<std::string, std::string>> meanings;
    for (const Piece& piece : pieces)
        meanings.emplace_back(piece.style, piece.name);
    svg.legend(left, top + height + 44, meanings);
    return svg;
}

}   // namespace drawpoint
