#include <boost/test/unit_test.hpp>

#include <sstream>
#include <string>

#include <drawpoint/instrumentation/export/folded.hpp>

namespace {

using namespace drawpoint;

std::string text_of(const Ledger& ledger) {
    std::ostringstream out;
    write_folded(ledger, out);
    return out.str();
}

Ledger sampled_run() {
    Ledger ledger;
    ledger.names = {"main", "a;b\n", "act", ""};
    ledger.frames = {{0}, {1}, {3}};
    ledger.stacks = {{nothing, 0}, {0, 1}, {0, 2}};
    ledger.threads = {{.tid = 4, .name = "loop"}, {.tid = 5}};
    ledger.operators = {{.kind = OperatorKind::user_annotation, .name = 2, .thread = 0, .begin_ns = 10, .ns = 10}};
    ledger.stack_samples = {{0, 0, 1, 1}, {1, 0, 1, 1}, {12, 0, 1, 1}, {13, 1, 0, 1}, {14, 1, 2, 1}};
    return ledger;
}

/// A fit with an epoch with a training pass of one step, in microseconds.
Ledger loop_run() {
    Ledger ledger;
    const auto us = [](std::int64_t count) { return count * 1000; };
    ledger.passes = {{.kind = PassKind::fit, .begin_ns = 0, .end_ns = us(100), .spans = {0, 1}},
                     {.kind = PassKind::epoch, .begin_ns = us(5), .end_ns = us(100)},
                     {.kind = PassKind::train, .begin_ns = us(5), .end_ns = us(100)}};
    ledger.spans = {{span_of(Event::before_fit), 0, us(5)},
                    {Span::starved, us(5), us(40)},
                    {Span::handoff, us(45), 400},
                    {span_of(Event::before_batch), us(46), us(2)},
                    {Span::forward, us(48), us(30)},
                    {span_of(Event::after_pred), us(78), us(2)},
                    {span_of(Event::after_batch), us(80), us(10)},
                    {Span::between, us(90), us(10)}};
    ledger.steps = {{.draw_begin_ns = us(5), .draw_ns = us(41), .batch_ns = us(44), .spans = {1, 7}}};
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(folded)

BOOST_AUTO_TEST_CASE(samples_become_thread_action_and_frames_with_their_count) {
    BOOST_TEST(text_of(sampled_run()) == "loop;(no action);main;a,b  2\n"
                                         "loop;act;main;a,b  1\n"
                                         "thread 5;(no action);main 1\n"
                                         "thread 5;(no action);main;[unknown] 1\n");
}

BOOST_AUTO_TEST_CASE(without_samples_the_loops_pieces_stand_in_their_passes_in_microseconds) {
    BOOST_TEST(text_of(loop_run()) == "fit;before_fit 5\n"
                                      "fit;epoch;train;between 10\n"
                                      "fit;epoch;train;step;batch;callbacks;after_batch 10\n"
                                      "fit;epoch;train;step;batch;forward 30\n"
                                      "fit;epoch;train;step;batch;forward;after_pred 2\n"
                                      "fit;epoch;train;step;batch;forward;before_batch 2\n"
                                      "fit;epoch;train;step;draw;starved 40\n");
}

BOOST_AUTO_TEST_CASE(an_empty_recording_gives_nothing) { BOOST_TEST(text_of(Ledger{}).empty()); }

BOOST_AUTO_TEST_SUITE_END()
