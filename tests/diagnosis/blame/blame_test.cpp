#include <drawpoint/diagnosis/blame/blame.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;
using Words = std::vector<std::string>;

/// Batch 1, drawn in [1000, 2000), which went through all its stages after the draw had begun.
DrawnLedger whole_chain() {
    DrawnLedger drawn;
    BatchRow& batch = drawn.batch(1);
    batch.admitted_ns = 1100;
    batch.first_claim_ns = 1200;
    batch.last_done_ns = 1700;
    batch.collate_begin_ns = 1720;
    batch.collate_end_ns = 1800;
    batch.collate_worker = 1;
    batch.offered_ns = 1850;
    batch.taken_ns = 1900;
    drawn.sample(1, 0, 0, 1200, {50, 150});
    SampleRow& last = drawn.sample(1, 1, 1, 1400, {100, 180});
    last.read_begin_ns = 1150;
    last.read_end_ns = 1460;
    drawn.step(1, 1000,
               {{span_of(Event::before_draw), 40},
                {Span::starved, 810},
                {Span::handoff, 50},
                {Span::transfer, 100},
                {Span::forward, 500}});
    return drawn;
}

void check_words(const Ledger& ledger, const Words& expected) {
    const Blame result = blame(ledger);
    BOOST_TEST(result.max_residual_ns == 0);
    BOOST_TEST(test::words(result, result.draws.front()) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE(blame)

BOOST_AUTO_TEST_CASE(a_draw_is_cut_along_its_batch_s_chain) {
    const Ledger ledger = whole_chain().ledger;
    check_words(ledger,
                {"callbacks 40", "admission 60", "worker 100", "other_samples 200", "read waiting 60", "stage 0 40",
                 "stage 1 180", "handoff 20", "collate_queue 20", "collate 80", "handoff 100", "transfer 100"});
    const Blame result = drawpoint::blame(ledger);
    BOOST_TEST(result.draws[0].batch == 0u);
    BOOST_TEST(result.draws[0].last_sample == 1u);
    for (const BlamePiece& piece : result.pieces)
        BOOST_TEST(piece.sample == (piece.cause == Cause::stage || piece.cause == Cause::read ? 1u : nothing));
    BOOST_TEST(result.pieces[1].begin_ns == 1040);
}

BOOST_AUTO_TEST_CASE(a_pass_that_begins_waits_for_its_order_and_for_no_other) {
    Ledger ledger = whole_chain().ledger;
    ledger.orders = {{.begin_ns = 900, .ns = 150, .epoch = 1},       // of another pass
                     {.begin_ns = 1000, .ns = 110, .pipeline = 1},   // of another loader
                     {.begin_ns = 1060, .ns = 35}};
    const Words expected{"callbacks 40",      "admission 20",    "sampler 35",  "admission 5", "worker 100",
                         "other_samples 200", "read waiting 60", "stage 0 40",  "stage 1 180", "handoff 20",
                         "collate_queue 20",  "collate 80",      "handoff 100", "transfer 100"};
    check_words(ledger, expected);
    ledger.orders.erase(ledger.orders.begin());   // now the other loader's is next to its own
    check_words(ledger, expected);
    ledger.orders = {{.begin_ns = 900, .ns = 400}};   // begun before the draw; ends after the batch was admitted
    check_words(ledger,
                {"callbacks 40", "sampler 60", "worker 100", "other_samples 200", "read waiting 60", "stage 0 40",
                 "stage 1 180", "handoff 20", "collate_queue 20", "collate 80", "handoff 100", "transfer 100"});
}

BOOST_AUTO_TEST_CASE(what_happened_before_the_draw_is_no_part_of_it) {
    DrawnLedger drawn = whole_chain();
    StepRow& step = drawn.ledger.steps[0];
    step.draw_begin_ns = 1480;
    step.draw_ns = 420;
    drawn.ledger.spans = {{Span::starved, 1480, 370}, {Span::handoff, 1850, 50}};
    step.spans = {0, 2};
    check_words(drawn.ledger,
                {"stage 0 20", "stage 1 180", "handoff 20", "collate_queue 20", "collate 80", "handoff 100"});
}

BOOST_AUTO_TEST_CASE(a_measured_stage_is_cut_into_computing_run_queue_and_waiting) {
    DrawnLedger drawn = whole_chain();
    SampleRow& last = drawn.ledger.samples[1];
    drawn.ledger.stages[2].cpu_ns = 10;   // of the 40 ns after the read
    drawn.ledger.stages[3].cpu_ns = 90;
    last.cpu_ns = 100;
    last.run_queue_ns = 60;   // of 120 ns off the core: 30 and 90
    check_words(drawn.ledger, {"callbacks 40", "admission 60", "worker 100", "other_samples 200", "read waiting 60",
                               "stage 0 computing 10", "stage 0 run_queue 15", "stage 0 waiting 15",
                               "stage 1 computing 90", "stage 1 run_queue 45", "stage 1 waiting 45", "handoff 20",
                               "collate_queue 20", "collate 80", "handoff 100", "transfer 100"});
    last.run_queue_ns.reset();   // then it is unknown what it did off its core
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(test::words(result, result.draws[0])[6] == "stage 0 30");
}

BOOST_AUTO_TEST_CASE(a_stage_without_cpu_time_has_its_share_of_the_sample_s) {
    DrawnLedger drawn = whole_chain();
    drawn.ledger.samples[1].read_begin_ns = drawn.ledger.samples[1].read_end_ns = no_stamp;
    drawn.ledger.samples[1].cpu_ns = 140;   // of 280 ns
    drawn.ledger.samples[1].run_queue_ns = 0;
    const Blame result = drawpoint::blame(drawn.ledger);
    const Words all = test::words(result, result.draws[0]);
    BOOST_TEST((Words{all.begin() + 4, all.begin() + 8}) ==
                   (Words{"stage 0 computing 50", "stage 0 waiting 50", "stage 1 computing 90", "stage 1 waiting 90"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_batch_without_sample_records_is_unknown_where_they_would_speak) {
    DrawnLedger drawn = whole_chain();
    drawn.ledger.samples.clear();
    check_words(drawn.ledger, {"callbacks 40", "admission 60", "worker 100", "unknown 500", "collate_queue 20",
                               "collate 80", "handoff 100", "transfer 100"});
    drawn.ledger.batches.clear();   // also the case for a CacheLoader's own batches and traces of other programs
    check_words(drawn.ledger, {"callbacks 40", "unknown 810", "handoff 50", "transfer 100"});
}

BOOST_AUTO_TEST_CASE(the_end_of_a_batch_that_lacks_records_is_unknown) {
    DrawnLedger drawn = whole_chain();
    drawn.ledger.samples.pop_back();
    check_words(drawn.ledger, {"callbacks 40", "admission 60", "worker 100", "stage 0 50", "stage 1 150", "unknown 300",
                               "collate_queue 20", "collate 80", "handoff 100", "transfer 100"});
}

BOOST_AUTO_TEST_CASE(what_the_loop_makes_itself_is_stages_alone) {
    DrawnLedger drawn{0};
    BatchRow& batch = drawn.batch(0);
    batch.admitted_ns = 1010;
    batch.first_claim_ns = 1020;
    batch.last_done_ns = 1400;
    batch.offered_ns = batch.taken_ns = 1410;
    drawn.sample(0, 0, 0, 1020, {100, 90});
    drawn.sample(0, 1, 0, 1220, {80, 100});
    drawn.step(0, 1000, {{Span::starved, 410}});
    check_words(drawn.ledger, {"admission 10", "worker 10", "stage 0 100", "stage 1 90", "other_samples 10",
                               "stage 0 80", "stage 1 100", "handoff 10"});
    BOOST_TEST(drawpoint::blame(drawn.ledger).workers.empty());
}

BOOST_AUTO_TEST_CASE(a_step_that_drew_nothing_has_no_batch) {
    DrawnLedger drawn = whole_chain();
    drawn.step(2, 2500, {{span_of(Event::before_draw), 30}}, 0).status = StepStatus::cancelled;
    drawn.step(3, 2600, {}, 0).status = StepStatus::cancelled;
    drawn.step(4, 2600, {{Span::starved, 70}}, 0).status = StepStatus::failed;
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(result.max_residual_ns == 0);
    BOOST_TEST(test::words(result, result.draws[1]) == (Words{"callbacks 30"}), boost::test_tools::per_element());
    BOOST_TEST(result.draws[2].pieces.count == 0u);
    BOOST_TEST(test::words(result, result.draws[3]) == (Words{"unknown 70"}), boost::test_tools::per_element());
    for (std::size_t i = 1; i < 4; ++i)
        BOOST_TEST(result.draws[i].batch == nothing);
}

BOOST_AUTO_TEST_CASE(time_in_none_of_the_loop_s_pieces_is_unknown) {
    DrawnLedger drawn;
    drawn.step(0, 100, {{Span::starved, 40}, {Span::between, 30}, {Span::handoff, 20}});
    drawn.ledger.spans[1] = {Span::between, 500, 30};   // lies elsewhere in time
    drawn.ledger.steps[0].draw_ns = 95;                 // 5 less than its pieces
    check_words(drawn.ledger, {"unknown 70", "handoff 20", "unknown 5"});
}

BOOST_AUTO_TEST_CASE(a_draw_that_threw_has_the_failed_batch) {
    DrawnLedger drawn = whole_chain();
    drawn.ledger.batches[0].status = BatchStatus::failed;
    drawn.ledger.steps[0].size = 0;
    drawn.ledger.steps[0].status = StepStatus::failed;
    BOOST_TEST(drawpoint::blame(drawn.ledger).draws[0].batch == 0u);
    drawn.ledger.batches[0].status = BatchStatus::abandoned;
    BOOST_TEST(drawpoint::blame(drawn.ledger).draws[0].batch == nothing);
}

BOOST_AUTO_TEST_CASE(a_step_has_the_batch_taken_in_its_draw_whatever_the_number) {
    DrawnLedger drawn{2, 4};
    for (const std::uint32_t number : {0u, 1u, 2u}) {   // drawn in the order 2, 0, 1
        BatchRow& batch = drawn.batch(number);
        batch.admitted_ns = 0;
        batch.taken_ns = 100 * ((number + 1) % 3) + 50;
    }
    for (const std::uint32_t k : {0u, 1u, 2u})
        drawn.step(k, 100 * k, {{Span::starved, 50}, {Span::forward, 50}});
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(result.draws[0].batch == 2u);
    BOOST_TEST(result.draws[1].batch == 0u);
    BOOST_TEST(result.draws[2].batch == 1u);
}

BOOST_AUTO_TEST_CASE(on_a_clock_that_stands_still_numbers_tell_batches_apart) {
    DrawnLedger drawn;
    for (const std::uint32_t number : {0u, 1u, 2u, 3u, 4u})
        drawn.batch(number).taken_ns = 7;
    drawn.ledger.batches[3].status = BatchStatus::failed;
    for (const std::uint32_t number : {1u, 0u, 4u})
        drawn.step(number, 7, {});
    drawn.step(9, 7, {});   // a number that was not drawn yet
    drawn.step(9, 7, {}, 0).status = StepStatus::failed;
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(result.draws[0].batch == 1u);
    BOOST_TEST(result.draws[1].batch == 0u);
    BOOST_TEST(result.draws[2].batch == 4u);
    BOOST_TEST(result.draws[3].batch == 2u);
    BOOST_TEST(result.draws[4].batch == 3u);
}

BOOST_AUTO_TEST_CASE(passes_of_one_epoch_number_keep_their_samples_apart) {
    DrawnLedger drawn;
    for (const std::int64_t from : {0, 1000}) {
        BatchRow& batch = drawn.batch(0, 1);
        batch.admitted_ns = from;
        batch.first_claim_ns = from + 10;
        batch.last_done_ns = from + 90;
        batch.offered_ns = batch.taken_ns = from + 90;
    }
    drawn.sample(0, 0, 0, 10, {30, 50});
    drawn.sample(0, 0, 1, 1010, {70, 10});
    drawn.step(0, 0, {{Span::starved, 90}}, 1);
    drawn.step(0, 1000, {{Span::starved, 90}}, 1);
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(test::words(result, result.draws[0]) == (Words{"worker 10", "stage 0 30", "stage 1 50"}),
               boost::test_tools::per_element());
    BOOST_TEST(test::words(result, result.draws[1]) == (Words{"worker 10", "stage 0 70", "stage 1 10"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(order_is_what_a_complete_batch_waits_for_an_older_one) {
    DrawnLedger drawn{2, 2};
    drawn.ledger.pipelines[0].order = OrderRule::bounded(3);
    for (const std::uint32_t number : {0u, 1u}) {
        BatchRow& batch = drawn.batch(number, 0);
        batch.admitted_ns = number;
        batch.first_claim_ns = 10;
        batch.last_done_ns = number == 0 ? 300 : 200;
        batch.offered_ns = 310;
        batch.taken_ns = number == 0 ? 600 : 320;   // the younger one is handed over first
    }
    drawn.step(1, 100, {{Span::starved, 220}});
    const Blame result = drawpoint::blame(drawn.ledger);
    BOOST_TEST(result.draws[0].batch == 1u);
    BOOST_TEST(test::words(result, result.draws[0]) == (Words{"unknown 100", "order 100", "handoff 20"}),
               boost::test_tools::per_element());
    BOOST_TEST(result.draws[0].order_ns == 100);
    drawn.ledger.pipelines[0].order = OrderRule::out_of_order();
    const Blame free = drawpoint::blame(drawn.ledger);
    BOOST_TEST(test::words(free, free.draws[0]) == (Words{"unknown 100", "handoff 120"}),
               boost::test_tools::per_element());
    BOOST_TEST(free.draws[0].order_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_free_slot_under_a_budget_is_the_budget_s) {
    const auto admission = [](std::uint64_t budget, std::uint32_t depth, std::uint32_t number) {
        DrawnLedger drawn{2, depth};
        drawn.ledger.pipelines[0].memory_budget = budget;
        for (std::uint32_t i = 0; i < 2; ++i) {   // both stay there until 1200 and 1300
            BatchRow& before = drawn.batch(100 + i);
            before.admitted_ns = 10;
            before.taken_ns = 1200 + 100 * i;
        }
        BatchRow& batch = drawn.batch(number);
        batch.admitted_ns = 1500;
        batch.offered_ns = batch.taken_ns = 1600;
        drawn.step(number, 1000, {{Span::starved, 600}}).batch = number;
        const Blame result = drawpoint::blame(drawn.ledger);
        BOOST_TEST(result.max_residual_ns == 0);
        return test::words(result, result.draws[0]);
    };
    BOOST_TEST(admission(0, 1, 7) == (Words{"admission 500", "unknown 100"}), boost::test_tools::per_element());
    BOOST_TEST(admission(9, 2, 7) == (Words{"budget 500", "unknown 100"}), boost::test_tools::per_element());
    BOOST_TEST(admission(9, 2, 0).front() == "admission 500");   // a pass's first batch is admitted whatever its size
    BOOST_TEST(admission(9, 1, 7) == (Words{"admission 200", "budget 300", "unknown 100"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
