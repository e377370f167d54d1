#include <drawpoint/diagnosis/blame/blame.hpp>

#include <boost/test/unit_test.hpp>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;

/// Adds a batch of four samples that two workers make from `from_ns` on, and whose draw begins at `draw_ns`; it comes
/// some time after the warm-up steps. Sample 2, made by worker 1 after sample 1, takes `slow_ns`; the others take 10 in
/// "read" and 90 in "decode".
void add_batch(DrawnLedger& drawn, std::uint32_t number, std::int64_t from_ns, std::int64_t draw_ns,
               std::int64_t slow_ns) {
    BatchRow& batch = drawn.batch(number, 4);
    const std::int64_t done_ns = from_ns + 100 + std::max<std::int64_t>(slow_ns, 200);
    batch.admitted_ns = batch.first_claim_ns = from_ns;
    batch.last_done_ns = batch.offered_ns = batch.taken_ns = done_ns;
    drawn.sample(number, 0, 0, from_ns, {10, 90});
    drawn.sample(number, 1, 1, from_ns, {10, 90});
    drawn.sample(number, 2, 1, from_ns + 100, {10, slow_ns - 10});
    drawn.sample(number, 3, 0, from_ns + 100, {10, 90});
    drawn.step(number, draw_ns, {{Span::starved, done_ns - draw_ns}, {Span::forward, 50}}, 4);
}

BOOST_AUTO_TEST_SUITE(slow_samples)

BOOST_AUTO_TEST_CASE(a_sample_stalls_by_what_its_batch_would_have_been_earlier_without_it) {
    DrawnLedger drawn{2, 0};
    add_batch(drawn, 0, 0, 50, 200);
    add_batch(drawn, 1, 1000, 1200, 700);   // complete at 1800; worker 0 finished at 1200
    const Blame result = blame(drawn.ledger);
    BOOST_TEST(result.first_steady_step == 0u);
    BOOST_REQUIRE(result.slow_samples.size() >= 2u);
    const SlowSample& slowest = result.slow_samples.front();
    BOOST_TEST(drawn.ledger.samples[slowest.sample].index == 102u);
    BOOST_TEST(slowest.stall_ns == 600);   // not 700: without it, worker 0's last sample would have been the last
    BOOST_TEST(slowest.stage == 1);
    BOOST_TEST(slowest.times == 1u);
    for (const SlowSample& slow : result.slow_samples)   // the loop did not wait for worker 0's samples
        BOOST_TEST(drawn.ledger.samples[slow.sample].worker == 1);
    BOOST_TEST(!path_of(drawn.ledger, slowest).has_value());
    drawn.ledger.set_fact("sample.path.0.102", "");
    BOOST_TEST(!path_of(drawn.ledger, slowest).has_value());
    drawn.ledger.set_fact("sample.path.0.102", "photos/102.jpg");
    BOOST_TEST(path_of(drawn.ledger, slowest).value_or("") == "photos/102.jpg");
}

BOOST_AUTO_TEST_CASE(nobody_stalls_longer_than_the_loop_waited) {
    DrawnLedger drawn{2, 0};
    add_batch(drawn, 0, 0, 50, 200);
    add_batch(drawn, 1, 1000, 1780, 700);
    const Blame result = blame(drawn.ledger);
    for (const SlowSample& slow : result.slow_samples)
        if (drawn.ledger.samples[slow.sample].batch == 1)
            BOOST_TEST(slow.stall_ns <= 20);
    BOOST_TEST(drawn.ledger.samples[result.slow_samples[0].sample].batch == 0u);
}

BOOST_AUTO_TEST_CASE(one_worker_s_sample_stalls_wherever_it_stands_in_its_batch) {
    DrawnLedger drawn{1, 0};
    BatchRow& batch = drawn.batch(0, 3);
    batch.admitted_ns = batch.first_claim_ns = 0;
    batch.last_done_ns = batch.offered_ns = batch.taken_ns = 900;
    drawn.sample(0, 0, 0, 0, {10, 90});
    drawn.sample(0, 1, 0, 100, {650, 50});   // slow, but not the last
    drawn.sample(0, 2, 0, 800, {10, 90});
    drawn.step(0, 0, {{Span::starved, 900}}, 3);
    const Blame result = blame(drawn.ledger);
    BOOST_REQUIRE(result.slow_samples.size() == 3u);
    BOOST_TEST((result.slow_samples[0] == SlowSample{.sample = 1, .stage = 0, .times = 1, .stall_ns = 700}));
    // a tie with another sample
    BOOST_TEST((result.slow_samples[1] == SlowSample{.sample = 0, .stage = 1, .times = 1, .stall_ns = 100}));
    BOOST_TEST(result.slow_samples[2].sample == 2u);
}

BOOST_AUTO_TEST_CASE(a_sample_that_stalls_in_every_epoch_is_one_entry) {
    DrawnLedger drawn{2, 0};
    for (std::uint32_t i = 0; i < 4; ++i)
        add_batch(drawn, i, 1000 * i, 1000 * i + 250, 500 + 10 * i);
    for (SampleRow& sample : drawn.ledger.samples)
        sample.index = sample.slot;
    const Blame result = blame(drawn.ledger);
    const SlowSample& slowest = result.slow_samples.front();
    BOOST_TEST(slowest.times == 4u);
    BOOST_TEST(slowest.stall_ns == 350 + 360 + 370 + 380);
    BOOST_TEST(slowest.sample == 4u * 3 + 2);
}

BOOST_AUTO_TEST_CASE(warm_up_runs_and_batches_that_lack_records_name_nobody) {
    const auto slow = [](auto change) {
        DrawnLedger drawn{2, 0};
        add_batch(drawn, 0, 0, 50, 700);
        change(drawn.ledger);
        return blame(drawn.ledger).slow_samples.size();
    };
    BOOST_TEST(slow([](Ledger&) {}) > 0u);
    BOOST_TEST(slow([](Ledger& ledger) { ledger.samples.erase(ledger.samples.begin()); }) == 0u);
    BOOST_TEST(slow([](Ledger& ledger) { ledger.samples[3].samples = 2; }) == 0u);
    BOOST_TEST(slow([](Ledger& ledger) { ledger.steps[0].draw_ns = ledger.spans[0].ns = 0; }) == 0u);
    DrawnLedger drawn{2, 1};
    for (std::uint32_t i = 0; i < 2; ++i)
        add_batch(drawn, i, 1000 * i, 1000 * i + 50, 700);
    for (const SlowSample& sample : blame(drawn.ledger).slow_samples)
        BOOST_TEST(drawn.ledger.samples[sample.sample].batch == 1u);   // batch 0 is warm-up
}

BOOST_AUTO_TEST_CASE(the_catalogue_has_the_hundred_that_stalled_most) {
    DrawnLedger drawn{2, 0};
    for (std::uint32_t i = 0; i < 150; ++i)
        add_batch(drawn, i, 1000 * i, 1000 * i + 250, 300 + i * 37 % 150);
    const Blame result = blame(drawn.ledger);
    BOOST_REQUIRE(result.slow_samples.size() == 100u);
    for (std::size_t i = 0; i < 100; ++i)
        BOOST_TEST(result.slow_samples[i].stall_ns == 299 - static_cast<std::int64_t>(i));   // 37 and 150 are coprime
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
