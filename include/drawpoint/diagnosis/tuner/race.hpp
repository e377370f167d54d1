#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

struct RaceOptions {
    double within = 0.02;          ///< of the best rate: as good as the best, 0 … 1
    double error = 0.05;           ///< chance of any wrong drop or acceptance
    double least_spread = 0.002;   ///< of a log rate from round to round: what is steadier is luck
};

/// Races settings, the cheapest first, by their rates in rounds in which each ran once: a round's common luck cancels in
/// the ratio of two. A candidate is dropped once it is sure to be worse than another by more than `within`, and accepted
/// once it is sure to be within that of every other left. One may look after each round: the bounds hold at all of them
/// together where log rates are normal and equally noisy, however noisy (a t-mixture, the noise estimated from all
/// candidates). They are infinite for the first two rounds or so. Pure. O(candidates²) a round.
class Race {
public:
    Race(std::size_t candidates, const RaceOptions& = {});

    /// The rates of a round, one a candidate; 0 or less: it did not run (dropped ones need not).
    void add_round(std::span<const double> rates);

    /// For another reason than its rate.
    void drop(std::size_t candidate) noexcept { dropped_[candidate] = true; }

    [[nodiscard]] bool dropped(std::size_t candidate) const noexcept { return dropped_[candidate]; }
    /// The cheapest candidate left, once it is accepted.
    [[nodiscard]] std::optional<std::size_t> winner() const;
    /// The best guess without certainty: the cheapest one left whose mean is within `within` of the best mean; absent:
    /// none is left.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }
    /// Of log rate(a) - log rate(b), over the rounds in which both ran; infinite before the first.
    [[nodiscard]] Interval log_ratio(std::size_t a, std::size_t b) const;
    /// Standard deviation of one log rate, beside what its round and its candidate have in common; the least before
    /// there are two rounds.
    [[nodiscard]] double spread() const;

private:
    struct Pair {
        double count = 0, mean = 0, squares = 0;   // Welford's
    };
    struct Noise {
        double variance = 0;   // of a log rate beside its candidate's and its round's mean
        double freedom = 0;    // degrees of, that the estimate has
    };
    [[nodiscard]] Noise noise() const;
    [[nodiscard]] bool is_within(std::size_t a, std::size_t b) const;

    RaceOptions options_;
    std::size_t candidates_, rounds_ = 0;
    std::vector<bool> dropped_;
    std::vector<std::size_t> ran_;   // rounds, by candidate
    std::vector<Pair> pairs_;        // [a * candidates + b], a < b
};

}   // namespace drawpoint
