#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

struct RaceOptions {
    double within = 0.02;          ///< rates this much below the best count as equally good; above 0, below 1
    double error = 0.05;           ///< probability of any wrong drop or acceptance in the race; above 0, below 1
    double least_spread = 0.002;   ///< lower bound for the noise of a log rate; less noise than this is chance
};

/// Races settings, given in the order of their cost, cheapest first, by their rates in rounds in which each ran once:
/// noise common to a round cancels in the ratio of two rates. A candidate is dropped once it is certainly worse than
/// another by more than `within`, and the cheapest one left is accepted once it is certainly within `within` of all
/// others left. One may look after each round: the confidence bounds hold for all rounds together if log rates are
/// normal with equal, unknown variance (a t-mixture; the noise is estimated from all candidates). They are infinite for
/// about the first two rounds. A candidate is its index, below `candidates`. Runs nothing itself. O(candidates²) per
/// round.
class Race {
public:
    /// Throws std::invalid_argument for 0 candidates or an option out of range.
    Race(std::size_t candidates, const RaceOptions& = {});

    /// Adds the rates of a round, one per candidate, in any unit; 0 or less: it did not run (dropped ones need not).
    /// Throws std::invalid_argument if their number is wrong.
    void add_round(std::span<const double> rates);

    /// Drops a candidate for another reason than its rate.
    void drop(std::size_t candidate) noexcept { dropped_[candidate] = true; }

    [[nodiscard]] bool dropped(std::size_t candidate) const noexcept { return dropped_[candidate]; }
    /// The cheapest candidate left, once it is accepted; also if it is the only one left.
    [[nodiscard]] std::optional<std::size_t> winner() const;
    /// The best guess so far: the cheapest candidate left whose mean is within `within` of the best mean. Absent if
    /// none is left.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }
    /// log rate(a) - log rate(b): the mean, as `median`, and its confidence bounds, over the rounds in which both ran;
    /// infinite bounds below two rounds.
    [[nodiscard]] Interval log_ratio(std::size_t a, std::size_t b) const;
    /// Noise of one log rate: its standard deviation after the means of its round and of its candidate are subtracted;
    /// `least_spread` before there are two rounds.
    [[nodiscard]] double spread() const;

private:
    struct Pair {
        double count = 0, mean = 0, squares = 0;   // by Welford's algorithm
    };
    struct Noise {
        double variance = 0;   // of a log rate, apart from its candidate's and its round's mean
        double freedom = 0;    // degrees of freedom of the estimate
    };
    [[nodiscard]] Noise noise() const;
    [[nodiscard]] bool is_within(std::size_t a, std::size_t b) const;

    RaceOptions options_;
    std::size_t candidates_, rounds_ = 0;
    std::vector<bool> dropped_;
    std::vector<std::size_t> ran_;   // number of rounds, by candidate
    std::vector<Pair> pairs_;        // [a * candidates + b], a < b
};

}   // namespace drawpoint
