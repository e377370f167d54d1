#include <drawpoint/bench/experiment/experiment.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/resource.h>

#include "bench/experiment/process.hpp"
#include <drawpoint/diagnosis/paired/symmetry_test.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double most_foreign_share = 0.05, most_steal = 0.02;   // of the cores, in a round that is not disturbed
constexpr std::size_t most_runs = 1'000'000'000;

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

/// CPU time of the processes that this one has waited for.
double children_seconds() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return cpu_seconds(usage);
}

/// What a counter rose by, in seconds; absent if it could not be read.
std::optional<double> risen(std::int64_t before, std::int64_t after) {
    if (before == no_stamp || after == no_stamp)
        return std::nullopt;
    return static_cast<double>(after - before) * 1e-9;
}

bool is_disturbed(const Round& round, double cores) {
    return round.foreign_cores.value_or(0) > most_foreign_share * cores || round.steal.value_or(0) > most_steal;
}

Finding finding_of(const Interval& log_ratio) {
    if (log_ratio.low > log_ratio.high)
        return Finding::no_common_ratio;
    if (log_ratio.low > 0)
        return Finding::slower;
    if (log_ratio.high < 0)
        return Finding::faster;
    const bool bounded = std::isfinite(log_ratio.low) && std::isfinite(log_ratio.high);
    return bounded ? Finding::no_difference_shown : Finding::too_few_rounds;
}

}   // namespace

std::vector<double> Measurements::values(std::size_t contender, std::size_t metric) const {
    std::vector<double> all;
    for (const Round& round : rounds)
        all.push_back(round.values[contender][metric]);
    return all;
}

std::vector<double> Measurements::log_ratios(std::size_t contender, std::size_t metric) const {
    std::vector<double> all;
    for (const Round& round : rounds)
        all.push_back(std::log(round.values[contender][metric] / round.values[0][metric]));
    return all;
}

double Measurements::seconds() const {
    return std::accumulate(rounds.begin(), rounds.end(), 0.0,
                           [](double sum, const Round& round) { return sum + round.seconds; });
}

Experiment::Experiment(std::vector<std::unique_ptr<Contender>> contenders, const ExperimentOptions& options)
    : contenders_{std::move(contenders)}, options_{options}, random_{options.seed} {
    if (contenders_.empty())
        throw std::invalid_argument{"an experiment needs a contender"};
    for (const auto& contender : contenders_) {
        if (std::ranges::find(measured_.contenders, contender->name()) != measured_.contenders.end())
            throw std::invalid_argument{fmt::format("two contenders are named {}", contender->name())};
        measured_.contenders.push_back(contender->name());
        measured_.descriptions.push_back(contender->description());
    }
    measured_.runs.assign(contenders_.size(), 1);
    measured_.seed = options.seed;
    measured_.cores = usable_cores();
}

void Experiment::prepare() {
    for (const auto& contender : contenders_) {
        contender->prepare();
        const auto metrics = contender->metrics();
        if (contender == contenders_.front())
            measured_.metrics.assign(metrics.begin(), metrics.end());
        else if (!std::ranges::equal(metrics, measured_.metrics))
            throw NotRun{
                fmt::format("{} does not measure what {} does", contender->name(), contenders_.front()->name())};
    }
}

void Experiment::calibrate() {
    const auto time_of = [](Contender& contender, std::size_t runs) {
        const auto begin = Clock::now();
        (void)contender.take_turn(runs);
        return std::max<std::chrono::duration<double>>(Clock::now() - begin, std::chrono::nanoseconds{1});
    };
    const std::chrono::duration<double> wanted = options_.least_turn;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
        Contender& contender = *contenders_[i];
        (void)contender.take_turn(1);   // to warm up
        std::size_t runs = 1;
        auto time = time_of(contender, runs);
        while (time < wanted / 10 && runs < most_runs)   // a tenth of a turn is enough to foretell one
            time = time_of(contender, runs *= 10);
        if (time < 2 * wanted)
            time = std::min(time, time_of(contender, runs));
        const double turn = std::ceil(static_cast<double>(runs) * (wanted / time));
        measured_.runs[i] = static_cast<std::size_t>(std::clamp(turn, 1.0, static_cast<double>(most_runs)));
    }
    // Contenders that may be equal have equal turns: the mean of two runs and a single run differ in their noise.
    for (std::size_t& runs : measured_.runs)
        if (runs <= 2 * measured_.runs.front() && measured_.runs.front() <= 2 * runs)
            runs = measured_.runs.front();
}

const Round& Experiment::run_round() {
    Round round;
    round.order.resize(contenders_.size());
    round.values.resize(contenders_.size());
    std::iota(round.order.begin(), round.order.end(), std::size_t{0});
    std::ranges::shuffle(round.order, random_);
    const double children = children_seconds();
    const HostRow before = host_.read(now_ns());
    for (const std::size_t contender : round.order)
        round.values[contender] = contenders_[contender]->take_turn(measured_.runs[contender]);
    const HostRow after = host_.read(now_ns());
    round.seconds = static_cast<double>(after.at_ns - before.at_ns) * 1e-9;
    const auto busy = risen(before.busy_ns, after.busy_ns), own = risen(before.own_cpu_ns, after.own_cpu_ns);
    const auto affinity = static_cast<double>(affinity_cores());
    if (busy && own) {   // with a quota, others may use the cores beyond it without taking anything
        const double others = (*busy - *own - (children_seconds() - children)) / round.seconds;
        round.foreign_cores = std::max(0.0, others - std::max(0.0, affinity - measured_.cores));
    }
    if (const auto steal = risen(before.steal_ns, after.steal_ns))
        round.steal = *steal / (round.seconds * affinity);
    return measured_.rounds.emplace_back(std::move(round));
}

void Experiment::cancel() noexcept {
    for (const auto& contender : contenders_)
        contender->cancel();
}

std::vector<Comparison> compare(const Measurements& measured, double error) {
    std::vector<Comparison> all;
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
        for (std::size_t contender = 1; measured.metrics[metric].compared && contender < measured.contenders.size();
             ++contender)
            all.push_back({.contender = contender, .metric = metric});
    for (Comparison& one : all) {
        const double share = error / (2 * static_cast<double>(all.size()));   // two bounds each
        const Interval log_ratio = centre_of(measured.log_ratios(one.contender, one.metric), share);
        one.base = statistics::quantile(measured.values(0, one.metric), 0.5);
        one.value = statistics::quantile(measured.values(one.contender, one.metric), 0.5);
        one.ratio = {std::exp(log_ratio.median), std::exp(log_ratio.low), std::exp(log_ratio.high)};
        one.finding = finding_of(log_ratio);
        one.is_failure = one.finding == Finding::slower;
    }
    return all;
}

std::string unfit(const Measurements& measured, double most_foreign_share_of_cores) {
    std::vector<double> foreign;
    for (const Round& round : measured.rounds)
        if (round.foreign_cores)
            foreign.push_back(*round.foreign_cores);
    const double usual = foreign.empty() ? 0 : statistics::quantile(foreign, 0.5);
    if (usual <= most_foreign_share_of_cores * measured.cores)
        return "";
    return fmt::format("other processes used {:.1f} of {:.3g} cores", usual, measured.cores);
}

std::size_t disturbed_rounds(const Measurements& measured) {
    return static_cast<std::size_t>(std::ranges::count_if(
        measured.rounds, [&](const Round& round) { return is_disturbed(round, measured.cores); }));
}

}   // namespace drawpoint::bench
