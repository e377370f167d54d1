#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>

#include <cmath>
#include <set>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

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

BOOST_AUTO_TEST_CASE(what_a_recording_does_not_tell_of_the_loop_is_chosen_so_that_the_replay_fits) {
    for (const auto what : {&RecordedRun::loop_waits_first, &RecordedRun::helpers_yield}) {
        const bool helpers = what == &RecordedRun::helpers_yield;
        RecordedRun run = test::constant_run({.batch_size = 16,
                                              .sample = {helpers ? 400'000 : 100'000, 0},
                                              .compute = {helpers ? 800'000 : 980'000, helpers ? 0 : 260'000},
                                              .steps = 1000});
        for (std::size_t i = 0; i < run.samples.size(); ++i)   // uneven
            run.samples[i].stages[0].cpu_ns += static_cast<std::int64_t>(i * 37 % 64) * 1'000;
        for (StepDemand& step : run.steps) {
            step.threads = helpers ? 2 : 1;
            step.spins = helpers;
        }
        run.cores = 2;
        run.setting.num_workers = 2;
        const auto rate_if = [&](bool it_does) {
            RecordedRun other = run;
            other.*what = it_does;
            ReplayOptions options{.setting = run.setting, .steps = 1000, .warm_up_steps = 64};
            return replay(other, options).batches_per_s;
        };
        for (const bool it_does : {false, true}) {
            run.batches_per_s = rate_if(it_does);
            BOOST_TEST(std::abs(run.batches_per_s / rate_if(!it_does) - 1) > 0.02);
            run.*what = false;
            const double rate = replay_recorded(run, Interference{}, 1'000'000);
            BOOST_TEST((run.*what) == it_does);
            BOOST_TEST(std::abs(rate / run.batches_per_s - 1) < 0.02);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
