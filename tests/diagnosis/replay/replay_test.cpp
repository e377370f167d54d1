#include <drawpoint/diagnosis/replay/replay.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <drawpoint/diagnosis/blame/blame.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

constexpr std::int64_t ms = 1'000'000;

bool says(const std::exception& error, std::string_view text) {
    return std::string_view{error.what()}.find(text) != std::string_view::npos;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(replay)

BOOST_AUTO_TEST_CASE(one_worker_and_a_slower_loop_wait_for_the_first_batch_only) {
    // Batches of 4 samples of 1 ms, steps of 10 ms: the first batch is complete at 4 ms, and every later one before its
    // draw.
    const RecordedRun run =
        constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 10 * ms}, .steps = 20});
    const Replayed replayed = drawpoint::replay(run, exact(run.setting));
    BOOST_TEST(replayed.draw_ns.front() == 4 * ms);
    for (std::size_t i = 1; i < 20; ++i)
        BOOST_TEST(replayed.draw_ns[i] == 0);
    BOOST_TEST(replayed.wall_ns == 4 * ms + 20 * 10 * ms);
}

BOOST_AUTO_TEST_CASE(a_faster_loop_draws_at_the_workers_rate) {
    // One worker makes a batch in 8 ms without a pause, and slots are never short. Each draw but the first waits for 8
    // - 3 ms.
    const RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 2 * ms}, .compute = {0, 3 * ms}, .steps = 10});
    const Replayed replayed = drawpoint::replay(run, exact(run.setting));
    BOOST_TEST(replayed.draw_ns.front() == 8 * ms);
    for (std::size_t i = 1; i < 10; ++i)
        BOOST_TEST(replayed.draw_ns[i] == 5 * ms);
    BOOST_TEST(replayed.wall_ns == 10 * 8 * ms + 3 * ms);
}

BOOST_AUTO_TEST_CASE(without_workers_the_loop_makes_each_batch_itself) {
    RecordedRun run = constant_run({.batch_size = 3, .sample = {2 * ms, 1 * ms}, .compute = {4 * ms, 0}, .steps = 7});
    run.setting.num_workers = 0;
    const Replayed replayed = drawpoint::replay(run, exact(run.setting));
    BOOST_TEST(replayed.wall_ns == 7 * (3 * 3 * ms + 4 * ms));
    BOOST_TEST(replayed.draw_share == 9.0 / 13, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(the_first_draw_of_a_pass_waits_for_what_is_left_of_its_order) {
    // Passes of 4 batches of 2 ms, steps of 10 ms, orders of 60 ms. The two workers make the first two batches; then
    // one computes the order of the second pass until 62 ms, which begins at 42 ms, and 2 ms later its first batch is
    // made. The third pass waits as long. The replay begins within a pass whose order it does not compute.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 2 * ms}, .compute = {0, 10 * ms}, .steps = 12});
    run.setting.num_workers = 2;
    run.pass_samples = run.pass_batches = 4;
    run.order = {60 * ms, 0};
    ReplayOptions options = exact(run.setting);
    options.keep_rows = true;
    options.ends = true;
    const Replayed replayed = drawpoint::replay(run, options);
    BOOST_TEST_REQUIRE(replayed.ledger.orders.size() == 2u);
    const OrderRow& order = replayed.ledger.orders[0];
    BOOST_TEST(order.epoch == 1u);
    BOOST_TEST(order.begin_ns == 2 * ms);
    BOOST_TEST(order.ns == 60 * ms);
    BOOST_TEST(order.worker.has_value());
    const StepRow& first = replayed.ledger.steps[4];
    BOOST_TEST(first.draw_begin_ns == 42 * ms);
    BOOST_TEST(first.draw_ns == 22 * ms);
    const Blame blamed = blame(replayed.ledger);
    std::int64_t waited_ns = 0;
    for (const BlamePiece& piece : blamed.pieces)
        waited_ns += piece.cause == Cause::sampler ? piece.ns : 0;
    BOOST_TEST(waited_ns == 2 * 20 * ms);
    BOOST_TEST(blamed.max_residual_ns == 0);

    options.change.sampler = 0;
    const Replayed without = drawpoint::replay(run, options);
    BOOST_TEST(without.ledger.orders.empty());
    BOOST_TEST(without.wall_ns == 12 * 10 * ms + 2 * ms);
    BOOST_TEST(replayed.wall_ns == without.wall_ns + 2 * 22 * ms);

    run.setting.num_workers = 0;   // the loop computes the orders of the two passes that begin in the replay
    options.setting = run.setting;
    options.change = {};
    const Replayed alone = drawpoint::replay(run, options);
    BOOST_TEST(alone.wall_ns == 12 * (2 + 10) * ms + 2 * 60 * ms);
    BOOST_TEST(alone.ledger.orders.size() == 2u);
    BOOST_TEST(!alone.ledger.orders[0].worker.has_value());
}

BOOST_AUTO_TEST_CASE(depth_is_what_a_burst_can_draw_at_once) {
    // A worker makes a batch in 10 ms. Of every 5 steps, four take no time and one takes 50 ms. With depth 4 the burst
    // finds its four batches made, and the period is the worker's 50 ms. With depth 1 the long step finds one batch
    // made, and one more waits for the slot that the step holds; the burst waits for the others.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 10 * ms}, .compute = {}, .steps = 100});
    for (std::size_t i = 4; i < run.steps.size(); i += 5)
        run.steps[i].compute.wait_ns = 50 * ms;
    ReplayOptions options = exact(run.setting);
    options.warm_up_steps = 20;
    options.setting.prefetch_depth = 4;
    const Replayed deep = drawpoint::replay(run, options);
    // 4 slots fill during the long step, and the fifth batch is made after it
    BOOST_TEST(deep.wall_ns == 20 * 60 * ms);
    options.setting.prefetch_depth = 5;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 20 * 50 * ms);
    options.setting.prefetch_depth = 1;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 20 * (50 + 40) * ms);
}

BOOST_AUTO_TEST_CASE(a_bootstrap_leaves_bursts_whole) {
    // A worker makes a batch in 10 ms. Four steps of 20 ms and four of 0 ms alternate: with depth 6 nothing ever waits.
    // If the bootstrap split bursts, a burst could follow another that has used the prefetched batches up.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 10 * ms}, .compute = {}, .steps = 400});
    for (std::size_t i = 0; i < run.steps.size(); ++i)
        run.steps[i].compute.wait_ns = i % 8 < 4 ? 20 * ms : 0;
    run.setting.prefetch_depth = 6;
    ReplayOptions options = exact(run.setting);
    options.warm_up_steps = 20;
    const double whole = drawpoint::replay(run, options).batches_per_s;
    double sum = 0;
    for (options.bootstrap_seed = 1; options.bootstrap_seed <= 20; ++options.bootstrap_seed)
        sum += drawpoint::replay(run, options).batches_per_s;
    BOOST_TEST(sum / 20 > 0.96 * whole);
}

BOOST_AUTO_TEST_CASE(workers_beyond_the_cores_take_turns_by_slices) {
    // Three workers compute 30 ms each. On one core, in slices of 12 ms, the first one's third turn is from 72 to 78
    // ms.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {30 * ms, 0}, .compute = {0, 1'000 * ms}, .steps = 1});
    run.setting.num_workers = run.setting.prefetch_depth = 3;
    run.cores = 1;
    BOOST_TEST(drawpoint::replay(run, exact(run.setting)).draw_ns[0] == 78 * ms);
    run.cores = 3;
    BOOST_TEST(drawpoint::replay(run, exact(run.setting)).draw_ns[0] == 30 * ms);
    // On two cores the first and the third worker share one, and the first's third turn is from 48 to 54 ms. If other
    // processes take half a core, everything takes longer by that; if they take one core, one is left.
    run.cores = 2;
    run.foreign_cores = 0.5;
    BOOST_TEST(std::abs(drawpoint::replay(run, exact(run.setting)).draw_ns[0] - 72 * ms) <= 10);   // rounded
    run.foreign_cores = 1;
    BOOST_TEST(drawpoint::replay(run, exact(run.setting)).draw_ns[0] == 78 * ms);
    ReplayOptions options = exact(run.setting);
    options.change.unlimited_cores = true;
    BOOST_TEST(drawpoint::replay(run, options).draw_ns[0] == 30 * ms);
}

BOOST_AUTO_TEST_CASE(workers_that_only_compute_do_as_much_as_if_they_were_as_many_as_the_cores) {
    const auto rate = [](Demand sample, std::size_t workers, bool unlimited = false) {
        RecordedRun run = constant_run({.batch_size = 8, .sample = sample, .compute = {0, 1'000}, .steps = 200});
        run.cores = 2;
        run.setting.num_workers = workers;
        run.setting.prefetch_depth = 1;
        ReplayOptions options = exact(run.setting);
        options.warm_up_steps = 50;
        options.change.unlimited_cores = unlimited;
        return drawpoint::replay(run, options).batches_per_s;
    };
    BOOST_TEST(rate({400'000, 0}, 6) == rate({400'000, 0}, 2), boost::test_tools::tolerance(0.01));
    BOOST_TEST(rate({400'000, 0}, 6, true) > 2 * rate({400'000, 0}, 2));
    BOOST_TEST(rate({100'000, 900'000}, 6) > 2 * rate({100'000, 900'000}, 2));
}

BOOST_AUTO_TEST_CASE(a_wait_too_short_to_leave_a_core_for_is_computed) {
    for (const std::int64_t wait_ns : {std::int64_t{4'999}, std::int64_t{5'000}}) {
        const RecordedRun run =
            constant_run({.batch_size = 1, .sample = {1 * ms, wait_ns}, .compute = {2 * ms, wait_ns}, .steps = 3});
        ReplayOptions options = exact(run.setting);
        options.keep_rows = true;
        const bool computed = wait_ns < 5'000;
        const Ledger ledger = drawpoint::replay(run, options).ledger;
        BOOST_TEST(ledger.stages_of(ledger.samples[0])[0].cpu_ns == 1 * ms + (computed ? wait_ns : 0));
        BOOST_TEST(*ledger.steps[0].cpu_ns == 2 * ms + (computed ? wait_ns : 0));
    }
}

BOOST_AUTO_TEST_CASE(what_a_sleep_takes_of_a_core_stays_however_short_it_is_and_goes_with_it) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {3 * ms, 10 * ms}, .compute = {}, .steps = 10});
    run.sleep_cpu_ns = 1 * ms;
    ReplayOptions options = exact(run.setting);
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 10 * 13 * ms);
    options.change.stages[0] = 0.5;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 10 * (5 + 1 + 1) * ms);
    options.change = {.waiting = 0.5};
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 10 * (5 + 3) * ms);
    options.change = {.waiting = 0};
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 10 * 2 * ms);
    run.samples.assign(run.samples.size(), {.stages = {Demand{3 * ms, 0}}});   // now nothing sleeps
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 10 * 3 * ms);
}

BOOST_AUTO_TEST_CASE(cores_that_all_compute_are_slower_by_their_efficiency) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {6 * ms, 0}, .compute = {0, 1'000 * ms}, .steps = 1});
    run.setting.num_workers = run.setting.prefetch_depth = 2;
    run.cores = 2;
    ReplayOptions options = exact(run.setting);
    options.core_efficiency = 0.75;   // each of two cores runs at 0.75
    BOOST_TEST(static_cast<double>(drawpoint::replay(run, options).draw_ns[0]) == 8e6,
               boost::test_tools::tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(a_worker_that_goes_to_sleep_leaves_the_loop_its_core) {
    // 8 x 0.32 ms per batch and a loop of 1.7 ms: two cores allow 469 batches per second, and real runs had 440. If no
    // worker yielded its slice to the loop, the loop would wait for workers that hold its next batch, while the other
    // core idles: 400.
    RecordedRun run = constant_run(
        {.batch_size = 8, .sample = {320 * ms / 1000, 0}, .compute = {1700 * ms / 1000, 0}, .steps = 2000});
    for (std::size_t i = 0; i < run.samples.size(); ++i)   // alternately shorter and longer
        run.samples[i].stages[0].cpu_ns += (static_cast<std::int64_t>(i * 37 % 64) - 32) * 5 * ms / 1000;
    run.cores = 2;
    run.setting.num_workers = run.setting.prefetch_depth = 2;
    const double rate = drawpoint::replay(run, {.setting = run.setting, .costs = {.wake_ns = ms / 100}}).batches_per_s;
    BOOST_TEST(rate > 425);
    BOOST_TEST(rate < 455);
}

BOOST_AUTO_TEST_CASE(a_loop_of_several_threads_queues_with_each_of_them) {
    // The loop's 9 ms of core time are split over three threads, on two cores, next to a worker that keeps computing:
    // two threads share one core from 3 to 9 ms, and the third gets the worker's core once its slice ends at 4 ms.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {3 * ms, 0}, .compute = {9 * ms, 0}, .steps = 1});
    run.setting.prefetch_depth = 2;
    run.cores = 2;
    run.steps[0].threads = 3;
    const Replayed replayed = drawpoint::replay(run, exact(run.setting));
    BOOST_TEST(replayed.draw_ns[0] == 3 * ms);
    BOOST_TEST(replayed.wall_ns == 3 * ms + 6 * ms);
}

BOOST_AUTO_TEST_CASE(the_same_replay_is_the_same_with_and_without_rows_and_another_seed_is_another) {
    const RecordedRun run = random_run(3);
    ReplayOptions options{.setting = run.setting, .steps = 200, .warm_up_steps = 10, .bootstrap_seed = 5};
    const Replayed once = drawpoint::replay(run, options);
    options.keep_rows = true;
    const Replayed again = drawpoint::replay(run, options);
    BOOST_TEST(once.draw_ns == again.draw_ns);
    BOOST_TEST(once.wall_ns == again.wall_ns);
    BOOST_TEST(once.events == again.events);
    BOOST_TEST(once.peak_bytes == again.peak_bytes);
    options.bootstrap_seed = 6;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns != once.wall_ns);
}

BOOST_AUTO_TEST_CASE(counted_steps_are_the_recorded_ones_whatever_warms_up) {
    RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 1}, .compute = {0, 1}, .steps = 10});
    for (std::size_t i = 0; i < run.steps.size(); ++i)
        run.steps[i].compute.wait_ns = static_cast<std::int64_t>(i + 1) * ms;
    for (std::size_t i = 0; i < run.samples.size(); ++i)
        run.samples[i].index = i;
    for (const std::size_t warm_up : {0u, 3u, 10u, 27u}) {
        ReplayOptions options = exact(run.setting);
        options.warm_up_steps = warm_up;
        options.keep_rows = true;
        const Replayed replayed = drawpoint::replay(run, options);
        for (std::size_t i = 0; i < 10; ++i) {
            const StepRow& step = replayed.ledger.steps[warm_up + i];
            BOOST_TEST(step.batch_ns == static_cast<std::int64_t>(i + 1) * ms);
            const auto sample = std::ranges::find(replayed.ledger.samples, step.batch, &SampleRow::batch);
            BOOST_TEST(sample->index == 2 * i);
        }
    }
}

BOOST_AUTO_TEST_CASE(without_variance_every_demand_is_its_mean) {
    RecordedRun run = random_run(11);
    ReplayOptions options = exact(run.setting);
    options.change.variance = 0;
    options.keep_rows = true;
    std::set<std::int64_t> computed, cpu;
    double sum = 0;
    for (const SampleDemand& sample : run.samples)
        sum += static_cast<double>(sample.stages[0].cpu_ns);
    const Ledger ledger = drawpoint::replay(run, options).ledger;
    for (const SampleRow& row : ledger.samples)
        cpu.insert(ledger.stages_of(row)[0].cpu_ns);
    BOOST_TEST(cpu.size() == 1u);
    const double mean = sum / static_cast<double>(run.samples.size());
    BOOST_TEST(*cpu.begin() == std::llround(mean));
    options.change.variance = 0.5;
    const Ledger half = drawpoint::replay(run, options).ledger;
    for (const SampleRow& row : half.samples) {
        const auto all_ns = static_cast<double>(run.samples[row.index].stages[0].cpu_ns);
        BOOST_TEST(half.stages_of(row)[0].cpu_ns == std::llround((all_ns + mean) / 2));
    }
    options.change.variance = 1.5;
    BOOST_CHECK_THROW(drawpoint::replay(run, options), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(another_batch_size_takes_the_same_samples_in_other_batches_and_steps_in_proportion) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 8 * ms}, .steps = 12});
    ReplayOptions options = exact(run.setting);
    options.setting.batch_size = 8;
    options.steps = 6;
    const Replayed replayed = drawpoint::replay(run, options);
    BOOST_TEST(replayed.draw_ns[0] == 8 * ms);
    BOOST_TEST(replayed.wall_ns == 8 * ms + 6 * 16 * ms);
}

BOOST_AUTO_TEST_CASE(a_collated_batch_is_made_by_the_worker_that_finishes_it_and_a_transfer_is_in_the_draw) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 100 * ms}, .steps = 5});
    run.collates = true;
    for (BatchDemand& batch : run.batches) {
        batch.collate = {3 * ms, 0};
        batch.transfer.wait_ns = 2 * ms;
        batch.bytes = 1 << 20;
    }
    ReplayOptions options = exact(run.setting);
    options.keep_rows = true;
    const Replayed replayed = drawpoint::replay(run, options);
    BOOST_TEST(replayed.draw_ns[0] == 4 * ms + 3 * ms + 2 * ms);
    BOOST_TEST(replayed.draw_ns[1] == 2 * ms);
    BOOST_TEST(replayed.ledger.batches[0].collate_end_ns - replayed.ledger.batches[0].collate_begin_ns == 3 * ms);
    BOOST_TEST(max_residual_ns(replayed.ledger) == 0);
    options.change.collate = 2;
    options.change.transfer = 0.5;
    BOOST_TEST(drawpoint::replay(run, options).draw_ns[0] == 4 * ms + 6 * ms + 1 * ms);
}

BOOST_AUTO_TEST_CASE(reads_ahead_hide_latency_that_workers_would_wait_for) {
    RecordedRun run = constant_run({.batch_size = 8, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 100});
    for (SampleDemand& sample : run.samples) {
        sample.read = {0, 5 * ms};
        sample.bytes = 10'000;
    }
    run.cores = 2;
    ReplayOptions options = exact(run.setting);
    options.warm_up_steps = 20;
    const Replayed own = drawpoint::replay(run, options);
    BOOST_TEST(own.wall_ns == 100 * 8 * 6 * ms);
    options.setting.read_concurrency = 32;
    const Replayed ahead = drawpoint::replay(run, options);
    BOOST_TEST(ahead.wall_ns < 100 * 8 * ms * 102 / 100);
    BOOST_TEST(ahead.wall_ns >= 100 * 8 * ms);
    options.setting.read_concurrency = 2;   // two at a time, 5 ms each, and the worker reads what no reader has begun
    const Replayed few = drawpoint::replay(run, options);
    BOOST_TEST(few.wall_ns > 2 * ahead.wall_ns);
    BOOST_TEST(few.wall_ns < own.wall_ns);
    options.change.waiting = 0;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == 100 * 8 * ms);
}

BOOST_AUTO_TEST_CASE(a_line_that_all_reads_share_lets_them_pass_one_after_the_other) {
    // 1 ms of latency, then 2 ms on the line: 3 ms per sample with one worker, 2 ms with any larger number.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 9 * ms}, .compute = {0, 0}, .steps = 50});
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
        run.samples[i].bytes = 1000;
        if (i % 2 == 0)
            run.samples[i].behind_ns = 7 * ms;   // the line was used until then
        else
            run.samples[i].stages[0].wait_ns = 3 * ms;   // it was free
    }
    run.line_ns_per_byte = 2000;
    run.line_latency_ns = 1 * ms;
    for (const auto& [workers, expected_ms] : {std::pair{1, 3}, {2, 2}, {6, 2}}) {
        ReplayOptions options = exact(run.setting);
        options.setting.num_workers = static_cast<std::size_t>(workers);
        options.warm_up_steps = 20;
        BOOST_TEST(drawpoint::replay(run, options).wall_ns == 50 * expected_ms * ms);
        options.change.stages[0] = 0.5;
        BOOST_TEST(drawpoint::replay(run, options).wall_ns == 50 * expected_ms * ms / 2);
        options.change = {.waiting = 0.5};
        BOOST_TEST(drawpoint::replay(run, options).wall_ns == 50 * expected_ms * ms / 2);
        options.change = {.waiting = 0};
        BOOST_TEST(drawpoint::replay(run, options).wall_ns == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_setting_that_the_loader_would_refuse_does_not_fit_its_memory) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 4});
    run.worker_bytes = 2 << 20;
    LoaderSetting setting = run.setting;
    setting.num_workers = 1000;
    BOOST_TEST(fits_memory(run, setting));   // without a budget
    setting.num_workers = 2;
    setting.memory_budget = 5 << 20;
    BOOST_TEST(fits_memory(run, setting));
    setting.num_workers = 3;
    BOOST_TEST(!fits_memory(run, setting));
}

BOOST_AUTO_TEST_CASE(a_memory_budget_is_kept_and_costs_depth) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 60});
    run.collates = true;
    run.worker_bytes = 1 << 20;
    for (std::size_t i = 0; i < run.batches.size(); ++i) {
        run.batches[i].collate = {1 * ms, 0};
        run.batches[i].bytes = (4 + i % 5) << 20;
    }
    ReplayOptions options = exact(run.setting);
    options.setting.prefetch_depth = 8;
    const std::uint64_t free = drawpoint::replay(run, options).peak_bytes;
    // in MiB; the smallest hold two batches and the memory to make one
    for (const std::uint64_t budget : {27u, 33u, 41u, 50u}) {
        options.setting.memory_budget = budget << 20;
        const Replayed bound = drawpoint::replay(run, options);
        BOOST_TEST(bound.peak_bytes <= options.setting.memory_budget);
        BOOST_TEST(bound.draw_ns.size() == 60u);
    }
    BOOST_TEST(free > options.setting.memory_budget);
}

BOOST_AUTO_TEST_CASE(the_peak_of_batches_of_one_size_is_the_plan) {
    RecordedRun run = constant_run({.batch_size = 16, .sample = {0, 1 * ms}, .compute = {0, 100 * ms}, .steps = 30});
    run.worker_bytes = 2 << 20;
    run.other_bytes = 12'345;
    for (BatchDemand& batch : run.batches)
        batch.bytes = 16 * (1000 * 1000 + 8);
    ReplayOptions options = exact(run.setting);
    options.setting.num_workers = 3;
    options.setting.prefetch_depth = 5;
    // Batches' memory is rounded up to huge pages; the indices' is not.
    const std::uint64_t slot = (8ull << 21) + 16 * 8;
    BOOST_TEST(drawpoint::replay(run, options).peak_bytes == 6 * slot + 3 * (2ull << 20) + 12'345);
}

BOOST_AUTO_TEST_CASE(a_woken_worker_looks_for_work_on_a_core) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 10 * ms}, .compute = {0, 1 * ms}, .steps = 11});
    run.setting.prefetch_depth = 1;
    run.steps[5].compute.wait_ns = 100 * ms;   // long enough for the worker to sleep
    ReplayOptions options = exact(run.setting);
    const std::int64_t before_ns = drawpoint::replay(run, options).wall_ns;
    options.costs.look_ns = 200'000;
    BOOST_TEST(drawpoint::replay(run, options).wall_ns == before_ns + 200'000);
}

BOOST_AUTO_TEST_CASE(a_wake_costs_what_it_costs) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 10 * ms}, .compute = {0, 1 * ms}, .steps = 11});
    ReplayOptions options = exact(run.setting);
    options.costs.wake_ns = 30'000;
    const Replayed replayed = drawpoint::replay(run, options);
    // The loop is always asleep when its batch arrives, and the workers' rate does not change, so it never catches up.
    BOOST_TEST(replayed.wall_ns == 11 * 10 * ms + 1 * ms + 30'000);
}

BOOST_AUTO_TEST_CASE(what_a_worker_does_between_samples_takes_its_core) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {2 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10});
    run.overhead_ns = 500;
    BOOST_TEST(drawpoint::replay(run, exact(run.setting)).wall_ns == 40 * (2 * ms + 500) + 1 * ms);
    for (SampleDemand& sample : run.samples)
        sample.unstamped_ns = 200'000;
    BOOST_TEST(drawpoint::replay(run, exact(run.setting)).wall_ns == 40 * (2 * ms + 200'500) + 1 * ms);
}

BOOST_AUTO_TEST_CASE(a_batch_is_given_back_before_what_comes_after_it) {
    // Two slots, and a worker for each: batch k + 2 begins when batch k is given back, and is complete 30 ms later.
    // Draws are at T(k+1) = max(T(k) + compute + after, T(k-1) + compute + 30 ms).
    RecordedRun run = constant_run({.batch_size = 1, .sample = {0, 30 * ms}, .steps = 40});
    run.setting.num_workers = 2;
    run.setting.prefetch_depth = 1;
    const auto wall = [&run](Demand compute, Demand after) {
        for (StepDemand& step : run.steps)
            step.compute = compute, step.after = after;
        ReplayOptions options = exact(run.setting);
        options.warm_up_steps = 10;
        options.keep_rows = true;
        const Replayed replayed = drawpoint::replay(run, options);
        BOOST_TEST(max_residual_ns(replayed.ledger) == 0);
        BOOST_TEST(replayed.ledger.steps[5].batch_ns == compute.ns());
        return replayed.wall_ns;
    };
    BOOST_TEST(wall({0, 20 * ms}, {}) == 20 * 50 * ms);
    BOOST_TEST(wall({0, 2 * ms}, {0, 18 * ms}) == 40 * 20 * ms);
    BOOST_TEST(wall({2 * ms, 0}, {18 * ms, 0}) == 40 * 20 * ms);
    BOOST_TEST(wall({0, 10 * ms}, {4 * ms, 6 * ms}) == 40 * 20 * ms);
}

BOOST_AUTO_TEST_CASE(what_is_out_of_range_is_refused_by_name) {
    const RecordedRun run = constant_run({.batch_size = 1, .steps = 2});
    const auto refused = [&](std::string_view name, auto change) {
        ReplayOptions options{.setting = run.setting};
        RecordedRun of = run;
        change(options, of);
        BOOST_CHECK_EXCEPTION((void)drawpoint::replay(of, options), std::invalid_argument,
                              [&](const auto& error) { return says(error, name); });
    };
    refused("prefetch_depth", [](ReplayOptions& o, RecordedRun&) { o.setting.prefetch_depth = 0; });
    refused("prefetch_depth", [](ReplayOptions& o, RecordedRun&) { o.setting.prefetch_depth = 56; });
    refused("num_workers", [](ReplayOptions& o, RecordedRun&) { o.setting.num_workers = 5000; });
    refused("batch_size", [](ReplayOptions& o, RecordedRun&) { o.setting.batch_size = 0; });
    refused("core_efficiency", [](ReplayOptions& o, RecordedRun&) { o.core_efficiency = 0; });
    refused("change.compute", [](ReplayOptions& o, RecordedRun&) { o.change.compute = -1; });
    refused("change.stages", [](ReplayOptions& o, RecordedRun&) { o.change.stages[3] = NAN; });
    refused("samples were thinned", [](ReplayOptions&, RecordedRun& r) { r.unusable = "samples were thinned"; });
    refused("no samples", [](ReplayOptions&, RecordedRun& r) { r.samples.clear(); });
    refused("a demand must be 0 to 2199 s", [](ReplayOptions& o, RecordedRun& r) {   // scaled to a larger batch
        o.setting.batch_size = 1u << 20;
        r.steps[1].compute.wait_ns = std::int64_t{1} << 40;
    });
    refused("more than 536870912 samples", [](ReplayOptions& o, RecordedRun&) {
        o.setting.batch_size = 1u << 20;
        o.steps = 1u << 20;
    });
    refused("73 years", [](ReplayOptions& o, RecordedRun& r) {
        o.steps = 3'000'000;
        r.steps[0].pause_ns = r.steps[1].pause_ns = std::int64_t{1} << 41;
    });
    refused("a demand must be 0 to 2199 s",
            [](ReplayOptions&, RecordedRun& r) { r.samples[0].stages[0].cpu_ns = std::int64_t{1} << 50; });
}

BOOST_AUTO_TEST_SUITE_END()
