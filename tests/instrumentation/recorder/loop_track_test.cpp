#include <drawpoint/instrumentation/recorder/loop_track.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {
namespace {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(loop_track)

BOOST_AUTO_TEST_CASE(passes_below_the_third_count_in_it_and_an_end_too_many_does_nothing) {
    for (const std::uint32_t deep : {3u, 4u, 9u}) {
        ManualClock clock;
        Recorder recorder{{}, AnyClock{clock}};
        LoopTrack track{recorder};
        for (std::uint32_t level = 0; level < deep; ++level) {
            track.begin_pass(std::array{PassKind::fit, PassKind::epoch, PassKind::train}[std::min(level, 2u)], 0);
            clock.advance(1us);
            track.mark(Span::other);
        }
        track.begin_step(Phase::train, 0, 0);
        clock.advance(5us);
        track.mark(Span::starved);
        track.end_draw(1);
        track.end_step(StepStatus::complete, std::nullopt);
        for (std::uint32_t level = 0; level < deep; ++level) {
            clock.advance(1us);
            track.mark(Span::between);
            track.end_pass();
        }
        track.end_pass();
        clock.advance(1us);
        track.mark(Span::between);   // outside every pass
        const Ledger ledger = recorder.ledger();
        BOOST_TEST_REQUIRE(ledger.passes.size() == 3u);
        BOOST_TEST(max_residual_ns(ledger) == 0);
        BOOST_TEST(ledger.passes.front().end_ns - ledger.passes.front().begin_ns == 1000 * (2 * deep + 5));
        BOOST_TEST(ledger.steps.size() == 1u);
    }
}

BOOST_AUTO_TEST_CASE(a_pass_of_many_pieces_is_recorded_as_several) {
    ManualClock clock;
    Recorder recorder{{}, AnyClock{clock}};
    LoopTrack track{recorder};
    track.begin_pass(PassKind::fit, 7);
    for (std::uint32_t epoch = 0; epoch < 100; ++epoch) {
        clock.advance(3us);
        track.mark(Span::between);
        track.begin_pass(PassKind::train, epoch);
        track.begin_step(Phase::train, epoch, 0);
        clock.advance(5us);
        track.mark(Span::starved);
        track.end_draw(1);
        track.end_step(StepStatus::complete, std::nullopt);
        track.end_pass();
    }
    track.end_pass();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(max_residual_ns(ledger) == 0);
    BOOST_TEST(untiled_ns(ledger) == 0);
    std::int64_t fits_ns = 0, fits = 0;
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == PassKind::fit) {
            ++fits;
            fits_ns += pass.end_ns - pass.begin_ns;
            BOOST_TEST(pass.epoch == 7u);
            BOOST_TEST(pass.ended);
        }
    BOOST_TEST(fits == 3);
    BOOST_TEST(fits_ns == 800'000);
    BOOST_TEST(ledger.steps.size() == 100u);
}

BOOST_AUTO_TEST_CASE(a_step_that_ends_in_its_draw_is_all_draw) {
    ManualClock clock;
    Recorder recorder{{}, AnyClock{clock}};
    LoopTrack track{recorder};
    track.begin_pass(PassKind::train, 0);
    for (const bool draws : {true, false}) {
        track.begin_step(Phase::train, 0, 0);
        clock.advance(draws ? 5us : 7us);
        track.mark(Span::starved);
        if (draws) {
            track.end_draw(1);
            clock.advance(2us);
            track.mark(Span::other);
        }
        track.end_step(draws ? StepStatus::complete : StepStatus::cancelled, std::nullopt);
    }
    track.end_pass();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST_REQUIRE(ledger.steps.size() == 2u);
    BOOST_TEST(ledger.steps[0].draw_ns == 5000);
    BOOST_TEST(ledger.steps[0].batch_ns == 2000);
    BOOST_TEST(ledger.steps[1].draw_ns == 7000);
    BOOST_TEST(ledger.steps[1].batch_ns == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
