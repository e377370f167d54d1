#include <drawpoint/diagnosis/tuner/race.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace drawpoint {

namespace {

// Precision of the prior belief in a difference, whose standard deviation is 1 / sqrt(precision) in units of the noise.
// More precision finds small differences sooner, less finds large ones sooner.
constexpr double precision = 0.3;

}   // namespace

Race::Race(std::size_t candidates, const RaceOptions& options)
    : options_{options},
      candidates_{candidates},
      dropped_(candidates),
      ran_(candidates),
      pairs_(candidates * candidates) {
    if (candidates == 0)
        throw std::invalid_argument{"a race needs a candidate"};
    if (!(options.within > 0 && options.within < 1))
        throw std::invalid_argument{"within must be between 0 and 1, got " + std::to_string(options.within)};
    if (!(options.error > 0 && options.error < 1))
        throw std::invalid_argument{"error must be between 0 and 1, got " + std::to_string(options.error)};
}

void Race::add_round(std::span<const double> rates) {
    if (rates.size() != candidates_)
        throw std::invalid_argument{"a round of " + std::to_string(candidates_) +
                                    " candidates needs one rate per candidate, got " + std::to_string(rates.size())};
    ++rounds_;
    for (std::size_t a = 0; a < candidates_; ++a)
        ran_[a] += rates[a] > 0;
    for (std::size_t a = 0; a < candidates_; ++a)
        for (std::size_t b = a + 1; b < candidates_; ++b) {
            if (!(rates[a] > 0 && rates[b] > 0))
                continue;
            Pair& pair = pairs_[a * candidates_ + b];
            const double value = std::log(rates[a] / rates[b]), beyond = value - pair.mean;
            pair.mean += beyond / ++pair.count;
            pair.squares += beyond * (value - pair.mean);
        }
    const double floor = std::log1p(-options_.within);
    for (std::size_t a = 0; a < candidates_; ++a)
        for (std::size_t b = 0; b < candidates_ && !dropped_[a]; ++b)
            if (a != b && !dropped_[b] && log_ratio(a, b).high < floor)
                dropped_[a] = true;
}

Race::Noise Race::noise() const {
    double squares = 0, counted = 0, freedom = 1 - static_cast<double>(rounds_);
    for (const Pair& pair : pairs_)
        if (pair.count > 1) {
            squares += pair.squares / 2;   // a ratio has the noise of both
            counted += pair.count - 1;
        }
    for (const std::size_t rounds : ran_)
        freedom += rounds != 0 ? static_cast<double>(rounds) - 1 : 0;
    const double least = options_.least_spread * options_.least_spread;
    return {std::max(counted > 0 ? squares / counted : 0, least), std::max(freedom, 0.0)};
}

double Race::spread() const { return std::sqrt(noise().variance); }

// Inverts a test martingale that holds for every mean and noise: the likelihood ratio between a difference drawn from a
// normal distribution, as wide as the noise, and the difference in question, with the scale integrated out (Lai 1976;
// Wang and Ramdas 2023). With probability 1 - error it never exceeds 1 / error, however often one looks.
Interval Race::log_ratio(std::size_t a, std::size_t b) const {
    if (a == b)
        return {};
    const Pair& pair = pairs_[std::min(a, b) * candidates_ + std::max(a, b)];
    constexpr double unknown = std::numeric_limits<double>::infinity();
    const double mean = a < b ? pair.mean : -pair.mean;
    if (pair.count < 2)
        return {mean, -unknown, unknown};
    const double pairs = static_cast<double>(std::max<std::size_t>(candidates_ * (candidates_ - 1) / 2, 1));
    const double error = options_.error / pairs, n = pair.count, with_prior = n + precision;
    const Noise all = noise();
    // Degrees of freedom beyond those of this pair's rounds.
    const double others = std::max(all.freedom - (n - 1), 0.0);
    const double squares = 2 * all.variance * (n - 1 + others);
    const double likely = std::exp((std::log(with_prior / precision) - 2 * std::log(error)) / (n + others));
    const double share = 1 - 1 / likely, rest = n * n - with_prior * n * share;
    if (!(rest > 0))
        return {mean, -unknown, unknown};
    const double width = std::sqrt(with_prior * squares * share / rest);
    return {mean, mean - width, mean + width};
}

bool Race::is_within(std::size_t a, std::size_t b) const {
    return a == b || dropped_[b] || log_ratio(a, b).low > std::log1p(-options_.within);
}

std::optional<std::size_t> Race::winner() const {
    const auto first = static_cast<std::size_t>(std::ranges::find(dropped_, false) - dropped_.begin());
    for (std::size_t b = 0; b < candidates_; ++b)
        if (first == candidates_ || !is_within(first, b))
            return std::nullopt;
    return first;
}

std::optional<std::size_t> Race::leader() const {
    const double floor = std::log1p(-options_.within);
    const auto runs = [this](std::size_t i) { return !dropped_[i] && (ran_[i] != 0 || rounds_ == 0); };
    for (std::size_t a = 0; a < candidates_; ++a) {
        bool good = runs(a);
        for (std::size_t b = 0; b < candidates_ && good; ++b)
            good = a == b || !runs(b) || log_ratio(a, b).median >= floor;
        if (good)
            return a;
    }
    for (std::size_t a = 0; a < candidates_; ++a)
        if (runs(a))
            return a;   // ratios over different rounds need not be transitive
    return std::nullopt;
}

}   // namespace drawpoint
