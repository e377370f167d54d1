// What the gate does on recorded rounds of bench_planted: how often it closes where nothing was planted, how often and
// how soon where something was, and what the tests that are in use elsewhere say of the same turns.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/gate.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "program.hpp"
#include "spread.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::string file;
    std::size_t most_rounds = 100, resampled = 1000, block = 5, turns = 15;
    std::uint64_t seed = 1;
    bool json = false;
};

/// What was planted into a contender, as a share: 0.02 for "+2 %".
double planted_in(const std::string& name) { return name.starts_with('+') ? std::stod(name.substr(1)) / 100 : 0; }

/// Rows that are judged together, and where what was planted shows as it is.
struct Judged {
    const char* name;
    std::vector<std::size_t> metrics;
    std::size_t slowed;   ///< of `metrics`
};

/// log(contender / base) by round and row.
std::vector<std::vector<double>> rounds_of(const Measurements& measured, std::size_t contender, const Judged& judged) {
    std::vector<std::vector<double>> rounds;
    for (const Round& round : measured.rounds) {
        std::vector<double>& rows = rounds.emplace_back();
        for (const std::size_t metric : judged.metrics)
            rows.push_back(round.log_ratios[contender][metric]);
    }
    return rounds;
}

struct Gates {
    Share closed, opened, held;   ///< held: the interval of the slowed row at the verdict holds what was planted
    std::vector<double> rounds;   ///< until it closed
};

void count(Gates& gates, const Gate& gate, const Judged& judged, double planted) {
    gates.closed.count(gate.verdict() == GateVerdict::slower);
    gates.opened.count(gate.verdict() == GateVerdict::not_slower);
    const Interval found = gate.log_ratio(judged.slowed);
    gates.held.count(found.low <= std::log1p(planted) && std::log1p(planted) <= found.high);
    if (gate.verdict() == GateVerdict::slower)
        gates.rounds.push_back(static_cast<double>(gate.rounds()));
}

/// One gate after the other: each begins where the one before ended, if there are rounds enough.
Gates disjoint(const std::vector<std::vector<double>>& rounds, const Judged& judged, double planted,
               std::size_t most_rounds) {
    Gates gates;
    for (std::size_t next = 0; next + most_rounds <= rounds.size();) {
        Gate gate{judged.metrics.size()};
        for (; gate.rounds() < most_rounds && gate.verdict() == GateVerdict::undecided; ++next)
            gate.add_round(rounds[next]);
        count(gates, gate, judged, planted);
    }
    return gates;
}

/// Gates from blocks of neighbours drawn with replacement. `exchanges`: half of the blocks have their sides exchanged.
/// `dose`: added to the slowed row of every round.
Gates resampled(const std::vector<std::vector<double>>& rounds, const Judged& judged, double planted,
                const Options& options, bool exchanges = false, double dose = 0) {
    std::mt19937_64 random{options.seed};
    Gates gates;
    for (std::size_t g = 0; g < options.resampled; ++g) {
        Gate gate{judged.metrics.size()};
        std::size_t next = 0;
        double sign = 1;
        for (std::size_t r = 0; r < options.most_rounds && gate.verdict() == GateVerdict::undecided; ++r, ++next) {
            if (r % options.block == 0) {
                next = random() % rounds.size();
                sign = exchanges && random() % 2 == 0 ? -1 : 1;
            }
            std::vector<double> round = rounds[next % rounds.size()];
            for (double& log_ratio : round)
                log_ratio *= sign;
            round[judged.slowed] += std::log1p(dose);
            gate.add_round(round);
        }
        count(gates, gate, judged, planted);
    }
    return gates;
}

// ------------------------------------------------------------------------------- what is in use elsewhere

double mean_of(std::span<const double> values) {
    double sum = 0;
    for (const double value : values)
        sum += value;
    return sum / static_cast<double>(values.size());
}

/// The two-sided p-value of the U test in its normal approximation, as scipy's for more than 8 values (no ties).
double u_test(std::span<const double> a, std::span<const double> b) {
    const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
    double u = 0;
    for (const double x : a)
        for (const double y : b)
            u += x > y ? 1 : x == y ? 0.5 : 0;
    const double distance = std::max(std::abs(u - n * m / 2) - 0.5, 0.0);
    return std::erfc(distance / std::sqrt(n * m * (n + m + 1) / 12) / std::sqrt(2.0));
}

/// The two-sided p-value of Welch's t-test.
double welch(std::span<const double> a, std::span<const double> b) {
    const auto variance_of_mean = [](std::span<const double> values) {
        const double mean = mean_of(values);
        double sum = 0;
        for (const double value : values)
            sum += (value - mean) * (value - mean);
        const auto n = static_cast<double>(values.size());
        return sum / (n - 1) / n;
    };
    const double va = variance_of_mean(a), vb = variance_of_mean(b);
    const double freedom = (va + vb) * (va + vb) /
                           (va * va / static_cast<double>(a.size() - 1) + vb * vb / static_cast<double>(b.size() - 1));
    const double t = std::abs(mean_of(a) - mean_of(b)) / std::sqrt(va + vb);
    return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t{freedom}, t));
}

using Turns = std::span<const double>;

struct Rival {
    const char* name;
    bool (*slower)(Turns base, Turns candidate);
};

constexpr std::array rivals{
    Rival{"U test, p < 0.05 (compare.py)",
          [](Turns base, Turns candidate) {
              return u_test(base, candidate) < 0.05 &&
                     statistics::quantile(candidate, 0.5) > statistics::quantile(base, 0.5);
          }},
    Rival{"Welch's t-test, p < 0.05 (hyperfine)",
          [](Turns base, Turns candidate) {
              return welch(base, candidate) < 0.05 && mean_of(candidate) > mean_of(base);
          }},
    Rival{"median 2 % higher",
          [](Turns base, Turns candidate) {
              return statistics::quantile(candidate, 0.5) > 1.02 * statistics::quantile(base, 0.5);
          }},
};

/// How often a rival calls a contender slower. In blocks: the base's turns of some rounds against the contender's turns
/// of as many later ones, as when one is measured after the other; else both of the same rounds.
Share rival_alarms(const Rival& rival, const Measurements& measured, std::size_t contender, std::size_t metric,
                   std::size_t turns, bool in_blocks) {
    const std::vector<double> base = measured.values(0, metric), candidate = measured.values(contender, metric);
    const std::size_t step = in_blocks ? 2 * turns : turns;
    Share alarms;
    for (std::size_t at = 0; at + step <= base.size(); at += step)
        alarms.count(
            rival.slower(Turns{base}.subspan(at, turns), Turns{candidate}.subspan(in_blocks ? at + turns : at, turns)));
    return alarms;
}

// ------------------------------------------------------------------------------- reporting

std::string text_of(const Share& share) {
    const auto [low, high] = share.wilson();
    return fmt::format("{:5.1f} % of {:<4} ({:.1f} … {:.1f})", 100 * share.value(), share.of, 100 * low, 100 * high);
}

nlohmann::ordered_json to_json(const Share& share) {
    const auto [low, high] = share.wilson();
    return {{"of", share.of}, {"hits", share.hits}, {"low", low}, {"high", high}};
}

nlohmann::ordered_json to_json(const Gates& gates) {
    return {{"closed", to_json(gates.closed)},
            {"opened", to_json(gates.opened)},
            {"median_rounds", statistics::quantile(gates.rounds, 0.5)}};
}

int examine(const Options& options, const std::string& command) {
    std::ifstream file{options.file};
    const Measurements measured = measurements_from_json(nlohmann::json::parse(file));
    Judged stages{"stages", {}, 0}, throughput{"wall time", {}, 0};
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric) {
        const Metric& what = measured.metrics[metric];
        if (what.by_item) {
            if (what.name.starts_with("decode"))
                stages.slowed = stages.metrics.size();
            stages.metrics.push_back(metric);
        } else if (what.name == "wall time") {
            throughput.metrics.push_back(metric);
        }
    }
    const std::size_t same =
        static_cast<std::size_t>(std::ranges::find(measured.contenders, "same") - measured.contenders.begin());
    if (stages.metrics.empty() || throughput.metrics.empty() || same == measured.contenders.size())
        throw std::runtime_error{options.file + " does not hold rounds of bench_planted"};
    if (measured.rounds.size() < 10)
        throw std::runtime_error{options.file + " holds fewer than 10 rounds"};
    double all_stages = 0;
    for (const std::size_t metric : stages.metrics)
        all_stages += statistics::quantile(measured.values(0, metric), 0.5);
    const double decode_share =
        statistics::quantile(measured.values(0, stages.metrics[stages.slowed]), 0.5) / all_stages;
    nlohmann::ordered_json document =
        json_document("drawpoint.gate_exam/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["rounds"] = measured.rounds.size();
    document["disturbed_rounds"] = disturbed_rounds(measured);
    document["unfit"] = unfit(measured);
    document["gates"] = document["rivals"] = nlohmann::ordered_json::array();
    std::string text = fmt::format("{} rounds, {} disturbed. Gates of up to {} rounds\n\n", measured.rounds.size(),
                                   disturbed_rounds(measured), options.most_rounds);
    text += fmt::format("{:<10} {:<10} {:<32} {:>6}  {:<32} {:<8}  {}\n", "planted", "rows", "closes", "after",
                        "closes, resampled", "foretold", "interval holds");
    for (std::size_t contender = 1; contender < measured.contenders.size(); ++contender)
        for (const Judged* judged : {&stages, &throughput}) {
            const auto lacks = [&](std::size_t metric) { return !measured.has(contender, metric); };
            if (std::ranges::any_of(judged->metrics, lacks)) {
                text += fmt::format("{:<10} {:<10} not measured in every round\n", measured.contenders[contender],
                                    judged->name);
                continue;
            }
            const double planted = planted_in(measured.contenders[contender]);
            const auto rounds = rounds_of(measured, contender, *judged);
            const Gates one = disjoint(rounds, *judged, planted, options.most_rounds);
            const Gates many = resampled(rounds, *judged, planted, options);
            // What the rounds without a difference foretell, with the dose added to what is slowed.
            const double dose = judged == &stages ? planted : planted * decode_share;
            const Gates foretold = resampled(rounds_of(measured, same, *judged), *judged, planted, options, true, dose);
            text += fmt::format("{:<10} {:<10} {:<32} {:>6.3g}  {:<32} {:>6.1f} %  {}\n",
                                measured.contenders[contender], judged->name, text_of(one.closed),
                                statistics::quantile(one.rounds, 0.5), text_of(many.closed),
                                100 * foretold.closed.value(), judged == &stages ? text_of(one.held) : "");
            document["gates"].push_back({{"contender", measured.contenders[contender]},
                                         {"planted", planted},
                                         {"rows", judged->name},
                                         {"disjoint", to_json(one)},
                                         {"resampled", to_json(many)},
                                         {"foretold", to_json(foretold.closed)},
                                         {"held", judged == &stages ? to_json(one.held) : nullptr}});
        }
    text += fmt::format("\nothers, by wall time, {} turns each: share called slower\n{:<38} {:<8}", options.turns, "",
                        "turns");
    for (std::size_t contender = 1; contender < measured.contenders.size(); ++contender)
        text += fmt::format(" {:>8}", measured.contenders[contender]);
    for (const Rival& rival : rivals)
        for (const bool in_blocks : {true, false}) {
            text += fmt::format("\n{:<38} {:<8}", rival.name, in_blocks ? "blocks" : "rounds");
            for (std::size_t contender = 1; contender < measured.contenders.size(); ++contender) {
                if (!measured.has(contender, throughput.metrics.front()))
                    continue;
                const Share alarms =
                    rival_alarms(rival, measured, contender, throughput.metrics.front(), options.turns, in_blocks);
                text += alarms.of == 0 ? fmt::format(" {:>8}", "-") : fmt::format(" {:>6.1f} %", 100 * alarms.value());
                document["rivals"].push_back({{"rival", rival.name},
                                              {"turns", in_blocks ? "blocks" : "rounds"},
                                              {"contender", measured.contenders[contender]},
                                              {"called_slower", to_json(alarms)}});
            }
        }
    fmt::print("{}", options.json ? json_text(document) : text + "\n");
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"What the gate, and other tests, say of recorded rounds of bench planted",
                 "drawpoint bench gate-exam"};
    app.add_option("FILE", options.file, "rounds: the JSON of bench planted")->required()->check(CLI::ExistingFile);
    app.add_option("--most-rounds", options.most_rounds, "of a gate [100]")->check(CLI::Range(10, 10'000));
    app.add_option("--resampled", options.resampled, "gates drawn from the rounds [1000]")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--turns", options.turns, "of each contender, for the other tests [15]")->check(CLI::Range(9, 1000));
    app.add_option("--seed", options.seed, "of the gates that are drawn [1]");
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    return run_program(app, "gate-exam", argc, argv,
                       [&](const std::string& command) { return examine(options, command); });
}
