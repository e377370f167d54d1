#include <drawpoint/diagnosis/tuner/tuner.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/diagnosis/tuner/race.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>

namespace drawpoint {

namespace {

constexpr double large_effect = 0.03;         // log ratio, predicted: a real one of 5 % is surely predicted as more
constexpr double large_effect_seen = 0.04;    // the same, measured
constexpr double least_block_spread = 0.03;   // of a block's log rate, while there are too few rounds to measure it
// Errors of a predicted log ratio of two settings, by `bench accuracy`. Most of what makes a rate uncertain affects
// both settings.
constexpr double model_error = 0.04, distance_error = 0.1;
constexpr int most_repeats = 3;   // of a round

std::size_t settling_workers(const LoaderSetting& setting) { return std::min<std::size_t>(setting.num_workers, 4); }

void check(const TuneOptions& options) {
    const auto refuse = [](const char* name, std::size_t least, std::size_t got) {
        throw std::invalid_argument{fmt::format("{} must be at least {}, got {}", name, least, got)};
    };
    if (options.start.num_workers < 1)
        refuse("num_workers", 1, options.start.num_workers);
    for (const std::string& complaint :
         {out_of_range("most_depth", options.most_depth, 1, loader_limits::most_prefetch_depth),
          out_of_range("most_workers", options.most_workers, 0, loader_limits::most_workers)})
        if (!complaint.empty())
            throw std::invalid_argument{complaint};
    if (options.most_candidates < 2)
        refuse("most_candidates", 2, options.most_candidates);
    if (options.block_steps < 1)
        refuse("block_steps", 1, options.block_steps);
    if (options.reference_steps < 20)
        refuse("reference_steps", 20, options.reference_steps);
}

std::size_t most_useful_workers(const RecordedRun& run) {
    Demand all;
    for (const SampleDemand& sample : run.samples)
        for (const Demand& stage : sample.stages) {
            all.cpu_ns += stage.cpu_ns;
            all.wait_ns += stage.wait_ns;
        }
    const std::size_t by_cores = 2 * static_cast<std::size_t>(std::ceil(run.cores)) + 8;
    return all.wait_ns > all.cpu_ns ? std::max<std::size_t>(by_cores, 64) : by_cores;
}

std::vector<std::size_t> each_once(std::vector<std::size_t> numbers) {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

/// Every number of workers up to twice the cores (at least 4, at most 64), then in steps of about a fifth.
std::vector<std::size_t> worker_counts(const RecordedRun& run, std::size_t most, std::size_t start) {
    std::vector<std::size_t> counts{start};
    const auto each_up_to = std::clamp<std::size_t>(static_cast<std::size_t>(2 * std::ceil(run.cores)), 4, 64);
    for (std::size_t n = 1; n < most; n += n < each_up_to ? 1 : std::max<std::size_t>(n / 5, 1))
        counts.push_back(n);
    counts.push_back(most);
    return each_once(std::move(counts));
}

std::vector<std::size_t> depths(std::size_t most, std::size_t start) {
    std::vector<std::size_t> all{start};
    for (const std::size_t depth : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u, 32u, 48u})
        if (depth < most)
            all.push_back(depth);
    all.push_back(most);
    return each_once(std::move(all));
}

/// Cheaper first.
bool is_cheaper(const WhatifRow& a, const WhatifRow& b) {
    return std::tuple{a.setting.num_workers, a.prediction.peak_bytes, a.setting.prefetch_depth, a.setting.order} <
           std::tuple{b.setting.num_workers, b.prediction.peak_bytes, b.setting.prefetch_depth, b.setting.order};
}

double spread_of(double log_ratio) { return model_error + distance_error * std::abs(log_ratio); }

/// For each row, cheapest first, the probability that it is the cheapest within the margin of the best.
std::vector<double> chances(const std::vector<WhatifRow>& rows, double within) {
    const auto best =
        std::ranges::max_element(rows, {}, [](const WhatifRow& row) { return row.prediction.batches_per_s.median; });
    std::vector<double> all;
    double none_cheaper = 1;
    for (const WhatifRow& row : rows) {
        const double ratio =
            std::log(std::max(row.prediction.batches_per_s.median, 1e-300) / best->prediction.batches_per_s.median);
        const double is_within = 0.5 * std::erfc((std::log1p(-within) - ratio) / spread_of(ratio) / std::sqrt(2.0));
        all.push_back(none_cheaper * is_within);
        none_cheaper *= 1 - is_within;
    }
    return all;
}

/// Whether an error of one prediction is an error of the other: running both tells little more than running one.
bool is_alike(const WhatifRow& a, const WhatifRow& b) {
    constexpr double alike = 0.01;
    const double rate = a.prediction.batches_per_s.median;
    return a.setting.num_workers == b.setting.num_workers && a.setting.order == b.setting.order &&
           std::abs(b.prediction.batches_per_s.median - rate) < alike * rate;
}

/// The fastest row, the start and the likeliest answers, cheapest first; of those that are alike, the cheapest.
std::vector<WhatifRow> candidates_of(std::vector<WhatifRow> rows, const TuneOptions& options) {
    std::ranges::sort(rows, is_cheaper);
    const std::vector<double> chance = chances(rows, options.within);
    const auto fastest = static_cast<std::size_t>(
        std::ranges::max_element(rows, {}, [](const WhatifRow& row) { return row.prediction.batches_per_s.median; }) -
        rows.begin());
    std::vector<std::size_t> by_chance(rows.size());
    std::iota(by_chance.begin(), by_chance.end(), std::size_t{0});
    std::ranges::stable_sort(by_chance, std::greater{}, [&](std::size_t i) { return chance[i]; });
    std::vector<std::size_t> chosen{fastest};
    const auto choose = [&](std::size_t i) {
        if (chosen.size() < options.most_candidates && std::ranges::find(chosen, i) == chosen.end())
            chosen.push_back(i);
    };
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].setting == options.start)
            choose(i);
    for (const std::size_t i : by_chance)
        if (std::ranges::none_of(chosen, [&](std::size_t j) { return j < i && is_alike(rows[j], rows[i]); }))
            choose(i);
    std::ranges::sort(chosen);
    std::vector<WhatifRow> candidates;
    for (const std::size_t i : chosen)
        candidates.push_back(rows[i]);
    return candidates;
}

/// Runs the rounds of a race and sums up its results.
class Racing {
public:
    Racing(TuneTarget& target, const TuneOptions& options, double cores, std::vector<WhatifRow> candidates)
        : target_{&target},
          options_{options},
          cores_{cores},
          running_{options.start},
          candidates_{std::move(candidates)},
          race_{candidates_.size(), {.within = options.within}},
          rates_(candidates_.size()),
          sums_(candidates_.size()),
          blocks_(candidates_.size()),
          too_large_(candidates_.size()),
          random_{options.seed} {}

    /// Races until there is a winner or until `most` steps are used up, `few` if the start is seen to be far behind; at
    /// least one round. `used`: steps before. Returns the steps in all.
    std::size_t run(std::size_t used, std::size_t few, std::size_t most) {
        const auto fits = [&] { return used + steps_of_a_round() <= (start_is_far_behind() ? few : most); };
        while (race_.rounds() == 0 || (!race_.winner() && steps_of_a_round() != 0 && fits())) {
            double foreign_cores = round(used);
            for (int repeats = 0; is_disturbed(foreign_cores) && repeats < most_repeats && fits(); ++repeats)
                foreign_cores = round(used);
            disturbed_rounds_ += is_disturbed(foreign_cores);
            foreign_cores_ += foreign_cores;
            race_.add_round(rates_);
            for (std::size_t i = 0; i < candidates_.size(); ++i)
                if (rates_[i] > 0) {
                    sums_[i] += rates_[i];
                    ++blocks_[i];
                }
        }
        return used;
    }

    [[nodiscard]] Tuning result() const {
        Tuning tuning;
        const auto winner = race_.winner();
        const auto leader = winner ? winner : likeliest();
        if (!leader)
            throw std::runtime_error{"every setting that was run exceeded the memory budget"};
        tuning.separated = winner.has_value();
        tuning.trusted = 2 * disturbed_rounds_ <= race_.rounds();
        tuning.foreign_cores = foreign_cores_ / static_cast<double>(race_.rounds());
        const std::size_t start = start_place();
        const bool keeps_start = !tuning.trusted && !winner && start < candidates_.size() && runs(start);
        const std::size_t chosen = keeps_start ? start : *leader;
        const std::string after = fmt::format("after {} round{}", race_.rounds(), race_.rounds() == 1 ? "" : "s");
        tuning.why = keeps_start ? fmt::format("no clear winner {}: the setting it started from is kept", after)
                     : tuning.separated
                         ? fmt::format("within {:g} % of every other candidate, {}", 100 * options_.within, after)
                         : fmt::format("no clear winner {}: the cheapest likely to be within {:g} % of the best", after,
                                       100 * options_.within);
        if (!tuning.trusted)
            tuning.why += fmt::format("; not to be trusted: other processes used {:.2f} of {:.3g} cores meanwhile",
                                      tuning.foreign_cores, cores_);
        tuning.chosen = candidates_[chosen].setting;
        tuning.batches_per_s = measured(chosen);
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            tuning.best_seen = std::max(tuning.best_seen, measured(i));
            tuning.log.push_back({.tried = candidates_[i].setting,
                                  .predicted = candidates_[i].prediction.batches_per_s,
                                  .measured = measured(i),
                                  .blocks = blocks_[i],
                                  .decision = decision(i, chosen)});
        }
        return tuning;
    }

private:
    [[nodiscard]] double measured(std::size_t i) const {
        return blocks_[i] != 0 ? sums_[i] / static_cast<double>(blocks_[i]) : 0.0;
    }
    [[nodiscard]] bool runs(std::size_t i) const { return !race_.dropped(i); }

    /// Index into `candidates_`; its size if the start is not a candidate.
    [[nodiscard]] std::size_t start_place() const {
        return static_cast<std::size_t>(std::ranges::find(candidates_, options_.start, &WhatifRow::setting) -
                                        candidates_.begin());
    }

    [[nodiscard]] bool start_is_far_behind() const {
        const std::size_t start = start_place();
        const auto leader = race_.leader();
        return leader && start < candidates_.size() && race_.log_ratio(*leader, start).median > large_effect_seen;
    }

    /// An upper bound for any order: before each candidate runs, the batches of the deepest one may have to be drawn.
    [[nodiscard]] std::size_t steps_of_a_round() const {
        std::size_t steps = 0, deepest = running_.prefetch_depth;
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (runs(i))
                deepest = std::max(deepest, candidates_[i].setting.prefetch_depth);
        if (options_.start.memory_budget != 0)
            deepest *= 2;   // as steps_to_settle() says
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (runs(i))
                steps += deepest + settling_workers(candidates_[i].setting) + options_.block_steps;
        return steps;
    }

    [[nodiscard]] bool is_disturbed(double foreign_cores) const noexcept {
        return foreign_cores > options_.most_foreign_cores;
    }

    /// Runs each candidate once, in random order. Returns the cores that others used, over the round: a single block is
    /// too short for counters that tick every 10 ms.
    double round(std::size_t& used) {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (runs(i))
                order.push_back(i);
        std::ranges::shuffle(order, random_);
        std::ranges::fill(rates_, 0.0);
        double foreign = 0;
        for (const std::size_t i : order) {
            const LoaderSetting& setting = candidates_[i].setting;
            const std::size_t warm_up = steps_to_settle(running_, setting);
            const TuneTarget::Block block = target_->run(setting, warm_up, options_.block_steps);
            running_ = setting;
            used += block.steps;
            foreign += block.foreign_cores;
            rates_[i] = block.batches_per_s;
            if (setting.memory_budget != 0 && block.peak_bytes > setting.memory_budget) {
                too_large_[i] = true;
                race_.drop(i);
            }
        }
        return foreign / static_cast<double>(std::max<std::size_t>(order.size(), 1));
    }

    /// The cheapest candidate left within the margin of the best, by prediction and measurement together, each weighted
    /// by its precision.
    [[nodiscard]] std::optional<std::size_t> likeliest() const {
        const auto reference = race_.leader();
        if (!reference)
            return std::nullopt;
        const double of_reference = std::log(candidates_[*reference].prediction.batches_per_s.median);
        const double block_spread = race_.rounds() < 3 ? std::max(race_.spread(), least_block_spread) : race_.spread();
        const double of_block = block_spread * block_spread;
        std::vector<double> believed(candidates_.size(), -std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const Interval& rate = candidates_[i].prediction.batches_per_s;
            if (race_.dropped(i) || !(rate.median > 0))
                continue;
            const double predicted = std::log(rate.median) - of_reference, spread = spread_of(predicted);
            const double by_model = 1 / (spread * spread), by_blocks = static_cast<double>(blocks_[i]) / (2 * of_block);
            believed[i] =
                (predicted * by_model + race_.log_ratio(i, *reference).median * by_blocks) / (by_model + by_blocks);
        }
        const double best = *std::ranges::max_element(believed);
        // half the margin, because these values are uncertain
        for (std::size_t i = 0; i < candidates_.size(); ++i)
            if (!race_.dropped(i) && believed[i] >= best + std::log1p(-options_.within / 2))
                return i;
        return reference;
    }

    [[nodiscard]] std::string decision(std::size_t i, std::size_t chosen) const {
        if (i == chosen)
            return "chosen";
        if (too_large_[i])
            return "exceeded the memory budget";
        if (blocks_[i] == 0)
            return "never run";
        const Interval ratio = race_.log_ratio(i, chosen);
        const double percent = 100 * std::expm1(ratio.median);
        if (race_.dropped(i))
            return fmt::format("{:.1f} % {} than the chosen one", std::abs(percent), percent > 0 ? "faster" : "slower");
        const std::string interval =
            std::isfinite(ratio.low) && std::isfinite(ratio.high)
                ? fmt::format("{:+.1f} to {:+.1f}", 100 * std::expm1(ratio.low), 100 * std::expm1(ratio.high))
                : "interval not known";
        return fmt::format("{:+.1f} % ({}) and {}", percent, interval, i < chosen ? "cheaper" : "more expensive");
    }

    TuneTarget* target_;
    const TuneOptions& options_;
    double cores_;
    LoaderSetting running_;   // the last one requested
    std::vector<WhatifRow> candidates_;
    Race race_;
    std::vector<double> rates_, sums_;
    std::vector<std::size_t> blocks_;
    std::vector<bool> too_large_;   // dropped because it exceeded the memory budget
    std::size_t disturbed_rounds_ = 0;
    double foreign_cores_ = 0;   // sum over rounds
    std::mt19937_64 random_;
};

}   // namespace

std::size_t steps_to_settle(const LoaderSetting& from, const LoaderSetting& to) noexcept {
    // Under a budget, new workers wait until slots have given up memory.
    const bool exchanges = to.memory_budget != 0 && to.num_workers > from.num_workers;
    return settling_workers(to) +
           (exchanges ? from.prefetch_depth + to.prefetch_depth : std::max(from.prefetch_depth, to.prefetch_depth));
}

WhatifGrid tune_grid(const RecordedRun& run, const TuneOptions& options, std::size_t most_workers) {
    const LoaderSetting& start = options.start;
    const std::size_t most = options.most_workers != 0 ? options.most_workers : most_useful_workers(run);
    WhatifGrid grid{.num_workers = worker_counts(run, std::min(most, most_workers), start.num_workers),
                    .prefetch_depth = depths(options.most_depth, start.prefetch_depth),
                    .order = {start.order}};
    if (options.may_leave_order && start.order != OrderRule::out_of_order())
        grid.order.push_back(OrderRule::out_of_order());
    return grid;
}

Tuning tune(TuneTarget& target, const TuneOptions& options) {
    check(options);
    const LoaderSetting& start = options.start;
    const std::size_t reference_warm_up = 2 * start.prefetch_depth + start.num_workers;
    const RecordedRun run = target.record(start, reference_warm_up, options.reference_steps);
    const std::size_t used = reference_warm_up + options.reference_steps;
    Whatif predicted = whatif(run, tune_grid(run, options, target.most_workers()), {.predict = {.replications = 20}});
    std::erase_if(predicted.rows, [&](const WhatifRow& row) {
        return start.memory_budget != 0 && row.prediction.peak_bytes > start.memory_budget;
    });
    if (predicted.rows.empty())
        throw std::invalid_argument{
            fmt::format("no setting is expected to keep within memory_budget ({} bytes)", start.memory_budget)};
    double best = 0;
    for (WhatifRow& row : predicted.rows)
        row.setting.read_concurrency = start.read_concurrency;   // a loader without reads records none
    for (const WhatifRow& row : predicted.rows)
        best = std::max(best, row.prediction.batches_per_s.median);
    Racing racing{target, options, run.cores, candidates_of(std::move(predicted.rows), options)};
    const bool effect_is_large = std::abs(std::log(best / run.batches_per_s)) > large_effect;
    const std::size_t few = std::min(options.steps, options.most_steps);
    const std::size_t all = racing.run(used, few, effect_is_large ? few : options.most_steps);
    Tuning tuning = racing.result();
    tuning.steps_used = all;
    return tuning;
}

}   // namespace drawpoint
