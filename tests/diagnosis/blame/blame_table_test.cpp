#include <drawpoint/diagnosis/blame/blame.hpp>

#include <boost/test/unit_test.hpp>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;

/// Four steps of 100 ns each; while the loop waits, sample 0 of each batch is in read and then in decode.
DrawnLedger four_steps() {
    DrawnLedger drawn{2, 1};
    for (std::uint32_t i = 0; i < 4; ++i) {
        const std::int64_t from = 100 * i;
        BatchRow& batch = drawn.batch(i, 1);
        batch.admitted_ns = batch.first_claim_ns = from + 5;
        batch.last_done_ns = batch.offered_ns = batch.taken_ns = from + 60;
        drawn.sample(i, 0, 0, from + 5, {15, 40});
        drawn.step(i, from, {{Span::starved, 60}, {Span::forward, 40}}, 1);
    }
    return drawn;
}

BOOST_AUTO_TEST_SUITE(blame_table)

BOOST_AUTO_TEST_CASE(a_table_has_a_row_for_each_cause_and_stage_the_largest_first) {
    const Ledger ledger = four_steps().ledger;   // one warm-up step, three steady ones
    const std::vector<BlameRow> rows = drawpoint::blame_table(ledger, blame(ledger));
    BOOST_REQUIRE(rows.size() == 3u);
    BOOST_TEST((rows[0] == BlameRow{.key = "stage:decode", .cause = "decode", .ns = 120, .share = 120.0 / 180}));
    BOOST_TEST((rows[1] == BlameRow{.key = "stage:read", .cause = "read", .ns = 45, .share = 45.0 / 180}));
    BOOST_TEST((rows[2] == BlameRow{.key = "admission", .cause = "prefetch_depth", .ns = 15, .share = 15.0 / 180}));
}

BOOST_AUTO_TEST_CASE(warm_up_and_first_draws_have_tables_of_their_own) {
    Ledger ledger = four_steps().ledger;
    ledger.steps[3].epoch = 1;
    const Blame result = blame(ledger);
    BOOST_TEST(drawpoint::blame_table(ledger, result).front().ns == 80);
    BOOST_TEST(drawpoint::blame_table(ledger, result, DrawKind::warm_up).front().ns == 40);
    BOOST_TEST(drawpoint::blame_table(ledger, result, DrawKind::first_of_pass).front().ns == 40);
    for (StepRow& step : ledger.steps)
        step.phase = Phase::valid;
    BOOST_TEST(drawpoint::blame_table(ledger, blame(ledger)).empty());   // the table needs training draws
}

BOOST_AUTO_TEST_CASE(a_row_tells_how_its_time_was_spent) {
    Ledger ledger = four_steps().ledger;
    ledger.stages[3].cpu_ns = 30;   // batch 1's decode computed 30 of its 40 ns
    ledger.stages[2].cpu_ns = 15;
    ledger.samples[1].run_queue_ns = 4;
    const BlameRow decode = drawpoint::blame_table(ledger, blame(ledger)).front();
    BOOST_TEST(decode.ns == 120);
    BOOST_TEST(decode.computing_ns == 30);
    BOOST_TEST(decode.run_queue_ns == 4);
    BOOST_TEST(decode.waiting_ns == 6);
}

BOOST_AUTO_TEST_CASE(other_samples_are_named_by_the_stage_their_workers_were_mostly_at) {
    DrawnLedger drawn{2, 1};
    // one worker: the loop waits for the first sample before the last one begins
    for (std::uint32_t i = 0; i < 4; ++i) {
        const std::int64_t from = 100 * i;
        BatchRow& batch = drawn.batch(i, 2);
        batch.admitted_ns = batch.first_claim_ns = from;
        batch.last_done_ns = batch.offered_ns = batch.taken_ns = from + 60;
        drawn.sample(i, 0, 0, from, {5, 45});
        drawn.sample(i, 1, 0, from + 50, {5, 5});
        drawn.step(i, from, {{Span::starved, 60}, {Span::forward, 40}}, 2);
    }
    const BlameRow others = drawpoint::blame_table(drawn.ledger, blame(drawn.ledger)).front();
    BOOST_TEST(others.key == "other_samples");
    BOOST_TEST(others.cause == "other samples: decode");
    BOOST_TEST(others.ns == 3 * 50);
}

BOOST_AUTO_TEST_CASE(causes_are_called_what_a_user_can_set) {
    const Ledger ledger = four_steps().ledger;
    DrawBlame draw{.batch = 0};
    const auto name = [&](Cause cause) { return name_of(ledger, draw, {.cause = cause, .stage = 1}); };
    BOOST_TEST(name(Cause::admission) == "prefetch_depth");
    BOOST_TEST(name(Cause::budget) == "memory_budget");
    BOOST_TEST(name(Cause::worker) == "num_workers");
    BOOST_TEST(name(Cause::read) == "read");
    BOOST_TEST(name(Cause::stage) == "decode");
    BOOST_TEST(name(Cause::other_samples) == "other samples");
    BOOST_TEST(name(Cause::collate_queue) == "collate queue");
    BOOST_TEST(name(Cause::handoff) == "handoff");
    draw.batch = nothing;
    BOOST_TEST(name(Cause::stage) == "stage 1");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
