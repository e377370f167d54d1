#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

#include "tests/instrumentation/report/hand_made.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::hand_made;

const SummaryRow* find_row(const Summary& summary, std::string_view phase, Action action) {
    const auto found =
        std::ranges::find_if(summary.rows, [&](const SummaryRow& r) { return r.phase == phase && r.action == action; });
    return found == summary.rows.end() ? nullptr : &*found;
}

/// The total of a row in nanoseconds; -1 if there is no such row.
std::int64_t total_ns(const Summary& summary, std::string_view phase, Action action) {
    const SummaryRow* row = find_row(summary, phase, action);
    return row ? std::llround(row->total_s * 1e9) : -1;
}

constexpr std::int64_t forward_all = before_batch + forward + after_pred, loss_all = loss + after_loss,
                       backward_all = before_backward + backward + after_backward,
                       opt_step_all = before_step + opt_step + after_step,
                       draw_all = before_draw + starved + handoff + transfer,
                       batch_all = forward_all + loss_all + gap + backward_all + opt_step_all + zero_grad + after_batch;

BOOST_AUTO_TEST_SUITE(summary)

BOOST_AUTO_TEST_CASE(each_row_is_exactly_the_share_of_its_own_pieces) {
    const Summary all = summarize(one_epoch(), {.drop_first_batch = false});
    const std::int64_t train = 1 + 2 + 4, valid = 1 + 2;   // the factors
    BOOST_TEST(total_ns(all, "train", Action::draw) == train * draw_all);
    BOOST_TEST(total_ns(all, "train", Action::forward) == train * forward_all);
    BOOST_TEST(total_ns(all, "train", Action::loss) == train * loss_all);
    BOOST_TEST(total_ns(all, "train", Action::backward) == train * backward_all);
    BOOST_TEST(total_ns(all, "train", Action::opt_step) == train * opt_step_all);
    BOOST_TEST(total_ns(all, "train", Action::zero_grad) == train * zero_grad);
    BOOST_TEST(total_ns(all, "train", Action::callbacks) == train * after_batch);
    BOOST_TEST(total_ns(all, "train", Action::other) == train * gap);
    BOOST_TEST(total_ns(all, "train", Action::between) == train * between);
    BOOST_TEST(total_ns(all, "train", Action::batch) == train * batch_all);
    BOOST_TEST(total_ns(all, "train", Action::step) == train * (draw_all + batch_all));
    BOOST_TEST(total_ns(all, "valid", Action::draw) == valid * (before_draw + starved));
    BOOST_TEST(total_ns(all, "valid", Action::predict) == valid * forward_all);
    BOOST_TEST(total_ns(all, "valid", Action::loss) == valid * loss_all);
    BOOST_TEST(total_ns(all, "valid", Action::other) == valid * gap);
    BOOST_TEST(total_ns(all, "valid", Action::callbacks) == valid * after_batch);
    BOOST_TEST(total_ns(all, "valid", Action::backward) == -1);
    BOOST_TEST(total_ns(all, "train", Action::predict) == -1);
    BOOST_TEST(total_ns(all, "fit", Action::between) == 4 * around);
}

BOOST_AUTO_TEST_CASE(the_columns_add_up) {
    for (const bool drop : {false, true}) {
        const Summary report = summarize(one_epoch(), {.drop_first_batch = drop});
        for (const std::string_view phase : {"train", "valid"}) {
            const auto total = [&](Action action) {
                return std::max<std::int64_t>(total_ns(report, phase, action), 0);
            };
            BOOST_TEST(total(Action::draw) + total(Action::batch) == total(Action::step));
            BOOST_TEST(total(Action::forward) + total(Action::predict) + total(Action::loss) + total(Action::backward) +
                           total(Action::opt_step) + total(Action::zero_grad) + total(Action::callbacks) +
                           total(Action::other) ==
                       total(Action::batch));
        }
    }
    const Summary all = summarize(one_epoch(), {.drop_first_batch = false});
    std::int64_t sum = total_ns(all, "fit", Action::between);
    for (const std::string_view phase : {"train", "valid"})
        sum += total_ns(all, phase, Action::step) + total_ns(all, phase, Action::between);
    BOOST_TEST(sum == total_ns(all, "fit", Action::fit));
    BOOST_TEST(all.conservation.max_residual_ns == 0);
}

BOOST_AUTO_TEST_CASE(every_action_of_a_step_is_what_the_ledger_says_it_is) {
    const Ledger ledger = one_epoch();
    for (const StepRow& step : ledger.steps) {
        const StepDurations durations = durations_of(ledger, step);
        for (std::size_t i = 0; i < action_count; ++i)
            BOOST_TEST(duration_of(ledger, step, static_cast<Action>(i)).value_or(no_stamp) == durations[i]);
    }
}

BOOST_AUTO_TEST_CASE(the_split_of_the_draw_adds_up_to_the_draws_that_count) {
    const Summary report = summarize(one_epoch());
    BOOST_TEST(report.draw.callbacks_s == 8.0 * before_draw / 1e9);   // factors 2 and 4, and 2 in validation
    BOOST_TEST(report.draw.starved_s == 8.0 * starved / 1e9);
    BOOST_TEST(report.draw.handoff_s == 6.0 * handoff / 1e9);
    BOOST_TEST(report.draw.transfer_s == 6.0 * transfer / 1e9);
    BOOST_TEST(report.headroom.draw_s == (7.0 * draw_all + 3.0 * (before_draw + starved)) / 1e9);
    const double wall = report.run.wall_s;
    BOOST_TEST(*report.headroom.throughput_gain_if_draw_were_zero == wall / (wall - report.headroom.draw_s) - 1,
               boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(the_first_batch_of_each_phase_is_left_out_unless_it_is_the_only_one) {
    const Summary dropped = summarize(one_epoch());
    BOOST_TEST(find_row(dropped, "train", Action::draw)->calls == 2u);
    BOOST_TEST(find_row(dropped, "valid", Action::draw)->calls == 1u);
    BOOST_TEST(dropped.left_out.first_batches == 2u);
    BOOST_TEST(dropped.conservation.steps == 5u);
    Ledger single = one_epoch();
    single.steps.resize(1);
    BOOST_TEST(find_row(summarize(single), "train", Action::draw)->calls == 1u);
}

BOOST_AUTO_TEST_CASE(rates_are_means_over_batches_and_the_draw_s_is_what_it_costs) {
    const Summary report = summarize(one_epoch(), {.drop_first_batch = false});
    const double step = draw_all + batch_all, batch = batch_all;
    const double mean_inverse_factor = (1 + 0.5 + 0.25) / 3, per_s = 4 * 1e9 * mean_inverse_factor;
    const auto tolerance = boost::test_tools::tolerance(1e-12);
    BOOST_TEST(*find_row(report, "train", Action::step)->samples_per_s == per_s / step, tolerance);
    BOOST_TEST(*find_row(report, "train", Action::batch)->samples_per_s == per_s / batch, tolerance);
    BOOST_TEST(*find_row(report, "train", Action::draw)->samples_per_s == per_s / step - per_s / batch,
               boost::test_tools::tolerance(1e-9));
    BOOST_TEST(*find_row(report, "fit", Action::train)->samples_per_s == per_s / step, tolerance);
    BOOST_TEST(!find_row(report, "train", Action::zero_grad)->samples_per_s);
    BOOST_TEST(!find_row(report, "fit", Action::fit)->samples_per_s);
    // Rows of passes include the first batch.
    BOOST_TEST(*find_row(summarize(one_epoch()), "fit", Action::train)->samples_per_s == per_s / step, tolerance);
}

BOOST_AUTO_TEST_CASE(quantiles_lie_between_the_durations) {
    const Summary report = summarize(one_epoch(), {.drop_first_batch = false});
    const SummaryRow& draw = *find_row(report, "train", Action::draw);   // 1, 2 and 4 times draw_all
    const double unit = draw_all / 1e9;
    const auto tolerance = boost::test_tools::tolerance(1e-12);
    BOOST_TEST(draw.median_s == 2 * unit, tolerance);
    BOOST_TEST(draw.p90_s == (2 + 0.8 * 2) * unit, tolerance);
    BOOST_TEST(draw.p99_s == (2 + 0.98 * 2) * unit, tolerance);
    BOOST_TEST(draw.mean_s == 7 * unit / 3, tolerance);
    BOOST_TEST(draw.std_s == std::sqrt((1 + 4 + 16) / 3.0 - 49 / 9.0) * unit, tolerance);
    BOOST_TEST(*draw.share_of_total == draw.total_s / report.run.wall_s, tolerance);
}

BOOST_AUTO_TEST_CASE(a_step_left_by_an_error_counts_for_conservation_and_for_no_row) {
    Ledger ledger = one_epoch();
    ledger.steps[2].status = StepStatus::failed;
    const Summary report = summarize(ledger, {.drop_first_batch = false});
    BOOST_TEST(find_row(report, "train", Action::step)->calls == 2u);
    BOOST_TEST(report.left_out.failed == 1u);
    BOOST_TEST(report.conservation.steps == 5u);
    BOOST_TEST(report.conservation.max_residual_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_missing_piece_shows_as_a_residual_of_its_length) {
    Ledger ledger = one_epoch();
    for (SpanRow& piece : ledger.spans)
        if (piece.span == Span::handoff && piece.ns == 4 * handoff)
            piece.ns = 0;
    BOOST_TEST(summarize(ledger).conservation.max_residual_ns == 4 * handoff);
}

BOOST_AUTO_TEST_CASE(an_end_of_data_draw_is_a_row_of_its_own_and_in_no_step) {
    Builder run;
    const auto fit = run.open(PassKind::fit, 0), epoch = run.open(PassKind::epoch, 0),
               train = run.open(PassKind::train, 0);
    run.train_step(0, 4, 1);
    run.ledger.ends_of_data.push_back({.epoch = 0, .phase = Phase::train, .begin_ns = run.now, .ns = 1 << 20});
    run.now += 1 << 20;
    run.close(train);
    run.close(epoch);
    run.close(fit);
    run.ledger.sort();
    const Summary report = summarize(run.ledger);
    BOOST_TEST(total_ns(report, "train", Action::end_of_data) == 1 << 20);
    BOOST_TEST(report.run.steps == 1u);
    BOOST_TEST(report.conservation.max_residual_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_stage_has_the_samples_of_every_loader_that_names_it) {
    Ledger ledger = one_epoch();
    const std::int64_t begin = ledger.steps.front().draw_begin_ns;
    for (std::uint32_t i = 0; i < 4; ++i) {
        const Slice slice{static_cast<std::uint32_t>(ledger.stages.size()), 2};
        ledger.stages.push_back({begin, 1 << i});
        ledger.stages.push_back({begin + (1 << i), 256});
        ledger.samples.push_back({.index = i,
                                  .slot = i,
                                  .worker = static_cast<std::uint16_t>(i % 2),
                                  .bytes = 100,
                                  .begin_ns = begin,
                                  .stages = slice});
    }
    ledger.failures.push_back({.index = 3, .path = "a.jpg", .stage = "scale", .message = "no"});
    const Summary report = summarize(ledger);
    BOOST_REQUIRE(report.stages.size() == 2u);
    BOOST_TEST(report.stages[0].stage == "decode+crop");
    BOOST_TEST(report.stages[0].calls == 4u);
    BOOST_TEST(report.stages[0].mean_s == 15 / 4.0 / 1e9);
    BOOST_TEST(report.stages[0].bytes == 400u);
    BOOST_TEST(report.stages[1].bytes == 0u);
    BOOST_TEST(report.stages[1].failures == 1u);
    BOOST_TEST(!report.stages[0].cpu_s);
    BOOST_REQUIRE(report.workers.size() == 2u);
    BOOST_TEST(report.workers[0].busy_share == (1 + 256 + 4 + 256) / 1e9 / report.run.wall_s,
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST(report.workers[1].samples == 2u);
    BOOST_TEST(report.errors.at(0).path == "a.jpg");
}

BOOST_AUTO_TEST_CASE(a_stages_cpu_time_is_that_of_the_calls_measured_for_all_where_a_tenth_is) {
    for (const std::uint32_t calls : {10u, 11u}) {
        Ledger ledger = one_epoch();
        for (std::uint32_t i = 0; i < calls; ++i) {
            const Slice slice{static_cast<std::uint32_t>(ledger.stages.size()), 2};
            ledger.stages.push_back({0, 100, i == 3 ? 25 : no_stamp});
            ledger.stages.push_back({100, 300});
            ledger.samples.push_back({.index = i, .slot = i, .stages = slice});
        }
        const Summary report = summarize(ledger);
        BOOST_REQUIRE(report.stages.size() == 2u);
        BOOST_TEST(report.stages[0].cpu_s.has_value() == (calls == 10));
        BOOST_TEST(report.stages[0].cpu_s.value_or(250e-9) == 250e-9, boost::test_tools::tolerance(1e-12));
        BOOST_TEST(!report.stages[1].cpu_s);
        BOOST_TEST(!report.stages[0].run_queue_s);   // with several stages it is unknown which one queued
    }
}

BOOST_AUTO_TEST_CASE(the_samples_of_a_run_share_its_time_to_the_nanosecond_and_count_one_by_one) {
    Ledger ledger = one_epoch();
    const std::int64_t begin = ledger.steps.front().draw_begin_ns;
    const auto add = [&](std::uint32_t samples, std::int64_t ns) {
        ledger.stages.push_back({begin, ns});
        ledger.samples.push_back({.samples = samples,
                                  .begin_ns = begin,
                                  .stages = {static_cast<std::uint32_t>(ledger.stages.size() - 1), 1}});
    };
    add(64, 1000);   // 24 of 15 ns, 40 of 16 ns
    add(1, 1000);
    add(1, 10);
    const Summary report = summarize(ledger);
    const StageSummary& stage = report.stages.at(0);
    BOOST_TEST(stage.calls == 66u);
    BOOST_TEST(stage.total_s == 2010 / 1e9);
    BOOST_TEST(stage.mean_s == 2010 / 66.0 / 1e9);
    BOOST_TEST(stage.median_s == 16 / 1e9);
    BOOST_TEST(stage.p99_s == (16 + (1000 - 16) * 0.35) / 1e9, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(report.workers.at(0).samples == 66u);
}

BOOST_AUTO_TEST_CASE(a_wait_for_an_older_batch_within_another_counts_once) {
    Builder run;
    run.ledger.pipelines = {{"train", {"read"}, 1, 2, 4}};
    run.now = 0;
    run.step(Phase::train, 0, 1, {{Span::starved, 100}, {Span::handoff, 5}}, {{Span::forward, 45}}, {});
    run.ledger.passes = {{.kind = PassKind::train, .begin_ns = 0, .end_ns = run.now, .spans = {}}};
    run.ledger.pipelines[0].order = OrderRule::bounded(3);
    // The second overtakes the first; the last two wait 20 … 50 and 10 … 100.
    const std::array<std::int64_t, 4> done{100, 50, 20, 10}, offered{100, 50, 60, 100};
    for (std::uint32_t number = 0; number < done.size(); ++number)
        run.ledger.batches.push_back({.batch = number,
                                      .size = 1,
                                      .admitted_ns = number,
                                      .last_done_ns = done[number],
                                      .offered_ns = offered[number],
                                      .taken_ns = 105 + number});
    BOOST_TEST(summarize(run.ledger, {.drop_first_batch = false}).draw.order_s == 90 / 1e9);
}

BOOST_AUTO_TEST_CASE(time_is_lost_to_order_while_a_complete_batch_waits_behind_an_older_one_and_the_loop_has_none) {
    Builder run;
    run.ledger.pipelines = {{"train", {"read"}, 1, 2, 4}};
    run.now = 0;
    run.step(Phase::train, 0, 1, {{Span::starved, 100}, {Span::handoff, 5}}, {{Span::forward, 45}}, {});
    run.step(Phase::train, 0, 1, {{Span::handoff, 1}}, {{Span::forward, 9}}, {});
    run.step(Phase::train, 0, 1, {{Span::starved, 40}, {Span::handoff, 2}}, {}, {});   // from 160 to 200
    run.ledger.passes = {{.kind = PassKind::train, .begin_ns = 0, .end_ns = run.now, .spans = {}}};
    const auto batch = [&](std::uint32_t number, std::int64_t done, std::int64_t offered, std::int64_t taken) {
        run.ledger.batches.push_back({.batch = number,
                                      .size = 1,
                                      .admitted_ns = number,
                                      .last_done_ns = done,
                                      .offered_ns = offered,
                                      .taken_ns = taken});
    };
    batch(0, 95, 100, 105);
    batch(1, 40, 100, 151);
    batch(2, 200, 200, 202);
    batch(3, 60, 202, 300);   // at the same time: counts only once
    batch(4, 190, 202, 301);
    run.ledger.batches.push_back({.epoch = 1,
                                  .batch = 0,
                                  .admitted_ns = 5,
                                  .last_done_ns = 10,
                                  .offered_ns = 250,
                                  .taken_ns = 260});   // in another pass
    const Summary in_order = summarize(run.ledger, {.drop_first_batch = false});
    BOOST_TEST(in_order.draw.order_s == (60 + 40) / 1e9);   // 40 … 100 and 160 … 200
    BOOST_TEST(*in_order.draw.order_share == in_order.draw.order_s / in_order.run.wall_s);
    BOOST_TEST(in_order.run.order == "in");

    // so 3 and 4 were held back for another reason than order
    run.ledger.pipelines[0].order = OrderRule::bounded(2);
    run.ledger.batches[3].offered_ns = run.ledger.batches[4].offered_ns = 198;
    const Summary bounded = summarize(run.ledger, {.drop_first_batch = false});
    BOOST_TEST(bounded.draw.order_s == 55 / 1e9);   // both overtook 2
    BOOST_TEST(bounded.run.order == "2");

    run.ledger.pipelines[0].order = OrderRule::out_of_order();
    BOOST_TEST(summarize(run.ledger).draw.order_s == 0);
    BOOST_TEST(summarize(run.ledger).run.order == "out");
}

BOOST_AUTO_TEST_CASE(a_worker_worked_longer_than_recorded_where_samples_were_lost_and_only_there) {
    Ledger ledger = one_epoch();
    ledger.stages.push_back({2000, 64});
    ledger.samples.push_back({.begin_ns = 2000, .stages = {static_cast<std::uint32_t>(ledger.stages.size() - 1), 1}});
    ledger.batches.push_back({.size = 2, .admitted_ns = 2000, .taken_ns = 2100});
    const double share = summarize(ledger).workers.at(0).busy_share;
    for (const std::uint32_t ring : {0u, 1u, first_operator_ring - 1, first_operator_ring, first_operator_ring + 512}) {
        ledger.dropped = {{.records = 1, .ring = ring}};
        const bool lost = ring != 0 && ring < first_operator_ring;
        BOOST_TEST(summarize(ledger).workers.at(0).busy_share == (lost ? 2 * share : share), ring);
    }
}

BOOST_AUTO_TEST_CASE(a_worker_is_busy_while_it_collates_and_that_is_not_scaled_for_lost_samples) {
    Ledger ledger = one_epoch();
    ledger.stages.push_back({2000, 64});
    ledger.samples.push_back({.begin_ns = 2000, .stages = {static_cast<std::uint32_t>(ledger.stages.size() - 1), 1}});
    const auto collated = [&](std::optional<std::uint16_t> worker, std::int64_t begin_ns, std::int64_t end_ns) {
        ledger.batches.push_back({.batch = static_cast<std::uint32_t>(ledger.batches.size()),
                                  .collate_worker = worker,
                                  .size = 1,
                                  .collate_begin_ns = begin_ns,
                                  .collate_end_ns = end_ns});
    };
    collated(std::uint16_t{0}, 2064, 2080);
    collated(std::uint16_t{1}, 3000, 3100);
    collated(std::uint16_t{1}, 4000, no_stamp);   // abandoned while it was collated
    collated(std::nullopt, 5000, 6000);           // from a recording that does not name the worker
    collated(std::uint16_t{1}, no_stamp, no_stamp);
    const auto tolerance = boost::test_tools::tolerance(1e-12);
    Summary report = summarize(ledger);
    BOOST_REQUIRE(report.workers.size() == 2u);
    BOOST_TEST(report.workers[0].busy_share == (64 + 16) / 1e9 / report.run.wall_s, tolerance);
    BOOST_TEST(report.workers[1].busy_share == 100 / 1e9 / report.run.wall_s, tolerance);
    BOOST_TEST(report.workers[1].samples == 0u);
    ledger.dropped = {{.records = 4, .ring = 1}};   // samples were lost: one of five is left
    report = summarize(ledger);
    BOOST_TEST(report.workers[0].busy_share == (5 * 64 + 16) / 1e9 / report.run.wall_s, tolerance);
    BOOST_TEST(report.workers[1].busy_share == 100 / 1e9 / report.run.wall_s, tolerance);
}

BOOST_AUTO_TEST_CASE(the_queue_is_averaged_over_the_training_passes) {
    Ledger ledger = one_epoch();
    const auto train = std::ranges::find(ledger.passes, PassKind::train, &PassRow::kind);
    const std::int64_t begin = train->begin_ns, wall = train->end_ns - begin;
    // One waits for the first quarter of the pass, two wait for an eighth in its middle, and one waits outside of it.
    ledger.batches.push_back({.batch = 0, .offered_ns = begin, .taken_ns = begin + wall / 4});
    ledger.batches.push_back({.batch = 1, .offered_ns = begin + wall / 2, .taken_ns = begin + wall / 2 + wall / 8});
    ledger.batches.push_back({.batch = 2, .offered_ns = begin + wall / 2, .taken_ns = begin + wall / 2 + wall / 8});
    ledger.batches.push_back({.batch = 3, .offered_ns = train->end_ns, .taken_ns = train->end_ns + 100});
    const Summary report = summarize(ledger);
    const auto tolerance = boost::test_tools::tolerance(1e-6);
    BOOST_TEST(report.queue->mean_ready == 0.5, tolerance);
    BOOST_TEST(report.queue->occupancy == 0.375, tolerance);
    BOOST_TEST(report.queue->empty_share == 0.625, tolerance);
}

BOOST_AUTO_TEST_CASE(what_no_row_holds_comes_from_facts_and_is_absent_without_them) {
    Ledger ledger = one_epoch();
    BOOST_TEST(!summarize(ledger).memory.peak_bytes);
    BOOST_TEST(!summarize(ledger).run.digest);
    ledger.set_fact(facts::peak_bytes, "4096");
    ledger.set_fact(facts::digest, "00ff");
    ledger.set_fact(facts::accuracy, "0.75");
    ledger.set_fact(std::string{facts::option_prefix} + "model", "mlp");
    ledger.set_fact(facts::machine_cores, "2");
    const Summary report = summarize(ledger);
    BOOST_TEST(*report.memory.peak_bytes == 4096);
    BOOST_TEST(*report.run.digest == "00ff");
    BOOST_TEST(*report.model.accuracy == 0.75);
    BOOST_TEST(report.run.options.at(0).first == "model");
    BOOST_TEST(*report.machine.cores_usable == 2);
    BOOST_TEST(*report.model.loss_first == 8.0);
    BOOST_TEST(*report.model.loss_last == 2.0);
}

BOOST_AUTO_TEST_CASE(an_empty_ledger_has_no_rows_and_no_steps) {
    const Summary report = summarize(Ledger{});
    BOOST_TEST(report.rows.empty());
    BOOST_TEST(report.run.steps == 0u);
    BOOST_TEST(!report.queue);
    BOOST_TEST(!report.headroom.throughput_gain_if_draw_were_zero);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
