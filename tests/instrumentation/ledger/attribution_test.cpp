#include <boost/test/unit_test.hpp>

#include <string>

#include <drawpoint/instrumentation/ledger/attribution.hpp>

namespace {

using namespace drawpoint;

/// One training step in [0, 100): draw until 20, forward until 60, backward until 90; then "between" until 110. The
/// pass's own callbacks precede it. Worker 0 reads in [0, 10) and decodes in [10, 30). On the loop's thread a region
/// [30, 50) contains an operator [35, 40).
Ledger small_run() {
    Ledger ledger;
    ledger.threads = {{.tid = 7, .name = "loop"}, {.tid = 8, .name = "worker 0"}, {.tid = 9}};
    ledger.names = {"augment", "aten::add", "whole run"};
    ledger.passes = {{.kind = PassKind::train, .begin_ns = -10, .end_ns = 110, .spans = {0, 1}}};
    ledger.spans = {{span_of(Event::before_train), -10, 10},
                    {Span::starved, 0, 20},
                    {span_of(Event::before_batch), 20, 2},
                    {Span::forward, 22, 36},
                    {span_of(Event::after_pred), 58, 2},
                    {span_of(Event::before_backward), 60, 0},
                    {Span::backward, 60, 30},
                    {span_of(Event::before_step), 90, 0},
                    {span_of(Event::after_batch), 90, 10},
                    {Span::between, 100, 10}};
    ledger.steps = {{.draw_begin_ns = 0, .draw_ns = 20, .batch_ns = 80, .spans = {1, 9}}};
    ledger.pipelines = {{.name = "train", .stages = {"read", "decode"}}};
    ledger.stages = {{0, 10}, {10, 20}};
    ledger.samples = {{.worker = 0, .stages = {0, 2}}};
    ledger.operators = {{.kind = OperatorKind::user_annotation, .name = 0, .thread = 0, .begin_ns = 30, .ns = 20},
                        {.kind = OperatorKind::cpu_op, .name = 1, .thread = 0, .begin_ns = 35, .ns = 5}};
    return ledger;
}

std::string action(const Ledger& ledger, std::uint32_t thread, std::int64_t at_ns) {
    const Attribution attribution{ledger};
    return attribution.action_of(attribution.at(thread, at_ns));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(attribution)

BOOST_AUTO_TEST_CASE(the_loops_time_belongs_to_the_action_its_piece_lies_in) {
    const Ledger ledger = small_run();
    BOOST_TEST(action(ledger, 0, -5) == "train");
    BOOST_TEST(action(ledger, 0, 0) == "train.draw");
    BOOST_TEST(action(ledger, 0, 19) == "train.draw");
    BOOST_TEST(action(ledger, 0, 21) == "train.forward");   // it includes before_batch's callbacks
    BOOST_TEST(action(ledger, 0, 59) == "train.forward");   // and after_pred's
    BOOST_TEST(action(ledger, 0, 60) == "train.backward");
    BOOST_TEST(action(ledger, 0, 95) == "train.callbacks");
    BOOST_TEST(action(ledger, 0, 105) == "train.between");
    BOOST_TEST(action(ledger, 0, 110) == "");
    BOOST_TEST(action(ledger, 0, -11) == "");
}

BOOST_AUTO_TEST_CASE(a_workers_time_belongs_to_the_stage_it_runs) {
    const Ledger ledger = small_run();
    BOOST_TEST(action(ledger, 1, 0) == "read");
    BOOST_TEST(action(ledger, 1, 9) == "read");
    BOOST_TEST(action(ledger, 1, 10) == "decode");
    BOOST_TEST(action(ledger, 1, 30) == "");
    BOOST_TEST(action(ledger, 2, 10) == "");
    const Attribution attribution{ledger};
    BOOST_TEST(attribution.at(1, 5).sample == &ledger.samples[0]);
    BOOST_TEST(attribution.at(0, 5).sample == nullptr);
}

BOOST_AUTO_TEST_CASE(a_workers_time_with_a_whole_batch_belongs_to_collate) {
    Ledger ledger = small_run();
    ledger.batches = {{.collate_worker = std::uint16_t{0}, .collate_begin_ns = 30, .collate_end_ns = 35}};
    BOOST_TEST(action(ledger, 1, 29) == "decode");
    BOOST_TEST(action(ledger, 1, 30) == "collate");
    BOOST_TEST(action(ledger, 1, 34) == "collate");
    BOOST_TEST(action(ledger, 1, 35) == "");
    BOOST_TEST(Attribution{ledger}.at(1, 30).sample == nullptr);
    ledger.batches[0].collate_worker.reset();
    BOOST_TEST(action(ledger, 1, 30) == "");
}

BOOST_AUTO_TEST_CASE(a_region_opened_in_the_step_wins_over_the_steps_piece) {
    const Ledger ledger = small_run();
    BOOST_TEST(action(ledger, 0, 29) == "train.forward");
    BOOST_TEST(action(ledger, 0, 30) == "augment");
    BOOST_TEST(action(ledger, 0, 37) == "augment");
    BOOST_TEST(action(ledger, 0, 49) == "augment");
    BOOST_TEST(action(ledger, 0, 50) == "train.forward");
}

BOOST_AUTO_TEST_CASE(a_region_around_whole_steps_yields_to_their_pieces) {
    Ledger ledger = small_run();
    ledger.operators.push_back(
        {.kind = OperatorKind::user_annotation, .name = 2, .thread = 0, .begin_ns = -20, .ns = 200});
    BOOST_TEST(action(ledger, 0, 65) == "train.backward");
    BOOST_TEST(action(ledger, 0, 150) == "whole run");
}

BOOST_AUTO_TEST_CASE(operators_and_regions_are_told_apart) {
    const Ledger ledger = small_run();
    const Attribution attribution{ledger};
    BOOST_TEST(attribution.at(0, 37).op == &ledger.operators[1]);
    BOOST_TEST(attribution.at(0, 37).region == &ledger.operators[0]);
    BOOST_TEST(attribution.at(0, 40).op == &ledger.operators[0]);
    BOOST_TEST(attribution.at(0, 50).op == nullptr);
}

BOOST_AUTO_TEST_CASE(of_nested_regions_the_inner_one_counts_and_the_outer_goes_on_after_it) {
    Ledger ledger;
    ledger.threads = {{.tid = 3}};
    ledger.names = {"outer", "inner", "innermost"};
    const auto region = [](std::uint32_t name, std::int64_t begin_ns, std::int64_t ns) {
        return OperatorRow{.kind = OperatorKind::user_annotation, .name = name, .begin_ns = begin_ns, .ns = ns};
    };
    ledger.operators = {region(0, 0, 100), region(1, 10, 20), region(2, 12, 3), region(1, 50, 10)};
    for (const auto& [at_ns, name] : {std::pair{0, "outer"},
                                      {10, "inner"},
                                      {12, "innermost"},
                                      {15, "inner"},
                                      {30, "outer"},
                                      {49, "outer"},
                                      {59, "inner"},
                                      {60, "outer"},
                                      {99, "outer"},
                                      {100, ""}})
        BOOST_TEST(action(ledger, 0, at_ns) == name);
}

BOOST_AUTO_TEST_CASE(a_region_that_never_ended_lasts_to_the_last_thing_recorded) {
    Ledger ledger = small_run();
    ledger.operators = {
        {.kind = OperatorKind::user_annotation, .ended = false, .name = 2, .thread = 2, .begin_ns = 5, .ns = 95}};
    ledger.stack_samples = {{.at_ns = 100, .thread = 2}};
    BOOST_TEST(action(ledger, 2, 4) == "");
    BOOST_TEST(action(ledger, 2, 100) == "whole run");
}

BOOST_AUTO_TEST_CASE(a_region_whose_end_was_lost_lasts_no_longer_than_the_one_around_it) {
    Ledger ledger = small_run();
    const auto region = [](std::uint32_t name, bool ended, std::int64_t begin_ns, std::int64_t ns) {
        return OperatorRow{.kind = OperatorKind::user_annotation,
                           .ended = ended,
                           .name = name,
                           .thread = 2,
                           .begin_ns = begin_ns,
                           .ns = ns};
    };
    ledger.operators = {region(2, true, 0, 50), region(0, false, 10, 40), region(2, true, 60, 10)};
    BOOST_TEST(action(ledger, 2, 49) == "augment");
    BOOST_TEST(action(ledger, 2, 55) == "");
    BOOST_TEST(action(ledger, 2, 65) == "whole run");
    BOOST_TEST(action(ledger, 2, 1'000'000) == "");
}

BOOST_AUTO_TEST_CASE(rows_of_one_system_thread_are_joined) {
    Ledger ledger = small_run();
    ledger.threads.push_back({.tid = 7});
    BOOST_TEST(action(ledger, 3, 5) == "train.draw");
    const Attribution attribution{ledger};
    BOOST_TEST(attribution.thread_name(3) == "loop");
    BOOST_TEST(attribution.thread_name(2) == "thread 9");
    ledger.threads.push_back({.tid = 7, .name = "stream", .device = 0});
    BOOST_TEST(action(ledger, 4, 5) == "");
}

BOOST_AUTO_TEST_CASE(the_mark_of_a_profilers_step_is_no_action) {
    Ledger ledger = small_run();
    ledger.names[0] = "ProfilerStep#3";
    BOOST_TEST(action(ledger, 0, 37) == "train.forward");
}

BOOST_AUTO_TEST_SUITE_END()
