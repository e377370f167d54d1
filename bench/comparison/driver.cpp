#include "driver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "bench/machine.hpp"

namespace drawpoint::bench {
namespace {

constexpr double most_steal = 0.02;              // a round with more steal is repeated …
constexpr std::size_t most_repeats = 7;          // … but only so often
constexpr std::int64_t least_ns = 300'000'000;   // per turn, so that clocks and start-up do not matter
constexpr std::size_t most_passes = 400;

struct Runner {
    std::unique_ptr<Child> child;   // null: it did not start or has failed
    std::size_t passes = 1;
};

/// Calls `action` for a contender; if that throws NotRun, the contender takes no further part.
template <class F>
void attempt(Row& row, Runner& runner, F&& action) {
    try {
        action();
    } catch (const NotRun& reason) {
        row.not_run = reason.what();
        row.rounds.clear();
        runner.child.reset();
        fmt::print(stderr, "{} {}: not run: {}\n", row.entry.workload.contender, row.entry.workload.variant,
                   reason.what());
    }
}

/// Chooses how many passes a turn has, so that it takes long enough. Passes over pictures are long enough, and a fixed
/// number gives everybody the same crops in each round.
std::size_t choose_passes(Child& child, const Workload& workload, const ComparisonOptions& options) {
    const Round round = child.round(1, 1);   // also warms up
    if (workload.reads_photos())
        return options.passes;
    const double wanted = static_cast<double>(least_ns) / static_cast<double>(round.wall_ns);
    return std::clamp(static_cast<std::size_t>(std::ceil(wanted)), std::size_t{1}, most_passes);
}

/// Runs one turn of each contender, in an order drawn anew. Returns an empty vector if drawpoint itself failed.
std::vector<std::optional<Round>> run_round(std::vector<Row>& rows, std::vector<Runner>& runners, std::size_t number,
                                            const ComparisonOptions& options, std::mt19937_64& random) {
    std::vector<std::optional<Round>> rounds(rows.size());
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order)
        if (runners[i].child)
            attempt(rows[i], runners[i], [&] {
                Child& child = *runners[i].child;
                const std::size_t epoch = 2 + number * runners[i].passes;
                const std::int64_t fresh =
                    options.asks_first_batch && !rows[i].entry.is_bound ? child.first_batch_ns(epoch) : 0;
                rounds[i] = child.round(epoch, runners[i].passes);
                rounds[i]->fresh_first_batch_ns = fresh;
            });
    return rounds;
}

}   // namespace

Comparison run_comparison(const std::vector<Entry>& entries, const ComparisonOptions& options) {
    Comparison result;
    std::vector<Runner> runners(entries.size());
    std::vector<BatchCopy> expected;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        Row& row = result.rows.emplace_back(Row{.entry = entries[i]});
        const Workload& workload = row.entry.workload;
        fmt::print(stderr, "starting {} {}\n", workload.contender, workload.variant);
        attempt(row, runners[i], [&] {
            runners[i].child = std::make_unique<Child>(command_of(row.entry), workload);
            row.settings = runners[i].child->settings();
            if (options.checks_outputs) {
                std::vector<BatchCopy> batches = runners[i].child->batches(0, batches_to_check(workload));
                if (expected.empty())
                    expected = batches;
                row.check = compare(expected, batches, row.entry);
            }
            runners[i].passes = choose_passes(*runners[i].child, workload, options);
        });
    }
    std::mt19937_64 random{std::random_device{}()};
    result.load_before = load_average();
    for (std::size_t done = 0; done < options.rounds;) {
        const ProcessorTime before = processor_time();
        const auto rounds = run_round(result.rows, runners, done, options, random);
        const double steal = steal_share(before, processor_time());
        if (steal > most_steal && result.repeated < most_repeats) {
            ++result.repeated;
            continue;
        }
        result.max_steal_share = std::max(result.max_steal_share, steal);
        for (std::size_t i = 0; i < rounds.size(); ++i)
            if (rounds[i])
                result.rows[i].rounds.push_back(*rounds[i]);
        fmt::print(stderr, "round {} of {}\n", ++done, options.rounds);
    }
    result.load_after = load_average();
    return result;
}

}   // namespace drawpoint::bench
