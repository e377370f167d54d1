#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>

#include <set>
#include <string_view>

#include <boost/test/unit_test.hpp>

namespace {

using namespace drawpoint;

constexpr std::int64_t ms = 1'000'000;

/// Training steps of 5 ms, with 1 ms between each and the next draw, and then as many validation steps.
Ledger trained_and_validated(std::size_t steps) {
    Ledger ledger;
    std::int64_t at_ns = 100 * ms;
    for (const Phase phase : {Phase::train, Phase::valid})
        for (std::size_t i = 0; i < steps; ++i) {
            StepRow step;
            step.phase = phase;
            step.size = 4;
            step.draw_begin_ns = at_ns;
            step.draw_ns = 2 * ms;
            step.batch_ns = 3 * ms;
            step.spans = {static_cast<std::uint32_t>(ledger.spans.size()), 1};
            ledger.spans.push_back({Span::between, at_ns + 5 * ms, ms});
            ledger.steps.push_back(step);
            at_ns += 6 * ms;
        }
    return ledger;
}

BOOST_AUTO_TEST_SUITE(steady_run)

BOOST_AUTO_TEST_CASE(the_window_ends_with_the_last_training_step_and_what_lies_behind_it) {
    const TimeRange window = steady_window(trained_and_validated(10), 3);
    BOOST_TEST(window.from_ns == (100 + 3 * 6) * ms);
    BOOST_TEST(window.to_ns == (100 + 10 * 6) * ms);   // excludes validation
}

BOOST_AUTO_TEST_CASE(where_no_training_step_is_steady_the_window_is_empty) {
    const Ledger ledger = trained_and_validated(10);
    for (const std::size_t first : {std::size_t{10}, ledger.steps.size(), ledger.steps.size() + 5}) {
        const TimeRange window = steady_window(ledger, first);
        BOOST_TEST(window.from_ns == window.to_ns);
    }
    const SteadyRun none = prepare(Ledger{});
    BOOST_TEST(!none.run.unusable.empty());
    BOOST_TEST(none.replayed_batches_per_s == 0.0);
}

BOOST_AUTO_TEST_CASE(every_reason_to_distrust_has_a_word_of_its_own) {
    std::set<std::string_view> words;
    std::size_t outside = 0, count = 0;
    for (auto reason = DistrustReason::foreign_load; reason <= DistrustReason::stood_still;
         reason = static_cast<DistrustReason>(static_cast<int>(reason) + 1), ++count) {
        words.insert(to_string(reason));
        outside += is_interference(reason);
    }
    BOOST_TEST(words.size() == count);
    BOOST_TEST(outside == 5u);
    BOOST_TEST(is_interference(DistrustReason::steal));
    BOOST_TEST(!is_interference(DistrustReason::lost_records));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
