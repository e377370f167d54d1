#include <drawpoint/diagnosis/blame/blame.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;

/// Two workers and a depth of 1, from 0 to 1000 ns. Batch 0 is made in [10, 310), drawn in [0, 320) and held until 600.
/// Batch 1 is made in [350, 650), by worker 1 alone, and drawn in [620, 660).
DrawnLedger two_batches() {
    DrawnLedger drawn;
    drawn.ledger.folded.steps = 1;   // so the first step is neither warm-up nor the first of its pass
    BatchRow& first = drawn.batch(0);
    first.admitted_ns = 0;
    first.first_claim_ns = 10;
    first.last_done_ns = first.offered_ns = 310;
    first.taken_ns = 320;
    BatchRow& second = drawn.batch(1);
    second.admitted_ns = 340;
    second.first_claim_ns = 350;
    second.last_done_ns = second.offered_ns = 640;
    second.taken_ns = 660;
    drawn.sample(0, 0, 0, 10, {100, 100});
    drawn.sample(0, 1, 1, 10, {100, 200});
    drawn.sample(1, 0, 1, 350, {20, 80});
    drawn.sample(1, 1, 1, 460, {30, 150});
    drawn.step(0, 0, {{Span::starved, 310}, {Span::handoff, 10}, {Span::forward, 280}, {Span::between, 20}});
    drawn.step(1, 620, {{Span::starved, 20}, {Span::handoff, 20}, {Span::forward, 340}});
    return drawn;
}

WorkerBlame worker_of(const Ledger& ledger, std::uint16_t number) {
    for (const WorkerBlame& worker : blame(ledger).workers)
        if (worker.worker == number)
            return worker;
    return {};
}

BOOST_AUTO_TEST_SUITE(blame_workers)

BOOST_AUTO_TEST_CASE(a_worker_s_time_is_stages_overhead_and_idling) {
    const Ledger ledger = two_batches().ledger;
    const WorkerBlame zero = worker_of(ledger, 0), one = worker_of(ledger, 1);
    BOOST_TEST(zero.stages_ns == (std::vector<std::int64_t>{100, 100}), boost::test_tools::per_element());
    BOOST_TEST(zero.overhead_ns == 10);              // before it began, with a batch admitted at 0
    BOOST_TEST(zero.idle_no_slot_ns == 600 - 340);   // both slots are taken: batch 0's until its step is over
    BOOST_TEST(zero.idle_ns == (340 - 210) + (1000 - 600));
    BOOST_TEST(zero.span_ns == 1000);
    BOOST_TEST(one.stages_ns == (std::vector<std::int64_t>{100 + 20 + 30, 200 + 80 + 150}),
               boost::test_tools::per_element());
    BOOST_TEST(one.overhead_ns == 10 + 10 + 10);   // also between two samples of one batch
    BOOST_TEST(one.idle_ns == (340 - 310) + (1000 - 640));
    BOOST_TEST(one.idle_no_slot_ns == 0);
}

BOOST_AUTO_TEST_CASE(an_order_is_work_of_the_worker_that_computed_it) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.orders = {{.begin_ns = 700, .ns = 90, .epoch = 1, .worker = std::uint16_t{1}},
                           {.begin_ns = 800, .ns = 50, .epoch = 1}};   // the loop's own
    const WorkerBlame zero = worker_of(drawn.ledger, 0), one = worker_of(drawn.ledger, 1);
    BOOST_TEST(zero.sampler_ns == 0);
    BOOST_TEST(one.sampler_ns == 90);
    BOOST_TEST(one.idle_ns == (340 - 310) + (1000 - 640) - 90);
}

BOOST_AUTO_TEST_CASE(time_in_the_run_queue_is_a_column_of_its_own) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.samples[0].cpu_ns = 120;
    drawn.ledger.samples[0].run_queue_ns = 40;   // of 80 ns off the core, half in each stage
    const WorkerBlame zero = worker_of(drawn.ledger, 0);
    BOOST_TEST(zero.run_queue_ns == 40);
    BOOST_TEST(zero.stages_ns == (std::vector<std::int64_t>{80, 80}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(collating_is_work) {
    DrawnLedger drawn = two_batches();
    BatchRow& batch = drawn.ledger.batches[0];
    batch.collate_worker = 0;
    batch.collate_begin_ns = 310;
    batch.collate_end_ns = 330;
    const WorkerBlame zero = worker_of(drawn.ledger, 0);
    BOOST_TEST(zero.collate_ns == 20);
    BOOST_TEST(zero.overhead_ns == 10 + 100);   // its batch was open all the time
    BOOST_TEST(zero.idle_ns == (340 - 330) + (1000 - 600));
}

BOOST_AUTO_TEST_CASE(nobody_knows_what_a_worker_did_while_unrecorded_samples_were_made) {
    DrawnLedger drawn = two_batches();
    // batch 1's samples are thinned out
    drawn.ledger.samples.erase(drawn.ledger.samples.begin() + 2, drawn.ledger.samples.end());
    const WorkerBlame one = worker_of(drawn.ledger, 1);
    BOOST_TEST(one.unknown_ns == 640 - 350);
    BOOST_TEST(one.idle_no_slot_ns == 350 - 340);
    BOOST_TEST(one.idle_ns == (340 - 310) + (1000 - 640));
}

BOOST_AUTO_TEST_CASE(a_deeper_window_has_free_slots) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.settings.push_back({.at_ns = 400, .num_workers = 2, .prefetch_depth = 3});
    BOOST_TEST(worker_of(drawn.ledger, 0).idle_no_slot_ns == 400 - 340);
    drawn.ledger.settings[0].pipeline = 1;   // belongs to another pipeline
    BOOST_TEST(worker_of(drawn.ledger, 0).idle_no_slot_ns == 600 - 340);
}

BOOST_AUTO_TEST_CASE(only_the_steady_part_counts) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.folded.steps = 0;   // now the first step is warm-up
    const WorkerBlame one = worker_of(drawn.ledger, 1);
    BOOST_TEST(one.span_ns == 1000 - 620);
    BOOST_TEST(one.stages_ns == (std::vector<std::int64_t>{0, 20}), boost::test_tools::per_element());
    BOOST_TEST(one.idle_ns == 360);
}

BOOST_AUTO_TEST_CASE(each_loader_has_its_own_columns) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.pipelines.push_back({.name = "valid", .stages = {"rows"}, .num_workers = 1, .prefetch_depth = 1});
    SampleRow& row = drawn.sample(0, 0, 7, 700, {25});
    row.pipeline = 1;
    const WorkerBlame seven = worker_of(drawn.ledger, 7);
    BOOST_TEST(seven.pipeline == 1);
    BOOST_TEST(seven.stages_ns == (std::vector<std::int64_t>{0, 0, 25}), boost::test_tools::per_element());
    BOOST_TEST(seven.idle_ns == 975);
}

BOOST_AUTO_TEST_CASE(waiting_for_a_worker_is_laid_to_what_the_workers_were_at) {
    DrawnLedger drawn = two_batches();
    // now batch 1 is open from 100 on, and the loop waits for it from 200 on
    drawn.ledger.batches[1].admitted_ns = 100;
    drawn.ledger.steps.erase(drawn.ledger.steps.begin());
    StepRow& step = drawn.ledger.steps[0];
    step.draw_begin_ns = 200;
    step.draw_ns = 460;
    drawn.ledger.spans = {{Span::starved, 200, 440}, {Span::handoff, 640, 20}};
    step.spans = {0, 2};
    drawn.ledger.folded.steps = 10;
    const Blame result = blame(drawn.ledger);
    // [200, 350), then other causes until 460
    BOOST_REQUIRE(test::words(result, result.draws[0]).front() == "worker 150");
    // Worker 0 is in decode until 210, worker 1 until 310; then worker 1 makes sample 0, in read for 20 and in decode
    // for 80 ns.
    BOOST_TEST(result.worker_wait_by_stage_ns == (std::vector<std::int64_t>{0, (10 + 110) / 2}),
               boost::test_tools::per_element());
    BOOST_TEST(result.other_samples_by_stage_ns == (std::vector<std::int64_t>{10, 40}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(idling_without_a_slot_while_the_loop_waits_is_counted) {
    DrawnLedger drawn = two_batches();
    drawn.ledger.batches[0].taken_ns = 320;
    drawn.ledger.steps[1].draw_begin_ns = 600;
    drawn.ledger.steps[1].draw_ns = 60;
    drawn.ledger.spans[4] = {Span::starved, 600, 40};
    BatchRow& third = drawn.batch(2);   // takes the other slot, and is complete before batch 1
    third.admitted_ns = third.first_claim_ns = 600;
    third.last_done_ns = 600;
    third.size = 0;
    third.taken_ns = 900;
    const Blame result = blame(drawn.ledger);
    BOOST_TEST(result.idle_no_slot_while_waiting_ns == 40 / 2);   // worker 0, while worker 1 made the last sample
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
