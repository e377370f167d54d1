// A replay with a device: copies, buffers and steps there, against what a DeviceLoader does in virtual time.
#include <drawpoint/diagnosis/replay/replay.hpp>

#include <random>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/device_time.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

namespace drawpoint {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// Copies of 4 ms, steps of 5 ms on the device, which take the loop nothing; a loader that is always ahead.
RecordedRun copying_run(std::size_t steps = 20) {
    RecordedRun run = test::constant_run({.steps = steps});
    run.device_buffers = 3;
    for (BatchDemand& batch : run.batches)
        batch.transfer.wait_ns = 4 * ms;
    for (StepDemand& step : run.steps)
        step.device.ns = 5 * ms;
    return run;
}

/// A replay whose loader costs nothing.
Replayed replayed(const RecordedRun& run, const Change& change = {}) {
    return replay(run, {.setting = run.setting,
                        .change = change,
                        .keep_rows = true,
                        .ends = true,
                        .costs = {.wake_ns = 0, .look_ns = 0, .hand_over_ns = 0}});
}

/// When the device had done all steps.
std::int64_t device_ns(const RecordedRun& run, const Change& change = {}) {
    const Replayed all = replayed(run, change);
    BOOST_TEST_REQUIRE(all.ledger.device_steps.size() == run.steps.size());
    return all.ledger.device_steps.back().end_ns;
}

BOOST_AUTO_TEST_SUITE(replay_device)

BOOST_AUTO_TEST_CASE(copies_overlap_with_steps_as_they_do_in_a_device_loader) {
    const RecordedRun run = copying_run();
    BOOST_TEST(device_ns(run) == 20 * 5 * ms + 4 * ms);   // device_loader_test.cpp has the same figures
    BOOST_TEST(device_ns(run, {.device_buffers = 2}) == 20 * 5 * ms + 4 * ms);
    BOOST_TEST(device_ns(run, {.device_buffers = 1}) == 20 * 9 * ms);
    BOOST_TEST(device_ns(run, {.transfer = 2}) == 20 * 8 * ms + 5 * ms);   // the copies are the limit
    BOOST_TEST(device_ns(run, {.compute = 0.2}) == 20 * 4 * ms + 1 * ms);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_for_each_copy_can_be_told_not_to) {
    RecordedRun run = copying_run();
    run.copies = Copies::pageable;
    const std::int64_t pageable_ns = device_ns(run);
    BOOST_TEST(pageable_ns > 20 * 7 * ms);
    BOOST_TEST(device_ns(run, {.pinned = true}) == 20 * 5 * ms + 4 * ms);
    run.copies = Copies::in_order;
    BOOST_TEST(device_ns(run) == 20 * 9 * ms);
    BOOST_TEST(device_ns(run, {.pinned = true}) == 20 * 9 * ms);   // there is no other stream
}

BOOST_AUTO_TEST_CASE(the_loop_is_ahead_of_the_device_by_its_buffers_and_no_more) {
    const RecordedRun run = copying_run(50);
    const Ledger ledger = replayed(run).ledger;
    for (std::size_t i = 0; i + 1 < ledger.device_steps.size(); ++i) {
        const DeviceStepRow& row = ledger.device_steps[i];
        BOOST_TEST(ledger.device_steps[i + 1].free_ns == row.end_ns);
        if (i >= 6)   // twice three
            BOOST_TEST(row.host_queued_ns >= ledger.device_steps[i - 6].end_ns);
    }
    BOOST_TEST(ledger.device_steps[40].end_ns - ledger.device_steps[40].host_end_ns > 10 * ms);
}

BOOST_AUTO_TEST_CASE(a_wait_in_each_step_keeps_the_loop_from_running_ahead) {
    RecordedRun run = copying_run(100);
    for (StepDemand& step : run.steps) {
        step.compute.wait_ns = 2 * ms;   // half of it before the wait
        step.device.first_ns = 5 * ms;
        step.device.wait_at = 0.5;
    }
    for (BatchDemand& batch : run.batches)
        batch.transfer.wait_ns = 0;
    // Of the loop's 2 ms one is not hidden: that after the wait.
    BOOST_TEST(device_ns(run) == 100 * 6 * ms);
    BOOST_TEST(device_ns(run, {.no_sync = true}) == 100 * 5 * ms);
}

BOOST_AUTO_TEST_CASE(a_device_that_keeps_up_is_as_fast_as_the_loop) {
    RecordedRun run = copying_run(100);
    for (StepDemand& step : run.steps) {
        step.compute.wait_ns = 6 * ms;
        step.device.lag_ns = 1 * ms;
    }
    BOOST_TEST(device_ns(run) == 100 * 6 * ms + 1 * ms);
}

BOOST_AUTO_TEST_CASE(a_pass_ends_with_the_device) {
    RecordedRun run = copying_run(30);
    run.pass_batches = run.pass_samples = 10;
    const Ledger ledger = replayed(run).ledger;
    std::size_t drains = 0;
    for (const PassRow& pass : ledger.passes)
        for (const SpanRow& piece : ledger.spans_of(pass))
            drains += piece.span == Span::device ? 1 : 0;
    BOOST_TEST(drains >= 2u);
    BOOST_TEST(ledger.steps[10].draw_begin_ns >= ledger.device_steps[9].end_ns);
}

BOOST_AUTO_TEST_CASE(random_runs_leave_nothing_unexplained) {
    std::mt19937_64 random{25};
    const auto below = [&random](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    for (std::uint64_t seed = 1; seed <= 100; ++seed)
        BOOST_TEST_CONTEXT("seed " << seed) {
            RecordedRun run = test::random_run(seed);
            run.device_buffers = static_cast<std::size_t>(1 + below(5));
            run.copies = static_cast<Copies>(below(3));
            run.pass_samples = below(2) == 0 ? 0 : 7 * run.setting.batch_size;
            for (BatchDemand& batch : run.batches)
                batch.transfer.wait_ns = below(2'000'000);
            for (StepDemand& step : run.steps) {
                step.device.ns = below(5'000'000);
                step.device.lag_ns = below(2) == 0 ? 0 : below(50'000);
                step.device.first_ns = below(3) == 0 ? below(5'000'000) : 0;
                step.device.wait_at = static_cast<double>(below(101)) / 100;
            }
            const Replayed all = replayed(run);
            BOOST_TEST(max_residual_ns(all.ledger) == 0);
            BOOST_TEST_REQUIRE(all.ledger.device_steps.size() == run.steps.size());
            BOOST_TEST(all.ledger.transfers.size() >= run.steps.size());
            std::int64_t free_ns = 0;
            for (const DeviceStepRow& row : all.ledger.device_steps) {
                BOOST_TEST_REQUIRE((row.free_ns >= free_ns && row.queued_ns >= row.free_ns));
                BOOST_TEST_REQUIRE((row.begin_ns >= row.queued_ns && row.end_ns >= row.begin_ns));
                free_ns = row.end_ns;
            }
            const DeviceTotals totals = device_totals(all.ledger);
            BOOST_TEST(totals.dry_ns + totals.copy_wait_ns + totals.span_ns <= free_ns);
            BOOST_TEST(replayed(run).draw_ns == all.draw_ns, boost::test_tools::per_element());
        }
}

BOOST_AUTO_TEST_CASE(buffers_out_of_range_are_refused) {
    const RecordedRun run = copying_run();
    BOOST_CHECK_EXCEPTION((void)replayed(run, {.device_buffers = 65}), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()}.find("buffers of the device") != std::string::npos;
    });
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
