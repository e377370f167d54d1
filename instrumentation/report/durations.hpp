#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "instrumentation/ledger/folding.hpp"

namespace drawpoint {

[[nodiscard]] inline double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }

[[nodiscard]] inline std::optional<double> ratio(double part, double whole) noexcept {
    return whole > 0 ? std::optional{part / whole} : std::nullopt;
}

/// Collected durations of one action or stage. Their sum is an exact integer; the statistics are computed from doubles,
/// which hold the nanoseconds exactly.
struct Durations {
    std::vector<double> ns;
    std::int64_t total_ns = 0;
    std::vector<Share> runs;   // equal durations of samples made together
    std::uint64_t in_runs = 0;
    DurationHistogram folded;   // durations that the ledger no longer keeps one by one

    [[nodiscard]] std::size_t calls() const noexcept { return ns.size() + in_runs + folded.calls(); }
    void add(std::int64_t duration_ns) {
        ns.push_back(static_cast<double>(duration_ns));
        total_ns += duration_ns;
    }
    void add(std::int64_t duration_ns, std::uint32_t samples) {
        if (samples == 1)
            return add(duration_ns);
        for (const Share& share : shares_of(duration_ns, samples))
            if (share.calls > 0) {
                runs.push_back(share);
                in_runs += share.calls;
            }
        total_ns += duration_ns;
    }

    /// `statistics::quantile_of_sorted` of all single durations. Requires `ns` and `runs` as describe() leaves them.
    [[nodiscard]] double quantile(double q) const {
        if (runs.empty())
            return statistics::quantile_of_sorted(ns, q);
        const double place = static_cast<double>(in_runs - 1) * q;
        const auto below = static_cast<std::uint64_t>(place);
        const auto ranked = [this](std::uint64_t rank) {
            auto at = runs.begin();
            for (; rank >= at->calls; ++at)
                rank -= at->calls;
            return static_cast<double>(at->ns);
        };
        const double low = ranked(below), high = ranked(std::min(below + 1, in_runs - 1));
        return low + (high - low) * (place - std::floor(place));
    }

    /// Fills in the members that all kinds of rows have. Call once: sorts the durations and merges the folded ones.
    template <class Row>
    void describe(Row& row) {
        row.calls = calls();
        total_ns += folded.total_ns();
        row.total_s = seconds(total_ns);
        if (row.calls == 0)
            return;
        row.mean_s = static_cast<double>(total_ns) / static_cast<double>(row.calls) / 1e9;
        if (folded.calls() > 0) {
            for (const double duration : ns)
                folded.add(static_cast<std::int64_t>(duration));
            for (const Share& share : runs)
                folded.add(share.ns, share.calls);
            if constexpr (requires { row.std_s; })
                row.std_s = folded.std_dev_ns() / 1e9;
            row.median_s = folded.quantile_ns(0.5) / 1e9;
            row.p90_s = folded.quantile_ns(0.9) / 1e9;
            row.p99_s = folded.quantile_ns(0.99) / 1e9;
            return;
        }
        if constexpr (requires { row.std_s; })
            row.std_s = statistics::population_std_dev(ns) / 1e9;
        if (runs.empty()) {
            std::ranges::sort(ns);
        } else {
            for (const double duration : ns)
                runs.push_back({static_cast<std::int64_t>(duration), 1});
            in_runs += ns.size();
            ns.clear();
            std::ranges::sort(runs, {}, &Share::ns);
        }
        row.median_s = quantile(0.5) / 1e9;
        row.p90_s = quantile(0.9) / 1e9;
        row.p99_s = quantile(0.99) / 1e9;
    }
};

}   // namespace drawpoint
