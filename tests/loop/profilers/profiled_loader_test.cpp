#include <drawpoint/loop/profilers/profile_iterable.hpp>
#include <drawpoint/loop/profilers/simple.hpp>

#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include "loop/profilers/small_fit.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

/// A pass that fails at its first draw.
struct BrokenPass {
    using Batch = TapeBatch;
    ManualClock* clock;
    [[nodiscard]] std::optional<std::size_t> size() const { return 1; }
    [[nodiscard]] Awaitable<std::optional<TapeBatch>> next() {
        clock->advance(3ms);
        if (clock->now_ns() > 0)
            throw std::runtime_error("no such file");
        co_return std::nullopt;
    }
};

template <class Pass>
Awaitable<void> draw_all(Pass& pass, ManualClock& clock) {
    for (;;) {
        auto batch = co_await pass.next();
        if (!batch)
            break;
        clock.advance(100ms);   // the loop's body, which is not timed
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(profiled_loader)

BOOST_AUTO_TEST_CASE(every_draw_is_timed_also_the_one_that_finds_the_end_and_no_body_is) {
    ManualClock clock;
    Tape tape{clock, {{{.starved = 8ms}, {.starved = 2ms}}}};
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    auto pass = profile_iterable(profiler, tape.epoch(0), "get_train_batch");
    run_alone(draw_all(pass, clock));
    const auto durations = profiler.durations("get_train_batch");
    BOOST_REQUIRE_EQUAL(durations.size(), 3u);
    BOOST_TEST(durations[0] == 0.008, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(durations[1] == 0.002, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(durations[2] == 0.0);
}

BOOST_AUTO_TEST_CASE(a_draw_that_throws_is_timed_until_then) {
    ManualClock clock;
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    auto pass = profile_iterable(profiler, BrokenPass{&clock}, "draw");
    BOOST_CHECK_THROW(run_alone(draw_all(pass, clock)), std::runtime_error);
    BOOST_REQUIRE_EQUAL(profiler.durations("draw").size(), 1u);
    BOOST_TEST(profiler.durations("draw")[0] == 0.003);
}

BOOST_AUTO_TEST_CASE(fit_takes_a_profiled_loader_and_accounts_for_its_draws_as_before) {
    SmallFit small{2, 3};
    SimpleProfiler profiler{{}, {}, AnyClock{small.clock}};
    auto train = profile_iterable(profiler, small.train, "get_train_batch");
    static_assert(EpochSource<decltype(train)>);
    const FitOptions options{.epochs = 2};
    run_alone(fit(small.learner, train, small.valid, options, small.callbacks, small.recorder));
    BOOST_TEST(profiler.durations("get_train_batch").size() == 6u);
    const Ledger ledger = small.recorder.ledger();
    BOOST_TEST(max_residual_ns(ledger) == 0);
    BOOST_TEST(ledger.steps.at(0).draw_ns == 8'000'000);
}

BOOST_AUTO_TEST_SUITE_END()
