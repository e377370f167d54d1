#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The kernel's unit for `HostRow::busy_ns` and `steal_ns`.
inline constexpr double accounting_tick_ns = 1e7;

/// How fast `N` counters grew between two host rows that both have all of them.
template <std::size_t N>
struct HostPiece {
    double ns = 0;                   ///< the part within the time range
    double from_ns = 0, to_ns = 0;   ///< the whole piece
    std::array<double, N> rates{};   ///< per nanosecond
};

template <std::size_t N>
using HostColumns = std::array<std::int64_t HostRow::*, N>;

/// A counter's value; of children, that there are none counts as 0.
[[nodiscard]] inline std::int64_t value_of(const HostRow& row, std::int64_t HostRow::* column) noexcept {
    return column == &HostRow::children_cpu_ns && row.children_cpu_ns == no_stamp ? 0 : row.*column;
}

/// The pieces that overlap [from_ns, to_ns). In double, because the rows may come from a damaged file.
template <std::size_t N>
std::vector<HostPiece<N>> host_pieces(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns,
                                      const HostColumns<N>& columns) {
    std::vector<HostPiece<N>> pieces;
    const HostRow* before = nullptr;
    for (const HostRow& row : ledger.host) {
        if (std::ranges::any_of(columns, [&](auto column) { return value_of(row, column) == no_stamp; }))
            continue;
        if (before != nullptr) {
            HostPiece<N> piece{.from_ns = static_cast<double>(before->at_ns), .to_ns = static_cast<double>(row.at_ns)};
            const double all_ns = piece.to_ns - piece.from_ns;
            piece.ns = std::min(piece.to_ns, static_cast<double>(to_ns)) -
                       std::max(piece.from_ns, static_cast<double>(from_ns));
            bool forward = all_ns > 0 && piece.ns > 0;
            for (std::size_t i = 0; i < N; ++i) {
                const double growth =
                    static_cast<double>(value_of(row, columns[i])) - static_cast<double>(value_of(*before, columns[i]));
                piece.rates[i] = growth / all_ns;
                forward = forward && growth >= 0;
            }
            if (forward)
                pieces.push_back(piece);
        }
        before = &row;
    }
    return pieces;
}

/// The mean of `rate` over the pieces' time; 0 if there are none.
template <class Pieces, class Rate>
double mean_rate(const Pieces& pieces, Rate rate) {
    double sum = 0, ns = 0;
    for (const auto& piece : pieces) {
        sum += rate(piece) * piece.ns;
        ns += piece.ns;
    }
    return ns > 0 ? sum / ns : 0;
}

}   // namespace drawpoint
