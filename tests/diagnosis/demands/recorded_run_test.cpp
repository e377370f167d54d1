#include <drawpoint/diagnosis/demands/recorded_run.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/facts.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

constexpr std::int64_t ms = 1'000'000;

Ledger ledger_of(const RecordedRun& run, std::size_t steps = 0, bool unlimited_cores = false) {
    ReplayOptions options = exact(run.setting);
    options.keep_rows = options.ends = true;
    options.steps = steps;
    options.change.unlimited_cores = unlimited_cores;
    Ledger ledger = replay(run, options).ledger;
    ledger.set_fact(facts::machine_cores, std::to_string(run.cores));
    return ledger;
}

std::int64_t wall_of(const SampleDemand& sample) {
    std::int64_t sum = sample.read.ns();
    for (const Demand& stage : sample.stages)
        sum += stage.ns();
    return sum;
}

void forget_cpu(Ledger& ledger, std::size_t keep_every) {
    for (std::size_t i = 0; i < ledger.samples.size(); ++i) {
        if (keep_every != 0 && i % keep_every == 0)
            continue;
        SampleRow& row = ledger.samples[i];
        row.cpu_ns = row.run_queue_ns = std::nullopt;
        for (std::uint32_t stage = 0; stage < row.stages.count; ++stage)
            ledger.stages[row.stages.first + stage].cpu_ns = no_stamp;
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(recorded_run)

BOOST_AUTO_TEST_CASE(one_that_was_not_measured_computed_as_much_as_the_one_that_took_most_nearly_as_long) {
    // Three workers on one core: samples wait for it for different times, and each computes 5 ms.
    RecordedRun run = constant_run({.batch_size = 1, .sample = {5 * ms, 0}, .compute = {0, 1 * ms}, .steps = 200});
    run.setting.num_workers = 3;
    run.setting.prefetch_depth = 4;
    run.cores = 1;
    Ledger ledger = ledger_of(run);
    const auto waited = [&](const SampleRow& row) { return ledger.stages_of(row)[0].ns > 10 * ms; };
    BOOST_TEST(std::ranges::any_of(ledger.samples, waited));
    forget_cpu(ledger, 3);
    ledger.orders = {{.begin_ns = ledger.steps[3].draw_begin_ns, .ns = 10 * ms, .cpu_ns = 5 * ms, .worker = 0}};
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (const SampleDemand& sample : read.samples) {
        BOOST_TEST(std::abs(sample.stages[0].cpu_ns - 5 * ms) < ms / 2);
        BOOST_TEST(sample.stages[0].wait_ns < ms / 10);
    }
    BOOST_TEST(read.order.cpu_ns == 5 * ms);
    BOOST_TEST(read.order.wait_ns < 4 * ms);   // without as much of it as samples waited for a core
}

BOOST_AUTO_TEST_CASE(a_replayed_ledger_is_read_back_as_the_demands_it_was_replayed_from) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        RecordedRun run = random_run(seed);
        for (SampleDemand& sample : run.samples)
            for (Demand& stage : sample.stages)
                if (stage.wait_ns < 5'000)   // a replay treats so short waits as computing
                    stage.wait_ns = 0;
        const RecordedRun read = drawpoint::recorded_run(ledger_of(run, 0, true), 0);
        BOOST_TEST(read.unusable == "");
        BOOST_TEST((read.setting == run.setting));
        BOOST_TEST((read.stages == run.stages));
        BOOST_TEST(read.cpu_measured);
        BOOST_TEST(read.loop_cpu_measured);
        BOOST_TEST(read.cores == run.cores);
        BOOST_REQUIRE(read.samples.size() == run.samples.size());
        for (std::size_t i = 0; i < run.samples.size(); ++i) {
            BOOST_TEST(read.samples[i].index == run.samples[i].index);
            BOOST_TEST(read.samples[i].batch == run.samples[i].batch);
            BOOST_TEST((read.samples[i].stages == run.samples[i].stages));
        }
        BOOST_REQUIRE(read.steps.size() == run.steps.size());
        for (std::size_t i = 0; i < run.steps.size(); ++i)
            BOOST_TEST((read.steps[i].compute == run.steps[i].compute));
        for (std::size_t i = 0; i < run.batches.size(); ++i)
            BOOST_TEST(read.batches[i].bytes == run.batches[i].bytes);
    }
}

BOOST_AUTO_TEST_CASE(a_transfer_is_known_by_its_batch_or_by_what_the_draw_waited_for) {
    RecordedRun run = random_run(4);
    for (BatchDemand& batch : run.batches)
        batch.transfer.wait_ns = 2 * ms + batch.size;
    Ledger ledger = ledger_of(run, 0, true);
    for (const bool stamped : {true, false}) {
        if (!stamped)
            for (BatchRow& row : ledger.batches)
                row.transfer_issue_ns = row.transfer_done_ns = no_stamp;
        const RecordedRun read = drawpoint::recorded_run(ledger, 0);
        BOOST_REQUIRE(read.batches.size() == run.batches.size());
        for (std::size_t i = 0; i < run.batches.size(); ++i)
            BOOST_TEST(read.batches[i].transfer.wait_ns == run.batches[i].transfer.wait_ns,
                       "batch " << i << ", " << stamped);
    }
}

BOOST_AUTO_TEST_CASE(collating_takes_the_cpu_time_that_was_measured_however_long_it_took) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 20});
    run.collates = true;
    for (BatchDemand& batch : run.batches)
        batch.collate = {3 * ms, 0};
    Ledger ledger = ledger_of(run, 0, true);
    for (std::size_t i = 0; i < ledger.batches.size(); ++i) {
        BatchRow& row = ledger.batches[i];
        row.collate_end_ns += 7 * ms;
        row.collate_run_queue_ns = 5 * ms;
        if (i % 4 != 0)
            row.collate_cpu_ns = row.collate_run_queue_ns = no_stamp;
    }
    for (const BatchDemand& batch : drawpoint::recorded_run(ledger, 0).batches)
        BOOST_TEST((batch.collate == Demand{3 * ms, 2 * ms}));
    for (BatchRow& row : ledger.batches)
        row.collate_run_queue_ns = no_stamp;   // taken for the whole rest
    for (const BatchDemand& batch : drawpoint::recorded_run(ledger, 0).batches)
        BOOST_TEST((batch.collate == Demand{3 * ms, 0}));
    for (BatchRow& row : ledger.batches)   // as in recordings of earlier versions
        row.collate_cpu_ns = no_stamp;
    for (const BatchDemand& batch : drawpoint::recorded_run(ledger, 0).batches)
        BOOST_TEST((batch.collate == Demand{10 * ms, 0}));
}

BOOST_AUTO_TEST_CASE(the_scheduler_is_the_recorded_machines_or_as_linux_has_it_for_so_many_cores) {
    Ledger ledger;
    ledger.set_fact(facts::host_online_cores, "1");
    SchedulerTimes times = scheduler_times(ledger);
    BOOST_TEST(times.base_slice_ns == 700'000);
    BOOST_TEST(times.assumed == "tick, base slice, migration cost");
    ledger.set_fact(facts::host_online_cores, "64");
    ledger.set_fact(facts::host_tick_ns, "1000000");
    ledger.set_fact(facts::host_migration_cost_ns, "250000");
    times = scheduler_times(ledger);
    BOOST_TEST(times.tick_ns == 1'000'000);
    BOOST_TEST(times.base_slice_ns == 2'800'000);
    BOOST_TEST(times.migration_cost_ns == 250'000);
    BOOST_TEST(times.assumed == "base slice");
    ledger.set_fact(facts::host_base_slice_ns, "3000000");
    BOOST_TEST(scheduler_times(ledger).base_slice_ns == 3'000'000);
    for (const char* no_tick : {"-4", "1", "1e9", "nan"}) {   // 1: the coarse clock of a sandbox is a fine one
        ledger.set_fact(facts::host_tick_ns, no_tick);
        BOOST_TEST(scheduler_times(ledger).tick_ns == 4'000'000, no_tick);
        BOOST_TEST(scheduler_times(ledger).assumed == "tick", no_tick);
    }
    RecordedRun run = constant_run({.batch_size = 1, .sample = {30 * ms, 0}, .compute = {1 * ms, 0}, .steps = 9});
    run.setting.num_workers = run.setting.prefetch_depth = 3;
    run.cores = 1;   // where several workers take turns at ticks
    ReplayOptions options = exact(run.setting);
    const std::uint64_t often = replay(run, options).events;
    const std::int64_t wall_ns = replay(run, options).wall_ns;
    run.scheduler.tick_ns = 60 * ms;
    BOOST_TEST((replay(run, options).events != often || replay(run, options).wall_ns != wall_ns));
    run.scheduler.tick_ns = 0;
    BOOST_CHECK_THROW(replay(run, exact(run.setting)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_wait_for_a_core_is_no_demand) {
    RecordedRun run = random_run(2);
    run.setting.num_workers = 5;
    run.cores = 1;
    for (StepDemand& step : run.steps)
        step.compute = {2 * ms, 1 * ms};
    const RecordedRun read = drawpoint::recorded_run(ledger_of(run), 0);
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
        std::int64_t cpu = 0, was = 0;
        for (std::size_t stage = 0; stage < 2; ++stage) {
            cpu += read.samples[i].stages[stage].cpu_ns;
            was += run.samples[i].stages[stage].cpu_ns;
        }
        BOOST_TEST(cpu == was);
        BOOST_TEST(std::abs(wall_of(read.samples[i]) - wall_of(run.samples[i])) <= 2);
    }
    for (std::size_t i = 0; i < run.steps.size(); ++i)
        BOOST_TEST((read.steps[i].compute == run.steps[i].compute));
}

BOOST_AUTO_TEST_CASE(a_sample_waits_where_those_wait_that_hardly_queued) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {}, .compute = {0, 1 * ms}, .steps = 60});
    run.stages = {"read", "decode"};
    for (SampleDemand& sample : run.samples)
        sample.stages = {Demand{1 * ms, 4 * ms}, Demand{2 * ms, 0}};
    Ledger ledger = ledger_of(run);
    for (std::size_t i = 0; i < ledger.samples.size(); i += 3) {   // these lost their core in the middle of decoding
        ledger.stages[ledger.samples[i].stages.first + 1].ns += 3 * ms;
        ledger.samples[i].run_queue_ns = 3 * ms;
    }
    for (const SampleDemand& sample : drawpoint::recorded_run(ledger, 0).samples) {
        BOOST_TEST((sample.stages[0] == Demand{1 * ms, 4 * ms}));
        BOOST_TEST((sample.stages[1] == Demand{2 * ms, 0}));
    }
}

BOOST_AUTO_TEST_CASE(samples_without_cpu_time_get_the_shares_of_those_with) {
    RecordedRun run = constant_run({.batch_size = 4, .steps = 40});
    run.stages = {"read", "decode"};
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
        const auto length = static_cast<std::int64_t>(i % 3 + 1);
        run.samples[i].stages[0] = {1 * ms * length, 3 * ms * length};
        run.samples[i].stages[1] = {2 * ms * length, 0};
    }
    Ledger ledger = ledger_of(run);
    forget_cpu(ledger, 16);
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.cpu_measured);
    for (std::size_t i = 0; i < run.samples.size(); ++i)
        BOOST_TEST((read.samples[i].stages == run.samples[i].stages));
}

BOOST_AUTO_TEST_CASE(what_measuring_takes_before_the_stages_is_no_part_of_their_cpu_time) {
    const RecordedRun run =
        constant_run({.batch_size = 4, .sample = {20'000, 0}, .compute = {0, 1 * ms}, .steps = 200});
    Ledger ledger = ledger_of(run);
    forget_cpu(ledger, 3);
    for (SampleRow& row : ledger.samples)
        if (row.cpu_ns)
            row.begin_ns -= 10'000;
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (const SampleDemand& sample : read.samples)
        BOOST_TEST(sample.stages[0].cpu_ns == 20'000);
}

BOOST_AUTO_TEST_CASE(nothing_waits_for_less_than_it_takes_to_leave_a_core) {
    RecordedRun run =
        constant_run({.batch_size = 4, .sample = {20'000, 3'000}, .compute = {1 * ms, 3'000}, .steps = 200});
    const RecordedRun read = drawpoint::recorded_run(ledger_of(run), 0);
    for (const SampleDemand& sample : read.samples)
        BOOST_TEST((sample.stages[0] == Demand{23'000, 0}));
    for (const StepDemand& step : read.steps)
        BOOST_TEST((step.compute == Demand{1 * ms + 3'000, 0}));
}

BOOST_AUTO_TEST_CASE(far_longer_samples_are_a_class_of_their_own) {
    RecordedRun run = constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 50});
    for (std::size_t i = 0; i < run.samples.size(); i += 10)
        run.samples[i].stages[0] = {1 * ms, 29 * ms};   // a straggler waits
    Ledger ledger = ledger_of(run);
    forget_cpu(ledger, 20);   // 5 of the 10 stragglers are measured, and none of the others
    forget_cpu(ledger, 5);
    for (SampleRow& row : ledger.samples)
        if (row.slot == 1 && row.batch == 3) {   // and one of the others
            row.cpu_ns = 1 * ms;
            row.run_queue_ns = 0;
            ledger.stages[row.stages.first].cpu_ns = 1 * ms;
        }
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (std::size_t i = 0; i < run.samples.size(); ++i)
        BOOST_TEST((read.samples[i].stages[0] == run.samples[i].stages[0]));
}

BOOST_AUTO_TEST_CASE(one_far_longer_than_all_that_were_measured_waits_for_no_core) {
    // Of the usual ones each waits for a core as long as it computes, as far as that is known.
    RecordedRun run = constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 100});
    for (const std::size_t i : {51u, 111u, 171u})
        run.samples[i].stages[0] = {1 * ms, 119 * ms};
    Ledger ledger = ledger_of(run);
    forget_cpu(ledger, 5);   // none of the three is measured
    for (SampleRow& row : ledger.samples)
        if (row.cpu_ns) {
            row.run_queue_ns = ms / 2;
            row.cpu_ns = ledger.stages[row.stages.first].cpu_ns = ms / 2;
        }
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (const std::size_t i : {51u, 111u, 171u})
        BOOST_TEST(read.samples[i].stages[0].wait_ns > 115 * ms);
    BOOST_TEST(read.samples[52].stages[0].wait_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_sample_whose_own_sum_is_known_keeps_it) {
    RecordedRun run = constant_run({.batch_size = 1, .steps = 20});
    run.stages = {"read", "decode"};
    for (std::size_t i = 0; i < run.samples.size(); ++i)
        run.samples[i].stages = {Demand{0, 2 * ms}, Demand{static_cast<std::int64_t>(i + 1) * ms / 8, ms}};
    Ledger ledger = ledger_of(run);
    for (std::size_t i = 1; i < ledger.stages.size(); ++i)
        ledger.stages[i].cpu_ns = no_stamp;
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
        BOOST_TEST(std::abs(read.samples[i].stages[0].cpu_ns + read.samples[i].stages[1].cpu_ns -
                            run.samples[i].stages[1].cpu_ns) <= 1);
        BOOST_TEST(std::abs(wall_of(read.samples[i]) - wall_of(run.samples[i])) <= 2);
    }
}

BOOST_AUTO_TEST_CASE(where_nothing_was_measured_samples_compute_and_steps_wait) {
    const RecordedRun run =
        constant_run({.batch_size = 2, .sample = {2 * ms, 1 * ms}, .compute = {4 * ms, 0}, .steps = 10});
    Ledger ledger = ledger_of(run);
    forget_cpu(ledger, 0);
    for (StepRow& row : ledger.steps)
        row.cpu_ns = row.run_queue_ns = std::nullopt;
    RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(!read.cpu_measured);
    BOOST_TEST(!read.loop_cpu_measured);
    BOOST_TEST((read.samples[0].stages[0] == Demand{3 * ms, 0}));
    BOOST_TEST((read.steps[3].compute == Demand{0, 4 * ms}));

    // The loop's compute follows from host rows: what the process computed and no worker did.
    const std::int64_t end = ledger.passes.back().end_ns;
    const std::int64_t workers = 10 * 2 * 3 * ms, loop = 10 * 2 * ms;   // half of the steps' time
    ledger.host = {{.at_ns = 0, .own_cpu_ns = 77}, {.at_ns = end, .own_cpu_ns = 77 + workers + loop}};
    read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(std::abs(read.steps[3].compute.cpu_ns - 2 * ms) <= 1);
    BOOST_TEST(std::abs(read.steps[3].compute.wait_ns - 2 * ms) <= 1);
    BOOST_TEST(read.steps[3].threads == 1.0);
    // An order is no compute of the steps, whoever computed it.
    ledger.orders = {{.begin_ns = ledger.steps[3].draw_begin_ns, .ns = 7 * ms, .cpu_ns = 6 * ms}};
    ledger.host[1].own_cpu_ns += 6 * ms;
    for (const std::optional<std::uint16_t> worker : {std::optional<std::uint16_t>{0}, {}}) {
        ledger.orders[0].worker = worker;
        read = drawpoint::recorded_run(ledger, 0);
        BOOST_TEST(std::abs(read.steps[3].compute.cpu_ns - 2 * ms) <= 1);
        BOOST_TEST((read.order == Demand{6 * ms, 1 * ms}));
    }
    ledger.orders.clear();
    // More compute than the steps took: several threads must have computed.
    ledger.host[1].own_cpu_ns = 77 + workers + 4 * 10 * 3 * ms;
    read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.steps[3].threads == 3.0, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(std::abs(read.steps[3].compute.cpu_ns - 12 * ms) <= 1);
}

BOOST_AUTO_TEST_CASE(how_long_woken_threads_took_to_run_is_read_and_replayed) {
    RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 60});
    ReplayOptions options = exact(run.setting);
    options.costs.wake_ns = 40'000;
    options.keep_rows = options.ends = true;
    const Ledger once = replay(run, options).ledger;
    BOOST_TEST(drawpoint::recorded_run(once, 0).loop_wake_ns == 40'000);
    BOOST_TEST(drawpoint::recorded_run(once, 50).loop_wake_ns == 0);   // of too few draws

    run.reads_ahead = true;
    run.stages = {"read", "make"};
    for (SampleDemand& sample : run.samples) {
        sample.read = std::exchange(sample.stages[0], {});
        sample.stages[1] = {1'000, 0};
    }
    options.setting.read_concurrency = run.setting.read_concurrency = 2;
    run.loop_wake_ns = 50'000;
    run.read_wake_ns = 70'000;
    const RecordedRun read = drawpoint::recorded_run(replay(run, options).ledger, 0);
    BOOST_TEST(read.loop_wake_ns == 50'000);
    BOOST_TEST(read.read_wake_ns == 70'000);
}

BOOST_AUTO_TEST_CASE(what_a_loop_spins_for_its_late_threads_is_no_work) {
    // 2 ms on each of two threads. In two steps out of three the other thread is late, and the loop's own spins for 3
    // ms more.
    const RecordedRun run = constant_run({.batch_size = 1, .sample = {3 * ms, 0}, .compute = {5 * ms, 0}, .steps = 60});
    for (const bool cores_are_full : {true, false})
        for (const bool waits_spinning : {true, false}) {
            Ledger ledger = ledger_of(run);
            ledger.set_fact(facts::machine_cores, cores_are_full ? "2" : "3");
            for (std::size_t i = 0; i < ledger.steps.size(); ++i)
                ledger.steps[i].cpu_ns = waits_spinning && i % 3 == 0 ? 2 * ms : 5 * ms;
            const std::int64_t own = 60 * (waits_spinning ? 4 : 5) * ms, end = ledger.passes.back().end_ns;
            const std::int64_t beside = 60 * (waits_spinning ? 2 : 3) * ms;
            ledger.host = {{.at_ns = 0, .own_cpu_ns = 0}, {.at_ns = end, .own_cpu_ns = 60 * 3 * ms + own + beside}};
            const RecordedRun read = drawpoint::recorded_run(ledger, 0);
            const StepDemand step = read.steps[3];
            const bool spins = cores_are_full && waits_spinning;
            BOOST_TEST(step.spins == spins);
            if (spins) {
                BOOST_TEST(step.threads == 2.0);
                BOOST_TEST(step.compute.cpu_ns == 4 * ms);
                BOOST_TEST(read.least_loop_work == 1.0, boost::test_tools::tolerance(1e-3));
                // If the other thread seems to compute more than the loop's ever did, it may spin as well.
                ledger.host[1].own_cpu_ns += 60 * ms;
                const RecordedRun more = drawpoint::recorded_run(ledger, 0);
                BOOST_TEST(more.steps[3].compute.cpu_ns == 6 * ms);
                BOOST_TEST(more.least_loop_work == 2.0 / 3, boost::test_tools::tolerance(1e-3));
            } else {
                BOOST_TEST(step.threads == static_cast<double>(own + beside) / static_cast<double>(own),
                           boost::test_tools::tolerance(1e-3));
            }
        }
}

BOOST_AUTO_TEST_CASE(steps_that_were_not_measured_get_the_shares_of_those_that_were) {
    const RecordedRun run =
        constant_run({.batch_size = 2, .sample = {0, 1 * ms}, .compute = {3 * ms, 1 * ms}, .steps = 40});
    Ledger ledger = ledger_of(run);
    for (std::size_t i = 0; i < ledger.steps.size(); ++i)
        if (i % 8 != 3)
            ledger.steps[i].cpu_ns = ledger.steps[i].run_queue_ns = std::nullopt;
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.loop_cpu_measured);
    for (const StepDemand& step : read.steps)
        BOOST_TEST((step.compute == Demand{3 * ms, 1 * ms}));
}

BOOST_AUTO_TEST_CASE(the_figures_are_those_of_the_steps_from_the_first_on) {
    RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 30});
    const RecordedRun read = drawpoint::recorded_run(ledger_of(run), 10);
    BOOST_TEST(read.steps.size() == 20u);
    BOOST_TEST(read.samples.size() == 40u);
    BOOST_TEST(read.samples[0].index == 20u);
    BOOST_TEST(read.batches_per_s == 1e3 / 6, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(read.draw_share == 2.0 / 6, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(drawpoint::recorded_run(ledger_of(run), 30).unusable != "");
    BOOST_TEST(drawpoint::recorded_run(Ledger{}, 0).unusable == "no loader of drawpoint was recorded");
}

BOOST_AUTO_TEST_CASE(a_pass_that_another_followed_says_how_long_passes_are) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 26});
    run.pass_samples = 50;   // 13 batches, the last of 2
    run.steps[12].pause_ns = 40 * ms;
    const RecordedRun read = drawpoint::recorded_run(ledger_of(run, 26), 15);
    BOOST_TEST(read.pass_batches == 13u);
    BOOST_TEST(read.pass_samples == 50u);
    BOOST_TEST(read.first_in_pass == 8u);
    BOOST_TEST(read.samples.size() == 42u);
    BOOST_TEST(read.batches.back().size == 2u);
    BOOST_TEST(read.other_bytes == 50 * 8u);
    BOOST_TEST(drawpoint::recorded_run(ledger_of(run, 26), 5).steps[7].pause_ns == 40 * ms);
    BOOST_TEST(drawpoint::recorded_run(ledger_of(run, 13), 5).pass_samples == 0u);
}

BOOST_AUTO_TEST_CASE(what_an_order_takes_is_the_mean_of_those_computed_after_the_warm_up) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 39});
    run.pass_samples = 52;
    run.order = {3 * ms, 2 * ms};
    Ledger ledger = ledger_of(run, 39);
    BOOST_TEST((drawpoint::recorded_run(ledger, 5).order == Demand{3 * ms, 2 * ms}));
    ledger.orders.resize(2);
    OrderRow& first = ledger.orders.front();
    first.ns = 25 * ms;
    first.cpu_ns = no_stamp;
    first.begin_ns = ledger.orders[1].begin_ns;
    BOOST_TEST((drawpoint::recorded_run(ledger, 5).order == Demand{14 * ms, 1 * ms}));
    first.begin_ns = 0;   // in the warm-up
    BOOST_TEST((drawpoint::recorded_run(ledger, 5).order == Demand{3 * ms, 2 * ms}));
    ledger.orders.resize(1);
    BOOST_TEST((drawpoint::recorded_run(ledger, 5).order == Demand{25 * ms, 0}));   // better than nothing
    first.pipeline = 1;
    BOOST_TEST((drawpoint::recorded_run(ledger, 5).order == Demand{}));
}

BOOST_AUTO_TEST_CASE(reads_ahead_are_demands_of_the_read_and_what_was_left_of_them_is_not) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 60});
    run.stages = {"read", "decode"};
    for (SampleDemand& sample : run.samples) {
        sample.read = {0, 7 * ms};
        sample.stages = {Demand{}, Demand{2 * ms, 0}};
    }
    run.setting.read_concurrency = 16;
    Ledger ledger = ledger_of(run);
    BOOST_REQUIRE(std::ranges::any_of(ledger.samples, [](auto& row) { return row.read_begin_ns != no_stamp; }));
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.reads_ahead);
    for (const SampleDemand& sample : read.samples) {
        BOOST_TEST((sample.read == Demand{0, 7 * ms}));
        BOOST_TEST((sample.stages[0] == Demand{}));
        BOOST_TEST((sample.stages[1] == Demand{2 * ms, 0}));
    }
    // The same where nothing was measured.
    Ledger unmeasured = ledger;
    for (SampleRow& row : unmeasured.samples)
        row.cpu_ns.reset(), row.run_queue_ns.reset();
    for (StageRow& row : unmeasured.stages)
        row.cpu_ns = no_stamp;
    for (const SampleDemand& sample : drawpoint::recorded_run(unmeasured, 0).samples)
        BOOST_TEST((sample.stages[0] == Demand{}));
    // Some readers report what they computed and how long they queued; the others are taken to be alike.
    for (SampleRow& row : ledger.samples)
        if (row.index % 3 == 0 && row.read_begin_ns != no_stamp) {
            row.read_cpu_ns = 1 * ms;
            row.read_run_queue_ns = 2 * ms;
        }
    const auto is_split = [](const SampleDemand& sample) { return sample.read == Demand{1 * ms, 4 * ms}; };
    const auto ahead = std::ranges::count_if(ledger.samples, [](auto& row) { return row.read_begin_ns != no_stamp; });
    BOOST_TEST(std::ranges::count_if(drawpoint::recorded_run(ledger, 0).samples, is_split) == ahead);
}

BOOST_AUTO_TEST_CASE(only_what_was_recorded_after_the_last_change_of_a_setting_counts) {
    const RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 30});
    Ledger ledger = ledger_of(run);
    ledger.settings.push_back(
        {.at_ns = ledger.steps[20].draw_begin_ns, .num_workers = 3, .prefetch_depth = 5, .read_concurrency = 7});
    const RecordedRun read = drawpoint::recorded_run(ledger, 10);
    BOOST_TEST(read.steps.size() == 10u);
    BOOST_TEST(read.setting.num_workers == 3u);
    BOOST_TEST(read.setting.prefetch_depth == 5u);
    BOOST_TEST(read.setting.read_concurrency == 7u);
}

BOOST_AUTO_TEST_CASE(batches_without_all_samples_are_left_out_and_too_many_make_it_unusable) {
    const RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 30});
    Ledger ledger = ledger_of(run);
    std::erase_if(ledger.samples, [](const SampleRow& row) { return row.batch % 3 == 1 && row.slot == 0; });
    RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.unusable == "");
    BOOST_TEST(read.batches.size() == 20u);
    BOOST_TEST(read.samples.size() == 40u);
    BOOST_TEST(read.samples.back().batch == 19u);
    BOOST_TEST(read.steps.size() == 30u);
    std::erase_if(ledger.samples, [](const SampleRow& row) { return row.batch % 3 != 0; });
    ledger.thinnings.push_back({.slices_every = 3, .samples_every = 3});
    read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.unusable == "only 10 of 30 batches have all their samples recorded (thinned to every 3rd batch)");
}

BOOST_AUTO_TEST_CASE(the_usual_gap_between_samples_of_a_worker_is_its_overhead) {
    const RecordedRun run = constant_run({.batch_size = 8, .sample = {2 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10});
    Ledger ledger = ledger_of(run);
    for (SampleRow& row :
         ledger.samples) {   // each begins 700 ns late, except one that was preempted, and ends in time
        const std::int64_t late = row.slot == 3 ? 900'000 : 700;
        row.begin_ns += late;
        StageRow& stage = ledger.stages[row.stages.first];
        stage.begin_ns += late;
        stage.ns -= late;
    }
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).overhead_ns == 700);
    BOOST_TEST(drawpoint::recorded_run(ledger_of(run), 0).overhead_ns == 0);
    for (SampleRow& row : ledger.samples) {   // long gaps are work, too, if they are usual
        row.begin_ns += 200'000;
        ledger.stages[row.stages.first].begin_ns += 200'000;
        ledger.stages[row.stages.first].ns -= 200'000;
    }
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).overhead_ns == 200'700);
}

BOOST_AUTO_TEST_CASE(time_of_a_sample_that_is_in_no_stage_is_a_demand) {
    const RecordedRun run = constant_run({.batch_size = 8, .sample = {2 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10});
    Ledger ledger = ledger_of(run);
    for (SampleRow& row : ledger.samples) {   // its stage begins late; once the worker was preempted there
        const std::int64_t late = row.slot == 3 ? 1'900'000 : 300'000;
        StageRow& stage = ledger.stages[row.stages.first];
        stage.begin_ns += late;
        stage.ns -= late;
        stage.cpu_ns = no_stamp;   // not measured: as core time
        row.cpu_ns.reset();
    }
    RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_REQUIRE(!read.samples.empty());
    for (const SampleDemand& sample : read.samples)
        BOOST_TEST(sample.unstamped_ns == (sample.index % 8 == 3 ? 4 * 300'000 + 50'000 : 300'000));
    for (SampleRow& row : ledger.samples) {
        StageRow& stage = ledger.stages[row.stages.first];
        stage.cpu_ns = stage.ns;
        row.cpu_ns = stage.ns + 100'000;   // of the time before the stage
    }
    read = drawpoint::recorded_run(ledger, 0);
    for (const SampleDemand& sample : read.samples) {
        BOOST_TEST(sample.unstamped_ns == 100'000);
        BOOST_TEST(sample.stages[0].cpu_ns == (sample.index % 8 == 3 ? 100'000 : 1'700'000));
    }
    BOOST_TEST(drawpoint::recorded_run(ledger_of(run), 0).samples.front().unstamped_ns == 0);
}

BOOST_AUTO_TEST_CASE(runs_of_samples_are_as_many_samples) {
    const RecordedRun run = constant_run({.batch_size = 4, .sample = {4000, 0}, .compute = {0, 1 * ms}, .steps = 5});
    Ledger ledger = ledger_of(run);
    std::erase_if(ledger.samples, [](const SampleRow& row) { return row.slot != 0; });
    for (SampleRow& row : ledger.samples)
        row.samples = 4;
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.samples.size() == 20u);
    BOOST_TEST((read.samples[7].stages[0] == Demand{1000, 0}));
    BOOST_TEST(read.samples[7].index == 7u);
}

BOOST_AUTO_TEST_CASE(a_loader_of_more_stages_than_there_are_is_not_replayed) {
    const RecordedRun run = constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10});
    Ledger ledger = ledger_of(run);
    ledger.pipelines[0].stages.resize(max_stages + 1, "more");
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable == "loader train has 9 stages, more than the supported 8");
}

BOOST_AUTO_TEST_CASE(a_sample_of_more_stages_than_its_loader_or_of_no_samples_is_left_out) {
    const RecordedRun run = constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10});
    Ledger ledger = ledger_of(run);
    SampleRow& row = ledger.samples[4];
    row.stages = {static_cast<std::uint32_t>(ledger.stages.size()), 40};
    ledger.stages.resize(ledger.stages.size() + 40, {.begin_ns = 0, .ns = 5, .cpu_ns = 1});
    ledger.samples[10].samples = 0;
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.unusable == "");
    BOOST_TEST(read.batches.size() == 8u);
    BOOST_TEST((read.samples[4].stages[0] == Demand{1 * ms, 0}));
}

BOOST_AUTO_TEST_CASE(loaders_beyond_those_that_rows_can_name_are_passed_over) {
    Ledger ledger = ledger_of(constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .steps = 10}));
    ledger.steps.clear();
    ledger.pipelines.resize(600, ledger.pipelines[0]);
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable ==
               "no training step with its batch is left after the warm-up");
}

BOOST_AUTO_TEST_CASE(batches_larger_than_any_loader_makes_are_left_out_and_too_many_samples_refused) {
    const RecordedRun run = constant_run({.batch_size = 1, .sample = {4000, 0}, .compute = {0, 1 * ms}, .steps = 12});
    Ledger ledger = ledger_of(run);
    const auto grow = [&ledger](std::uint32_t size) {
        for (std::size_t i = 0; i < ledger.batches.size(); ++i)
            ledger.batches[i].size = ledger.samples[i].samples = size;
    };
    grow(2);   // of batch_size 1
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable.starts_with("only 0 of 12 batches have all their samples"));
    ledger.pipelines[0].batch_size = 4'000'000'000;
    grow(4'000'000'000);
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable.starts_with("only 0 of 12 batches have all their samples"));
    grow(1u << 20);
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable == "more than 10000000 samples were recorded");
}

BOOST_AUTO_TEST_CASE(whatever_numbers_a_ledger_holds_its_demands_are_of_some_length) {
    constexpr std::int64_t least = no_stamp, most = std::numeric_limits<std::int64_t>::max();
    std::mt19937_64 random{5};
    int usable = 0;
    for (int round = 0; round < 300; ++round) {
        Ledger ledger = ledger_of(
            constant_run({.batch_size = 2, .sample = {1 * ms, 1 * ms}, .compute = {1 * ms, 1 * ms}, .steps = 10}));
        ledger.host = {{.at_ns = 0, .own_cpu_ns = 0}, {.at_ns = 30 * ms, .own_cpu_ns = 90 * ms}};
        const auto odd = [&](std::int64_t& ns) {
            constexpr std::array values{least, least + 1, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 50,
                                        most};
            if (random() % 12 == 0)
                ns = values[random() % values.size()];
        };
        const auto odd_if = [&](std::optional<std::int64_t>& ns) {
            if (ns)
                odd(*ns);
        };
        for (StageRow& row : ledger.stages)
            odd(row.begin_ns), odd(row.ns), odd(row.cpu_ns);
        for (SampleRow& row : ledger.samples)
            odd(row.begin_ns), odd(row.read_begin_ns), odd(row.read_end_ns), odd(row.read_cpu_ns),
                odd(row.read_run_queue_ns), odd_if(row.cpu_ns), odd_if(row.run_queue_ns);
        for (StepRow& row : ledger.steps)
            odd(row.batch_ns), odd_if(row.cpu_ns), odd_if(row.run_queue_ns), odd(row.between_run_queue_ns.emplace());
        for (SpanRow& row : ledger.spans)
            odd(row.ns), row.span = random() % 2 == 0 ? Span::between : span_of(Event::before_draw);
        for (BatchRow& row : ledger.batches) {
            odd(row.collate_begin_ns), odd(row.collate_end_ns), odd(row.transfer_issue_ns), odd(row.transfer_done_ns);
            odd(row.collate_cpu_ns), odd(row.collate_run_queue_ns);
            row.bytes = random() % 3 == 0 ? ~std::uint64_t{0} : row.bytes;
        }
        if (round % 4 == 0)
            odd(ledger.steps[random() % 10].draw_begin_ns), odd(ledger.steps[random() % 10].draw_ns);
        for (HostRow& row : ledger.host)
            odd(row.at_ns), odd(row.own_cpu_ns);
        ledger.sort();
        RecordedRun read = drawpoint::recorded_run(ledger, 0);
        const auto is_length = [](const Demand& demand) {
            constexpr std::int64_t limit = std::int64_t{1} << 41;
            return demand.cpu_ns >= 0 && demand.wait_ns >= 0 && demand.cpu_ns < limit && demand.wait_ns < limit;
        };
        bool all = std::ranges::all_of(
            read.steps, [&](const StepDemand& step) { return is_length(step.compute) && is_length(step.after); });
        for (const SampleDemand& sample : read.samples)
            all &= is_length(sample.read) && std::ranges::all_of(sample.stages, is_length);
        for (const BatchDemand& batch : read.batches)
            all &= is_length(batch.collate);
        BOOST_TEST(all);
        BOOST_TEST(std::isfinite(read.batches_per_s));
        if (!read.unusable.empty())
            continue;
        BOOST_TEST(drawpoint::replay(read, exact(read.setting)).wall_ns >= 0);
        ++usable;
    }
    BOOST_TEST(usable > 50);
}

BOOST_AUTO_TEST_CASE(cores_and_bytes_that_are_no_amounts_are_as_good_as_not_said) {
    Ledger ledger =
        ledger_of(constant_run({.batch_size = 2, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 10}));
    ledger.set_fact(facts::machine_cores, "3");
    ledger.set_fact(facts::cache_origin, "memory");
    for (const char* const odd : {"inf", "nan", "-1", "0", "1e300", "1e999", "", "many"}) {
        ledger.set_fact(facts::host_cores, odd);
        ledger.set_fact(facts::cache_bytes, odd);
        ledger.set_fact(facts::host_sleep_cpu_ns, odd);
        const RecordedRun read = drawpoint::recorded_run(ledger, 0);
        BOOST_TEST(read.cores == 3.0, odd);
        BOOST_TEST(read.other_bytes == 0u, odd);
        BOOST_TEST(read.sleep_cpu_ns == 0, odd);
    }
    ledger.set_fact(facts::host_cores, "1.5");
    ledger.set_fact(facts::cache_bytes, "4096");
    ledger.set_fact(facts::host_sleep_cpu_ns, "21000.5");
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).cores == 1.5);
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).other_bytes == 4096u);
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).sleep_cpu_ns == 21000);
}

BOOST_AUTO_TEST_CASE(two_fits_that_count_their_epochs_anew_are_read_as_they_came) {
    const RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 30});
    Ledger ledger = ledger_of(run), second = ledger_of(run);
    const std::int64_t later = 10'000 * ms;
    const auto first_stage = static_cast<std::uint32_t>(ledger.stages.size());
    const auto first_span = static_cast<std::uint32_t>(ledger.spans.size());
    for (StageRow row : second.stages)
        row.begin_ns += later, row.ns += 1 * ms, ledger.stages.push_back(row);
    for (SpanRow row : second.spans)
        row.begin_ns += later, ledger.spans.push_back(row);
    for (SampleRow row : second.samples)
        row.begin_ns += later, row.index += 1000, row.stages.first += first_stage, ledger.samples.push_back(row);
    for (StepRow row : second.steps)
        row.draw_begin_ns += later, row.step += 30, row.spans.first += first_span, ledger.steps.push_back(row);
    for (BatchRow row : second.batches) {
        for (std::int64_t* const at :
             {&row.admitted_ns, &row.first_claim_ns, &row.last_done_ns, &row.offered_ns, &row.taken_ns})
            *at += *at == no_stamp ? 0 : later;
        ledger.batches.push_back(row);
    }
    ledger.sort();
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.unusable == "");
    BOOST_TEST(read.steps.size() == 60u);
    BOOST_REQUIRE(read.samples.size() == 120u);
    for (std::size_t i = 0; i < 120; ++i) {
        BOOST_TEST(read.samples[i].index == (i < 60 ? i : 1000 + i - 60));
        BOOST_TEST(read.samples[i].batch == i / 2);
    }
    BOOST_TEST(drawpoint::recorded_run(ledger, 30).samples.size() == 60u);
}

BOOST_AUTO_TEST_CASE(what_a_validation_computes_is_not_the_steps) {
    // Ten steps, a validation that uses four cores, ten steps; the loop itself only waits.
    RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 1 * ms}, .compute = {0, 40 * ms}, .steps = 20});
    run.steps[9].pause_ns = 500 * ms;
    Ledger ledger = ledger_of(run);
    for (StepRow& row : ledger.steps)
        row.cpu_ns = row.run_queue_ns = std::nullopt;
    const std::int64_t end = ledger.passes.back().end_ns, pause = ledger.steps[10].draw_begin_ns - 500 * ms;
    for (std::int64_t at = 0; at <= end; at += 50 * ms)
        ledger.host.push_back({.at_ns = at, .own_cpu_ns = 4 * std::clamp<std::int64_t>(at - pause, 0, 500 * ms)});
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_TEST(read.steps[3].threads == 1.0);
    BOOST_TEST((read.steps[3].compute == Demand{0, 40 * ms}));
    // A host row over training and validation together describes neither.
    ledger.host = {ledger.host.front(), ledger.host.back()};
    BOOST_TEST((drawpoint::recorded_run(ledger, 0).steps[3].compute == Demand{0, 40 * ms}));
}

BOOST_AUTO_TEST_CASE(what_comes_between_a_batch_and_the_next_draw_is_after_the_batch) {
    RecordedRun run = constant_run({.batch_size = 2, .sample = {0, 1 * ms}, .compute = {4 * ms, 0}, .steps = 20});
    for (StepDemand& step : run.steps)
        step.after = {2 * ms, 0};
    Ledger ledger = ledger_of(run);
    RecordedRun read = drawpoint::recorded_run(ledger, 0);
    for (const StepDemand& step : read.steps) {
        BOOST_TEST((step.compute == Demand{4 * ms, 0}));
        BOOST_TEST((step.after == Demand{2 * ms, 0}));
    }
    // The thread's wait for a core between steps is not its work.
    for (StepRow& row : ledger.steps)
        row.between_run_queue_ns = row.step % 2 == 0 ? 3 * ms / 2 : 3 * ms;
    read = drawpoint::recorded_run(ledger, 0);
    for (std::size_t i = 0; i < 20; ++i)
        BOOST_TEST((read.steps[i].after == Demand{ledger.steps[i].step % 2 == 0 ? ms / 2 : 0, 0}));
    // Callbacks before a draw count as following the step before.
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        StepRow& row = ledger.steps[i];
        const auto first = static_cast<std::uint32_t>(ledger.spans.size());
        ledger.spans.push_back({span_of(Event::before_draw), row.draw_begin_ns, static_cast<std::int64_t>(i)});
        row.spans = {first, 1};
        row.cpu_ns = row.run_queue_ns = row.between_run_queue_ns = std::nullopt;
    }
    read = drawpoint::recorded_run(ledger, 0);
    for (std::size_t i = 0; i < 20; ++i)
        BOOST_TEST(read.steps[i].after.ns() == static_cast<std::int64_t>((i + 1) % 20));
}

BOOST_AUTO_TEST_SUITE_END()
