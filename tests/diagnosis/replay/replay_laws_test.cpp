// Laws of queueing and conservation that every replay obeys, for runs of any shape.
#include <cmath>
#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>

#include "diagnosis/replay/littles_law.hpp"
#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(replay_laws)

BOOST_AUTO_TEST_CASE(a_birth_death_loader_is_the_queue_mm1k) {
    // One worker makes batches of one sample in exponentially distributed time at rate l while a slot is free; the loop
    // takes exponentially distributed time at rate m for each. Let N be the number of batches made and not given back,
    // including the loop's own. The worker's next batch needs a slot of its own, so it works while N <= D, and N rises
    // up to D + 1; the loop works while N >= 1. Since both are memoryless, a worker that resumes is one that goes on: N
    // is the queue M/M/1/K with K = D + 1 places, whose throughput is m (1 - p0), p0 = (1 - r) / (1 - r^(K + 1)), r = l
    // / m. Times are long, so that the first free slot wakes a parked worker, and other costs are 0.
    std::mt19937_64 random{7};
    for (const double r : {0.5, 0.9, 1.5})
        for (const std::size_t depth : {1u, 3u}) {
            const double service_ms = 500;
            std::exponential_distribution<double> made{r / (service_ms * 1e6)}, trained{1 / (service_ms * 1e6)};
            RecordedRun run = constant_run({.batch_size = 1, .steps = 150'000});
            for (SampleDemand& sample : run.samples)
                sample.stages[0].wait_ns = std::llround(made(random));
            for (StepDemand& step : run.steps)
                step.compute.wait_ns = std::llround(trained(random));
            run.setting.prefetch_depth = depth;
            const double k = static_cast<double>(depth) + 1;
            const double p0 = (1 - r) / (1 - std::pow(r, k + 1));
            const double expected = (1 - p0) * 1e3 / service_ms;
            BOOST_TEST(drawpoint::replay(run, exact(run.setting)).batches_per_s == expected,
                       boost::test_tools::tolerance(0.01));
        }
}

BOOST_AUTO_TEST_CASE(no_replay_beats_the_operational_bounds) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const RecordedRun run = random_run(seed);
        ReplayOptions options = exact(run.setting);
        options.ends = true;
        const Replayed replayed = drawpoint::replay(run, options);
        double cpu = 0, work = 0, loop = 0;
        for (const SampleDemand& sample : run.samples)
            for (const Demand& part : sample.stages) {
                cpu += static_cast<double>(part.cpu_ns);
                work += static_cast<double>(part.ns());
            }
        for (const StepDemand& step : run.steps) {
            loop += static_cast<double>(step.compute.ns());
            cpu += static_cast<double>(step.compute.cpu_ns);
        }
        const auto wall = static_cast<double>(replayed.wall_ns) * (1 + 1e-9) + 1e3;   // rounding to nanoseconds
        BOOST_TEST(wall >= loop);
        BOOST_TEST(wall >= cpu / run.cores);
        BOOST_TEST(wall >= work / static_cast<double>(run.setting.num_workers));
    }
}

// If each thread has a core, more depth costs at most one wake: a parked worker with short batches waits until half of
// the slots are back. If cores are shared, batches made early take cores from the batch that the loop waits for, and
// workers that hardly sleep stay together on one core. This bound is not a theorem, but the effect is small, as in
// reality.
BOOST_AUTO_TEST_CASE(more_depth_is_hardly_ever_slower) {
    std::size_t slower = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const RecordedRun run = random_run(seed);
        ReplayOptions options = exact(run.setting);
        options.ends = true;
        for (const bool unlimited : {true, false}) {
            options.change.unlimited_cores = unlimited;
            options.setting.prefetch_depth = run.setting.prefetch_depth;
            const std::int64_t shallow = drawpoint::replay(run, options).wall_ns;
            options.setting.prefetch_depth += 2;
            const std::int64_t deep = drawpoint::replay(run, options).wall_ns;
            slower += unlimited && deep > shallow + shallow / 1000;
            BOOST_TEST(deep < shallow + shallow / 20);
            if (deep > shallow + shallow / 1000)
                BOOST_TEST_MESSAGE("seed " << seed << (unlimited ? ", no core shared" : "") << ": depth + 2 takes "
                                           << deep << " ns instead of " << shallow);
        }
    }
    BOOST_TEST(slower < 2u);   // 1 %
}

BOOST_AUTO_TEST_CASE(batches_in_the_loader_are_their_rate_times_their_stay) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const RecordedRun run = random_run(seed);
        ReplayOptions options = exact(run.setting);
        options.keep_rows = options.ends = true;
        const Ledger ledger = drawpoint::replay(run, options).ledger;
        test::check_littles_law(ledger, options.setting.prefetch_depth);
    }
}

BOOST_AUTO_TEST_CASE(every_sample_is_made_once_and_a_pass_is_drawn_in_order_unless_order_is_free) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed)
        for (const OrderRule order : {OrderRule::in_order(), OrderRule::bounded(2), OrderRule::out_of_order()}) {
            RecordedRun run = random_run(seed);
            run.pass_samples = run.samples.size() / 3 + 1;   // passes with a short last batch
            ReplayOptions options = exact(run.setting);
            options.keep_rows = options.ends = true;
            options.setting.order = order;
            options.steps = 3 * ((run.pass_samples + run.setting.batch_size - 1) / run.setting.batch_size);
            const Replayed replayed = drawpoint::replay(run, options);
            BOOST_TEST(max_residual_ns(replayed.ledger) == 0);
            BOOST_TEST(replayed.ledger.steps.size() == options.steps);
            std::map<std::uint64_t, std::size_t> seen;   // positions in the recorded order, by sample
            std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sizes;
            for (const SampleRow& row : replayed.ledger.samples) {
                ++seen[std::uint64_t{row.epoch} * run.pass_samples + row.batch * run.setting.batch_size + row.slot];
                ++sizes[{row.epoch, row.batch}];
            }
            BOOST_TEST(seen.size() == 3 * run.pass_samples);
            for (const auto& [place, times] : seen)
                BOOST_REQUIRE(times == 1);
            for (const BatchRow& row : replayed.ledger.batches)
                BOOST_REQUIRE((sizes[{row.epoch, row.batch}] == row.size));
            bool in_order = true, in_passes = true;
            for (std::size_t i = 1; i < options.steps; ++i) {
                const StepRow &before = replayed.ledger.steps[i - 1], &step = replayed.ledger.steps[i];
                in_passes &= step.epoch >= before.epoch;
                in_order &= step.epoch != before.epoch || step.batch == before.batch + 1;
            }
            BOOST_TEST(in_passes);
            if (order == OrderRule::in_order())
                BOOST_TEST(in_order);
        }
}

BOOST_AUTO_TEST_CASE(a_replayed_ledger_can_be_blamed_and_summed_like_any_other) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        RecordedRun run = random_run(seed);
        run.collates = seed % 2 == 0;
        for (BatchDemand& batch : run.batches) {
            batch.collate = {run.samples[0].stages[1].cpu_ns, 0};
            batch.transfer.wait_ns = seed % 3 == 0 ? 50'000 : 0;
        }
        for (SampleDemand& sample : run.samples)
            sample.read = {0, 400'000};
        ReplayOptions options = exact(run.setting);
        options.setting.read_concurrency = seed % 4 == 0 ? 8 : 0;
        options.setting.order = seed % 5 == 0 ? OrderRule::out_of_order() : OrderRule::in_order();
        options.keep_rows = options.ends = true;
        options.costs = {};
        const Ledger ledger = drawpoint::replay(run, options).ledger;
        BOOST_TEST(max_residual_ns(ledger) == 0);
        const Blame blamed = blame(ledger);
        BOOST_TEST(blamed.max_residual_ns == 0);
        BOOST_TEST(blamed.draws.size() == ledger.steps.size());
        for (const BlamePiece& piece : blamed.pieces)
            BOOST_TEST((piece.cause != Cause::unknown || piece.ns == 0));
        BOOST_TEST(to_text(summarize(ledger)).find("train") != std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()
