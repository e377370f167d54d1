#include <drawpoint/bench/experiment/gate.hpp>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint::bench {

Gate::Gate(std::size_t rows, const GateOptions& options) : options_{options} {
    const auto check = [](bool good, const char* what, double value) {
        if (!good)
            throw std::invalid_argument{what + (", got " + std::to_string(value))};
    };
    check(rows != 0, "a gate needs a row", 0);
    check(options.error > 0 && options.error < 1, "error must be between 0 and 1", options.error);
    check(options.at_least >= 0, "at_least must be 0 or more", options.at_least);
    check(options.at_most > options.at_least && options.at_most < 1, "at_most must be between at_least and 1",
          options.at_most);
    rows_.assign(rows, {.equal = SymmetryTest{0}, .slower_by_most = SymmetryTest{std::log1p(options.at_most)}});
}

GateVerdict Gate::add_round(std::span<const double> log_ratios) {
    if (log_ratios.size() != rows_.size())
        throw std::invalid_argument{"a round of a gate with " + std::to_string(rows_.size()) + " rows got " +
                                    std::to_string(log_ratios.size())};
    if (verdict_ != GateVerdict::undecided)
        return verdict_;
    ++rounds_;
    // One row is enough to close, so the rows share the error; to open it takes all of them, so each may have it whole.
    const double to_open = -std::log(options_.error), to_close = to_open + std::log(static_cast<double>(rows_.size()));
    bool all_open = true;
    double most = std::log1p(options_.at_least);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        Row& row = rows_[i];
        row.equal.add(log_ratios[i]);
        row.slower_by_most.add(log_ratios[i]);
        row.log_ratios.push_back(log_ratios[i]);
        all_open = all_open && row.slower_by_most.below() >= to_open;
        if (row.equal.above() < to_close)
            continue;
        if (const double median = statistics::quantile(row.log_ratios, 0.5); median >= most) {
            most = median;
            slowest_ = i;
            verdict_ = GateVerdict::slower;
        }
    }
    if (verdict_ == GateVerdict::undecided && all_open)
        verdict_ = GateVerdict::not_slower;
    return verdict_;
}

Interval Gate::log_ratio(std::size_t row) const {
    const std::vector<double>& values = rows_.at(row).log_ratios;
    Interval bounds = centre_of(values, options_.error);
    bounds.low = centre_of(values, options_.error / static_cast<double>(rows_.size())).low;
    return bounds;
}

std::size_t least_rounds(std::size_t rows, const GateOptions& options) {
    Gate gate{rows, options};
    const std::vector<double> much_slower(rows, options.at_most);
    while (gate.add_round(much_slower) == GateVerdict::undecided) {
    }
    return gate.rounds();
}

std::vector<GatePower> gate_power(const std::vector<std::vector<double>>& rounds, std::span<const double> slower_by,
                                  std::size_t most_rounds, const GateOptions& options, std::size_t gates,
                                  std::uint64_t seed) {
    constexpr std::size_t block = 5;   // what disturbs a round often disturbs the next one
    if (rounds.size() < 2 * block)
        throw std::invalid_argument{"the power of a gate needs 10 rounds, got " + std::to_string(rounds.size())};
    std::vector<double> planted{0};
    planted.insert(planted.end(), slower_by.begin(), slower_by.end());
    std::mt19937_64 random{seed};
    std::vector<GatePower> all;
    for (const double slower : planted) {
        std::size_t closed = 0, opened = 0;
        std::vector<double> decided, round;
        for (std::size_t g = 0; g < gates; ++g) {
            Gate gate{rounds.front().size(), options};
            std::size_t next = 0;
            double sign = 1;
            for (std::size_t r = 0; r < most_rounds && gate.verdict() == GateVerdict::undecided; ++r) {
                if (r % block == 0) {
                    next = random() % rounds.size();
                    sign = random() % 2 == 0 ? 1 : -1;
                }
                round = rounds[next++ % rounds.size()];
                for (double& log_ratio : round)
                    log_ratio = sign * log_ratio + std::log1p(slower);
                gate.add_round(round);
            }
            closed += gate.verdict() == GateVerdict::slower;
            opened += gate.verdict() == GateVerdict::not_slower;
            if (gate.verdict() != GateVerdict::undecided)
                decided.push_back(static_cast<double>(gate.rounds()));
        }
        const auto share = [&](std::size_t count) { return static_cast<double>(count) / static_cast<double>(gates); };
        all.push_back({.slower_by = slower,
                       .closed = share(closed),
                       .opened = share(opened),
                       .median_rounds = statistics::quantile(decided, 0.5)});
    }
    return all;
}

}   // namespace drawpoint::bench
