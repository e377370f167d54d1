#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace drawpoint {
namespace {

/// A training pass of one step: draw 1, batch 2 + 4, between 8; the pass itself spends 16 before and 32 after it.
Ledger one_step() {
    Ledger ledger;
    ledger.spans = {{Span::between, 0, 16},
                    {span_of(Event::after_train), 31, 32},
                    {Span::starved, 16, 1},
                    {span_of(Event::before_batch), 17, 0},
                    {Span::forward, 17, 2},
                    {span_of(Event::after_pred), 19, 0},
                    {Span::loss, 19, 4},
                    {span_of(Event::after_loss), 23, 0},
                    {span_of(Event::after_batch), 23, 0},
                    {Span::between, 23, 8}};
    ledger.passes = {{.kind = PassKind::train, .begin_ns = 0, .end_ns = 63, .spans = {0, 2}}};
    ledger.steps = {{.size = 1, .draw_begin_ns = 16, .draw_ns = 1, .batch_ns = 6, .spans = {2, 8}}};
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(ledger)

BOOST_AUTO_TEST_CASE(the_residual_is_zero_when_the_pieces_tile_the_pass) {
    BOOST_TEST(max_residual_ns(one_step()) == 0);
}

BOOST_AUTO_TEST_CASE(a_missing_piece_is_the_residual) {
    for (std::size_t piece = 0; piece < one_step().spans.size(); ++piece) {
        Ledger ledger = one_step();
        const std::int64_t lost = std::exchange(ledger.spans[piece].ns, 0);
        BOOST_TEST(max_residual_ns(ledger) == lost);
    }
}

BOOST_AUTO_TEST_CASE(a_piece_too_many_is_a_residual_too) {
    Ledger ledger = one_step();
    ledger.spans.front().ns += 3;
    BOOST_TEST(max_residual_ns(ledger) == 3);
}

BOOST_AUTO_TEST_CASE(an_epoch_or_a_fit_is_its_passes_and_its_own_pieces) {
    for (const PassKind outer : {PassKind::epoch, PassKind::fit}) {
        Ledger ledger = one_step();
        ledger.passes.insert(ledger.passes.begin(), PassRow{.kind = outer, .begin_ns = 0, .end_ns = 63});
        BOOST_TEST(max_residual_ns(ledger) == 0);
        ledger.passes.front().end_ns = 70;
        BOOST_TEST(max_residual_ns(ledger) == 7);
    }
}

BOOST_AUTO_TEST_CASE(a_pass_in_which_the_recording_stops_is_judged_from_its_first_row_to_its_last) {
    Ledger ledger = one_step();
    ledger.passes = {{.kind = PassKind::fit, .begin_ns = -5, .end_ns = 31, .ended = false},
                     // their pieces come only at their end
                     {.kind = PassKind::train, .begin_ns = 0, .end_ns = 31, .ended = false}};
    BOOST_TEST(max_residual_ns(ledger) == 0);
    for (std::size_t piece = 2; piece < ledger.spans.size(); ++piece) {   // the step's pieces
        Ledger missing = ledger;
        const std::int64_t lost = std::exchange(missing.spans[piece].ns, 0);
        BOOST_TEST(max_residual_ns(missing) == lost);
    }
    ledger.steps.push_back(ledger.steps.front());
    ledger.steps.back().draw_begin_ns += 20;   // 5 after the last piece of the first step
    for (PassRow& pass : ledger.passes)
        pass.end_ns += 20;
    BOOST_TEST(max_residual_ns(ledger) == 5);
    ledger.steps.clear();
    BOOST_TEST(max_residual_ns(ledger) == 0);   // passes that have not ended cannot be checked
}

BOOST_AUTO_TEST_CASE(a_pass_is_taken_from_the_innermost_pass_around_it_only) {
    Ledger ledger = one_step();
    ledger.passes.insert(ledger.passes.begin(), PassRow{.kind = PassKind::epoch, .begin_ns = 0, .end_ns = 63});
    ledger.passes.insert(ledger.passes.begin(), PassRow{.kind = PassKind::fit, .begin_ns = 0, .end_ns = 63});
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(an_action_whose_edge_never_happened_has_no_duration) {
    const Ledger ledger = one_step();
    BOOST_TEST(duration_of(ledger, ledger.steps[0], Action::forward).value() == 2);
    BOOST_TEST(duration_of(ledger, ledger.steps[0], Action::loss).value() == 4);
    BOOST_TEST(!duration_of(ledger, ledger.steps[0], Action::opt_step));
    BOOST_TEST(!duration_of(ledger, ledger.steps[0], Action::predict));
}

BOOST_AUTO_TEST_CASE(sorting_makes_ledgers_of_the_same_run_equal_whatever_the_order_of_arrival) {
    Ledger a = one_step(), b = one_step();
    for (Ledger* ledger : {&a, &b}) {
        ledger->stages = {{1, 2}, {3, 4}, {5, 6}};
        ledger->samples = {{.index = 3, .slot = 0, .stages = {0, 1}}, {.index = 9, .slot = 1, .stages = {1, 2}}};
    }
    std::swap(b.samples[0], b.samples[1]);
    BOOST_TEST(!(a == b));
    a.sort(), b.sort();
    BOOST_TEST((a == b));
    BOOST_TEST((b.stages_of(b.samples[1])[1] == StageRow{5, 6}));
}

BOOST_AUTO_TEST_CASE(a_caller_stands_before_what_it_calls_and_threads_one_after_the_other) {
    Ledger ledger;
    const auto row = [](std::uint32_t name, std::uint32_t thread, std::int64_t begin_ns, std::int64_t ns) {
        return OperatorRow{.name = name, .thread = thread, .begin_ns = begin_ns, .ns = ns};
    };
    const std::vector<OperatorRow> sorted{row(0, 0, 5, 1), row(1, 0, 7, 9), row(2, 0, 7, 3),       row(3, 0, 7, 0),
                                          row(4, 0, 7, 0), row(5, 1, 2, 1), row(6, 1, 2, no_stamp)};
    for (const std::size_t at : {6u, 2u, 3u, 1u, 4u, 5u, 0u})   // 3 before 4: equal rows keep their order
        ledger.operators.push_back(sorted[at]);
    ledger.allocations = {{.at_ns = 2, .thread = 1, .bytes = 1},
                          {.at_ns = 2, .thread = 0, .bytes = 2},
                          {.at_ns = 2, .thread = 0, .bytes = 3},
                          {.at_ns = 1, .thread = 4, .bytes = 4}};
    ledger.stack_samples = {{.at_ns = 9, .thread = 0, .stack = 1},
                            {.at_ns = 8, .thread = 2, .stack = 2},
                            {.at_ns = 8, .thread = 1, .stack = 3},
                            {.at_ns = 8, .thread = 1, .stack = 4}};
    ledger.names = {"b", "a"};
    ledger.sort();
    BOOST_TEST((ledger.operators == sorted));
    std::string order;
    for (const AllocationRow& allocation : ledger.allocations)
        order += std::to_string(allocation.bytes);
    for (const StackSampleRow& sample : ledger.stack_samples)
        order += std::to_string(sample.stack);
    BOOST_TEST(order == "42313421");
    BOOST_TEST((ledger.names == std::vector<std::string>{"b", "a"}));
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_a_number_equals_itself_and_no_other_loss) {
    StepRow a{.loss = std::numeric_limits<double>::quiet_NaN()}, b = a;
    BOOST_TEST((a == b));
    b.loss = 0.5;
    BOOST_TEST(!(a == b));
    b.loss.reset();
    BOOST_TEST(!(a == b));
}

BOOST_AUTO_TEST_CASE(the_last_text_set_for_a_fact_counts) {
    Ledger ledger;
    ledger.set_fact("b", "1"), ledger.set_fact("a", "2"), ledger.set_fact("b", "3");
    BOOST_TEST(ledger.facts.size() == 2);
    BOOST_TEST(ledger.fact("b").value() == "3");
    BOOST_TEST(!ledger.fact("c"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
