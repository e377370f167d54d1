#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

/// A line of terminal cells that represents [from, to).
class TimeAxis {
public:
    TimeAxis(std::int64_t from_ns, std::int64_t to_ns, std::size_t cells)
        : from_ns_{from_ns}, length_ns_{std::max<std::int64_t>(length_ns(from_ns, to_ns), 1)}, cells_(cells, " ") {}

    /// Paints at least one cell, unless [from, to) is empty or outside. Later signs replace earlier ones.
    void paint(std::int64_t from_ns, std::int64_t to_ns, std::string_view sign) {
        if (to_ns <= from_ns || to_ns <= from_ns_ || length_ns(from_ns_, from_ns) >= length_ns_)
            return;
        const std::size_t first = cell(from_ns);
        std::fill(cells_.begin() + static_cast<std::ptrdiff_t>(first),
                  cells_.begin() + static_cast<std::ptrdiff_t>(std::max(cell(to_ns - 1), first)) + 1, sign);
    }
    /// Writes into the cell of that time, or into the nearest empty one to its right, else to its left.
    void mark(std::int64_t ns, std::string_view sign) {
        const auto at = cells_.begin() + static_cast<std::ptrdiff_t>(cell(ns));
        auto empty = std::find(at, cells_.end(), " ");
        while (empty == cells_.end() || (*empty != " " && empty != cells_.begin()))
            --empty;
        *empty = sign;
    }
    /// Returns the line and clears the axis.
    [[nodiscard]] std::string take() {
        std::string line;
        for (std::string& sign : cells_) {
            line += sign;
            sign = " ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return line;
    }

private:
    [[nodiscard]] std::size_t cell(std::int64_t ns) const noexcept {
        const double place = static_cast<double>(length_ns(from_ns_, ns)) * static_cast<double>(cells_.size());
        return std::min(static_cast<std::size_t>(place / static_cast<double>(length_ns_)), cells_.size() - 1);
    }

    std::int64_t from_ns_, length_ns_;
    std::vector<std::string> cells_;
};

}   // namespace drawpoint
