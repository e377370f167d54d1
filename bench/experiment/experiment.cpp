#include <drawpoint/bench/experiment/experiment.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
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
constexpr auto slice_time = std::chrono::milliseconds{10};   // long beside the change from one process to another

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
    constexpr double tick = 0.01;   // seconds; what the kernel counts the cores' time in
    const double resolution = round.seconds > 0 ? tick / round.seconds : 0;
    return round.foreign_cores.value_or(0) > most_foreign_share * cores + resolution ||
           round.steal.value_or(0) > most_steal;
}

/// A contender's turn with its metrics at their places among those of all contenders.
Turn placed(Turn turn, const std::vector<std::size_t>& places, std::size_t metrics) {
    Turn all{.values = std::vector(metrics, std::numeric_limits<double>::quiet_NaN()),
             .by_item = std::vector<std::vector<float>>(metrics)};
    for (std::size_t i = 0; i < std::min(turn.values.size(), places.size()); ++i) {
        all.values[places[i]] = turn.values[i];
        if (i < turn.by_item.size())
            all.by_item[places[i]] = std::move(turn.by_item[i]);
    }
    return all;
}

/// The median of the items' log ratios, of those that both have; NaN: there is none.
double paired_log_ratio(std::span<const float> values, std::span<const float> base) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(values.size(), base.size()); ++i)
        if (values[i] > 0 && base[i] > 0)   // also not NaN
            ratios.push_back(std::log(static_cast<double>(values[i]) / static_cast<double>(base[i])));
    return statistics::quantile(ratios, 0.5);
}

std::vector<double> log_ratios_of(const Turn& turn, const Turn& base) {
    std::vector<double> ratios;
    for (std::size_t metric = 0; metric < turn.values.size(); ++metric)
        ratios.push_back(base.by_item[metric].empty() ? std::log(turn.values[metric] / base.values[metric])
                                                      : paired_log_ratio(turn.by_item[metric], base.by_item[metric]));
    return ratios;
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

std::span<const std::string> PausingContender::sections() const noexcept {
    static const std::string one;
    return {&one, 1};
}

Turn PausingContender::take_turn(std::size_t runs) {
    for (std::size_t section = 0; section < sections().size(); ++section) {
        begin(section);
        run(runs);
        end();
    }
    return results();
}

bool Measurements::has(std::size_t contender, std::size_t metric) const {
    return !rounds.empty() && std::ranges::none_of(rounds, [&](const Round& round) {
        return std::isnan(round.values[contender][metric]) || !std::isfinite(round.log_ratios[contender][metric]);
    });
}

std::vector<double> Measurements::values(std::size_t contender, std::size_t metric) const {
    std::vector<double> all;
    for (const Round& round : rounds)
        all.push_back(round.values[contender][metric]);
    return all;
}

std::vector<double> Measurements::log_ratios(std::size_t contender, std::size_t metric) const {
    std::vector<double> all;
    for (const Round& round : rounds)
        all.push_back(round.log_ratios[contender][metric]);
    return all;
}

double Measurements::seconds() const {
    return std::accumulate(rounds.begin(), rounds.end(), 0.0,
                           [](double sum, const Round& round) { return sum + round.seconds; });
}

Measurements Measurements::pair(std::size_t contender) const {
    Measurements two = *this;
    const auto keep = [&](auto& all) { all = {all[0], all[contender]}; };
    keep(two.contenders);
    keep(two.descriptions);
    keep(two.not_run);
    keep(two.flaws);
    keep(two.parts);
    keep(two.measures);
    keep(two.runs);
    for (Round& round : two.rounds) {
        keep(round.values);
        keep(round.log_ratios);
        std::erase_if(round.order, [&](std::size_t i) { return i != 0 && i != contender; });
        std::ranges::replace(round.order, contender, std::size_t{1});
    }
    return two;
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
    measured_.not_run.resize(contenders_.size());
    measured_.flaws.resize(contenders_.size());
    measured_.parts.resize(contenders_.size());
    measured_.runs.assign(contenders_.size(), 1);
    places_.resize(contenders_.size());
    measured_.seed = options.seed;
    measured_.cores = usable_cores();
    measured_.most_foreign = options_.most_foreign;
}

template <class F>
void Experiment::attempt(std::size_t contender, F&& action) {
    try {
        action();
    } catch (const NotRun& reason) {
        if (contender == 0 || !options_.leaves_out) {
            measured_.failure = reason.what();
            throw;
        }
        measured_.not_run[contender] = reason.what();
        if (contender < measured_.measures.size())
            measured_.measures[contender].assign(measured_.metrics.size(), false);
    }
}

void Experiment::prepare() {
    std::vector<Metric>& all = measured_.metrics;
    for (std::size_t i = 0; i < contenders_.size(); ++i)
        attempt(i, [&] {
            Contender& contender = *contenders_[i];
            contender.prepare();
            const auto common = [&](const Metric& metric) {
                return metric.compared && std::ranges::count(contenders_.front()->metrics(), metric) != 0;
            };
            if (i != 0 && std::ranges::none_of(contender.metrics(), common))
                throw NotRun{
                    fmt::format("{} does not measure what {} does", contender.name(), contenders_.front()->name())};
            measured_.flaws[i] = contender.flaw();
            measured_.parts[i].assign(contender.parts().begin(), contender.parts().end());
            for (const Metric& metric : contender.metrics()) {
                places_[i].push_back(static_cast<std::size_t>(std::ranges::find(all, metric) - all.begin()));
                if (places_[i].back() == all.size())
                    all.push_back(metric);
            }
        });
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
        std::vector<bool>& measures = measured_.measures.emplace_back(all.size());
        for (const std::size_t place : places_[i])
            measures[place] = takes_part(i);
    }
}

std::size_t Experiment::calibrated_runs(Contender& contender) const {
    const auto time_of = [&](std::size_t runs) {
        const auto begin = Clock::now();
        const std::chrono::duration<double> runs_alone{contender.take_turn(runs).seconds};
        const std::chrono::duration<double> time = runs_alone.count() > 0 ? runs_alone : Clock::now() - begin;
        return std::max<std::chrono::duration<double>>(time, std::chrono::nanoseconds{1});
    };
    const std::chrono::duration<double> wanted = options_.least_turn;
    (void)contender.take_turn(1);   // to warm up
    std::size_t runs = 1;
    auto time = time_of(runs);
    while (time < wanted / 10 && runs < most_runs)   // a tenth of a turn is enough to foretell one
        time = time_of(runs *= 10);
    if (time < 2 * wanted)
        time = std::min(time, time_of(runs));
    const double turn = std::ceil(static_cast<double>(runs) * (wanted / time));
    return static_cast<std::size_t>(std::clamp(turn, 1.0, static_cast<double>(most_runs)));
}

double Experiment::contenders_cpu_seconds() const {
    double seconds = children_seconds();
    for (const auto& contender : contenders_)
        seconds += contender->running_cpu_seconds();
    return seconds;
}

void Experiment::calibrate() {
    for (std::size_t i = 0; i < contenders_.size(); ++i)
        if (takes_part(i))
            attempt(i, [&] { measured_.runs[i] = calibrated_runs(*contenders_[i]); });
    // Contenders that may be equal have equal turns: the mean of two runs and a single run differ in their noise.
    constexpr std::size_t most = 4;   // times; the runs of one command may differ so much by chance
    std::size_t least = most_runs;
    for (std::size_t i = 0; i < contenders_.size(); ++i)
        if (takes_part(i))
            least = std::min(least, measured_.runs[i]);
    for (std::size_t& runs : measured_.runs)
        if (options_.has_equal_turns)
            runs = least;
        else if (runs <= most * measured_.runs.front() && measured_.runs.front() <= most * runs)
            runs = measured_.runs.front();
}

void Experiment::take_turns(std::vector<std::size_t> order, std::vector<Turn>& turns) {
    std::vector<PausingContender*> pausing(contenders_.size());
    for (const std::size_t i : order)
        pausing[i] = dynamic_cast<PausingContender*>(contenders_[i].get());
    const bool in_slices = std::ranges::all_of(order, [&](std::size_t i) { return pausing[i] != nullptr; });
    if (!in_slices) {
        for (const std::size_t i : order)
            attempt(i, [&] { turns[i] = contenders_[i]->take_turn(measured_.runs[i]); });
        return;
    }
    const auto all = [&](auto&& action) {
        for (const std::size_t i : order)
            if (takes_part(i))
                attempt(i, [&] { action(*pausing[i], i); });
    };
    std::vector<std::string> sections;
    std::size_t most = 1;
    for (std::size_t i = 0; i < pausing.size(); ++i) {
        if (pausing[i] == nullptr)
            continue;
        for (const std::string& name : pausing[i]->sections())
            if (std::ranges::find(sections, name) == sections.end())
                sections.push_back(name);
        most = std::max(most, measured_.runs[i]);
    }
    const auto slices = std::min(static_cast<std::size_t>(std::max<std::int64_t>(
                                     options_.least_turn / slice_time / static_cast<std::int64_t>(sections.size()), 1)),
                                 most);   // a longer run is a slice of its own
    // A contender with fewer runs than slices has them at places drawn anew in each round.
    const double phase = std::uniform_real_distribution{}(random_);
    for (const std::string& section : sections) {
        const auto in_section = [&](auto&& action) {
            all([&](PausingContender& contender, std::size_t i) {
                const auto own = contender.sections();
                if (const auto place = std::ranges::find(own, section); place != own.end())
                    action(contender, i, static_cast<std::size_t>(place - own.begin()));
            });
        };
        in_section([](PausingContender& contender, std::size_t, std::size_t place) { contender.begin(place); });
        for (std::size_t slice = 0; slice < slices; ++slice) {
            in_section([&](PausingContender& contender, std::size_t i, std::size_t) {
                const auto runs_before = [&](std::size_t s) {
                    return static_cast<std::size_t>(static_cast<double>(measured_.runs[i]) * static_cast<double>(s) /
                                                        static_cast<double>(slices) +
                                                    phase);
                };
                if (const std::size_t runs = runs_before(slice + 1) - runs_before(slice); runs != 0)
                    contender.run(runs);
            });
            if (slice % 2 == 0)   // there and back: a drift of the machine's speed hits all alike
                std::ranges::reverse(order);
            else
                std::ranges::shuffle(order, random_);
        }
        in_section([](PausingContender& contender, std::size_t, std::size_t) { contender.end(); });
    }
    all([&](PausingContender& contender, std::size_t i) { turns[i] = contender.results(); });
}

const Round& Experiment::run_round() {
    Round round;
    round.order.resize(contenders_.size());
    std::iota(round.order.begin(), round.order.end(), std::size_t{0});
    std::erase_if(round.order, [&](std::size_t i) { return !takes_part(i); });
    std::ranges::shuffle(round.order, random_);
    std::vector<Turn> turns(contenders_.size());
    const double used = contenders_cpu_seconds();
    const HostRow before = host_.read(now_ns());
    take_turns(round.order, turns);
    const HostRow after = host_.read(now_ns());
    for (std::size_t i = 0; i < turns.size(); ++i) {
        turns[i] = placed(std::move(turns[i]), places_[i], measured_.metrics.size());
        round.log_ratios.push_back(log_ratios_of(turns[i], turns.front()));
    }
    for (Turn& turn : turns)
        round.values.push_back(std::move(turn.values));
    round.seconds = static_cast<double>(after.at_ns - before.at_ns) * 1e-9;
    const auto busy = risen(before.busy_ns, after.busy_ns), own = risen(before.own_cpu_ns, after.own_cpu_ns);
    const auto affinity = static_cast<double>(affinity_cores());
    if (busy && own) {   // with a quota, others may use the cores beyond it without taking anything
        const double others = (*busy - *own - (contenders_cpu_seconds() - used)) / round.seconds;
        round.foreign_cores = others - std::max(0.0, affinity - measured_.cores);
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
            if (measured.has(contender, metric))
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

std::vector<std::string> differing_parts(const Measurements& measured, std::size_t contender) {
    std::vector<std::string> sentences;
    const std::string& name = measured.contenders[contender];
    const auto part_of = [&](std::size_t other, const Part& part) {
        const auto found = std::ranges::find(measured.parts[other], part.name, &Part::name);
        return found == measured.parts[other].end() ? nullptr : &*found;
    };
    for (const Part& part : measured.parts[contender]) {
        const std::string of_row = part.name.empty() ? "" : fmt::format(" of row {}", part.name);
        for (std::size_t before = 0; part.digest && before < contender; ++before)
            if (const Part* other = part_of(before, part); other && other->digest) {
                if (other->digest != part.digest)
                    sentences.push_back(
                        fmt::format("{} has another output{} than {}", name, of_row, measured.contenders[before]));
                break;   // the others have been compared with this one, too
            }
        if (const Part* other = part_of(0, part); !part.not_run.empty() && other && other->not_run.empty())
            sentences.push_back(fmt::format("{} cannot run row {}: {}", name, part.name, part.not_run));
    }
    return sentences;
}

std::string unfit(const Measurements& measured) {
    if (!measured.failure.empty())
        return measured.failure;
    for (std::size_t i = 0; i < measured.flaws.size(); ++i)
        if (measured.not_run[i].empty() && !measured.flaws[i].empty())
            return measured.flaws[i];
    // The kernel counts the cores' time in ticks of 10 ms, so of short rounds only several together say something.
    constexpr double least_seconds = 0.2;
    std::vector<double> foreign;
    double used = 0, seconds = 0;   // of the rounds since the last entry
    for (const Round& round : measured.rounds) {
        if (!round.foreign_cores)
            continue;
        used += *round.foreign_cores * round.seconds;
        seconds += round.seconds;
        if (seconds >= least_seconds)
            foreign.push_back(std::exchange(used, 0) / std::exchange(seconds, 0));
    }
    const double usual = foreign.empty() ? 0 : statistics::quantile(foreign, 0.5);
    if (usual <= measured.most_foreign * measured.cores)
        return "";
    return fmt::format("other processes used {:.1f} of {:.3g} cores", usual, measured.cores);
}

std::size_t disturbed_rounds(const Measurements& measured) {
    return static_cast<std::size_t>(std::ranges::count_if(
        measured.rounds, [&](const Round& round) { return is_disturbed(round, measured.cores); }));
}

}   // namespace drawpoint::bench
