#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/paired/symmetry_test.hpp>

namespace drawpoint::bench {

struct GateOptions {
    double at_least = 0.01;   ///< the gate closes for a contender slower by this share or more
    double at_most = 0.02;    ///< it opens for one that is surely not slower by this share; above `at_least`, below 1
    double error = 0.01;      ///< of closing for a contender that is not slower, over all rows; above 0, below 1
};

enum class GateVerdict : std::uint8_t { undecided, slower, not_slower };

/// Decides, round by round, whether something new is slower than what it is to replace, by one or more rows. It is
/// `slower` once one row is surely slower and its median so by `at_least`; `not_slower` once every row is surely not
/// slower by `at_most`, each with `error` (if the noise of its ratio is symmetric). One may look after each round, so
/// it stops as soon as it knows.
class Gate {
public:
    /// Throws std::invalid_argument for 0 rows or an option out of range.
    Gate(std::size_t rows, const GateOptions& = {});

    /// Adds log(new / base) of each row. Once there is a verdict it stays.
    GateVerdict add_round(std::span<const double> log_ratios);

    [[nodiscard]] GateVerdict verdict() const noexcept { return verdict_; }
    [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }
    /// The row that closed the gate, the one whose median is the largest; 0 unless the verdict is `slower`.
    [[nodiscard]] std::size_t slowest() const noexcept { return slowest_; }
    /// log(new / base) of a row: median, and bounds that each hold with the error of the verdict they are for.
    [[nodiscard]] Interval log_ratio(std::size_t row) const;

private:
    struct Row {
        SymmetryTest equal, slower_by_most;
        std::vector<double> log_ratios;
    };
    GateOptions options_;
    std::vector<Row> rows_;
    GateVerdict verdict_ = GateVerdict::undecided;
    std::size_t rounds_ = 0, slowest_ = 0;
};

/// The number of rounds before which no gate with so many rows can close, whatever it is given.
[[nodiscard]] std::size_t least_rounds(std::size_t rows, const GateOptions&);

/// How a gate does on recorded rounds of two contenders that are the same.
struct GatePower {
    double slower_by = 0;       ///< what was planted
    double closed = 0;          ///< share of the gates with verdict `slower`; if nothing was planted, false alarms
    double opened = 0;          ///< … `not_slower`
    double median_rounds = 0;   ///< until the verdict, of those that had one; NaN: none had
};

/// Runs `gates` gates of up to `most_rounds` rounds drawn from `rounds` ([round][row], log ratios of a contender to
/// itself) in blocks of neighbours, of which half have the two sides exchanged: with nothing planted, and with each of
/// `slower_by` added to all rows. Throws as Gate, and for less than 10 rounds.
[[nodiscard]] std::vector<GatePower> gate_power(const std::vector<std::vector<double>>& rounds,
                                                std::span<const double> slower_by, std::size_t most_rounds,
                                                const GateOptions& = {}, std::size_t gates = 1000,
                                                std::uint64_t seed = 1);

}   // namespace drawpoint::bench
