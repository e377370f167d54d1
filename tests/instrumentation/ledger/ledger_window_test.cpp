#include <drawpoint/instrumentation/ledger/ledger_window.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>

using namespace drawpoint;

namespace {

/// A fit of two epochs, each with a training pass of three steps and a validation pass of two steps and a last, empty
/// draw.
Ledger a_run() {
    Ledger ledger;
    ledger.names = {"op"};
    ledger.threads = {{.tid = 1}};
    std::int64_t now = 1000;
    const auto piece = [&](Span span, std::int64_t ns) {
        ledger.spans.push_back({span, now, ns});
        now += ns;
    };
    const auto from_here = [&] { return Slice{static_cast<std::uint32_t>(ledger.spans.size()), 0}; };
    const auto close = [&](Slice& slice) {
        slice.count = static_cast<std::uint32_t>(ledger.spans.size()) - slice.first;
    };
    std::uint32_t number = 0;
    PassRow fit{.kind = PassKind::fit, .begin_ns = now};
    fit.spans = from_here();
    piece(Span::between, 7);
    close(fit.spans);
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        PassRow whole{.kind = PassKind::epoch, .epoch = epoch, .begin_ns = now};
        whole.spans = from_here();
        piece(Span::between, 5);
        close(whole.spans);
        for (const PassKind kind : {PassKind::train, PassKind::valid}) {
            const Phase phase = kind == PassKind::train ? Phase::train : Phase::valid;
            PassRow pass{.kind = kind, .epoch = epoch, .begin_ns = now};
            pass.spans = from_here();
            piece(Span::between, 3);
            close(pass.spans);
            for (std::uint32_t batch = 0; batch < (kind == PassKind::train ? 3u : 2u); ++batch) {
                StepRow step{.step = number++, .epoch = epoch, .batch = batch, .phase = phase, .size = 4};
                step.draw_begin_ns = now;
                step.spans = from_here();
                ledger.operators.push_back({.begin_ns = now + 2, .ns = 20});
                ledger.batches.push_back({.epoch = epoch, .batch = batch, .taken_ns = now + 10});
                ledger.samples.push_back({.epoch = epoch,
                                          .batch = batch,
                                          .begin_ns = now - 8,
                                          .stages = {static_cast<std::uint32_t>(ledger.stages.size()), 1}});
                ledger.stages.push_back({now - 6, 4});
                ledger.allocations.push_back({.at_ns = now, .bytes = 1});
                piece(Span::starved, 10);
                piece(span_of(Event::before_batch), 0);
                piece(Span::forward, 20);
                step.draw_ns = 10;
                step.batch_ns = 20;
                piece(Span::between, 4);
                close(step.spans);
                ledger.steps.push_back(step);
            }
            ledger.ends_of_data.push_back({.epoch = epoch, .phase = phase, .begin_ns = now, .ns = 6});
            now += 6;
            pass.end_ns = now;
            ledger.passes.push_back(pass);
        }
        whole.end_ns = now;
        ledger.passes.push_back(whole);
    }
    fit.end_ns = now;
    ledger.passes.push_back(fit);
    ledger.start_ns = 900;
    ledger.set_fact("a", "b");
    ledger.sort();
    return ledger;
}

/// Checks that no time is missing in any window of the run.
void check_windows(const Ledger& run) {
    const std::int64_t end = run.passes[0].end_ns;
    std::int64_t worst = 0;
    std::size_t steps = 0;
    for (std::int64_t from = 990; from < end; ++from)
        for (std::int64_t to = from; to <= end + 10; to += 1 + (from + to) % 13) {
            const Ledger part = window(run, from, to);
            worst = std::max(worst, max_residual_ns(part));
            steps += part.steps.size();
        }
    BOOST_TEST(worst == 0);
    BOOST_TEST(steps > 1000u);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(ledger_window)

BOOST_AUTO_TEST_CASE(the_pieces_of_any_window_tile_its_passes) {
    const Ledger run = a_run();
    BOOST_TEST_REQUIRE(max_residual_ns(run) == 0);
    check_windows(run);
}

BOOST_AUTO_TEST_CASE(so_they_do_in_a_run_that_stops_inside_a_pass) {
    Ledger run = a_run();
    for (PassRow& pass : run.passes)
        if (pass.end_ns >= run.steps.back().draw_begin_ns) {
            pass.ended = false;
            pass.spans = {};
        }
    check_windows(run);
}

BOOST_AUTO_TEST_CASE(the_window_of_everything_is_the_ledger) {
    const Ledger run = a_run();
    BOOST_TEST((window(run, 0, 100'000) == run));
}

BOOST_AUTO_TEST_CASE(rows_are_kept_when_they_lie_wholly_inside) {
    const Ledger run = a_run();
    const StepRow& step = run.steps[1];
    const std::int64_t begin = step.draw_begin_ns, end = begin + step.draw_ns + step.batch_ns;
    const Ledger exact = window(run, begin, end);
    BOOST_TEST_REQUIRE(exact.steps.size() == 1u);
    BOOST_TEST(exact.steps[0].step == 1u);
    BOOST_TEST(exact.steps[0].spans.count == step.spans.count);
    BOOST_TEST(exact.operators.size() == 1u);
    BOOST_TEST(exact.batches.size() == 1u);
    BOOST_TEST(exact.allocations.size() == 1u);
    BOOST_TEST(exact.samples.empty());   // they were loaded before
    BOOST_TEST(exact.start_ns == begin);
    BOOST_TEST(exact.fact("a").value() == "b");
    BOOST_TEST(window(run, begin + 1, end).steps.empty());
    BOOST_TEST(window(run, begin, end - 1).steps.empty());
    const Ledger wider = window(run, begin - 8, end);
    BOOST_TEST_REQUIRE(wider.samples.size() == 1u);
    BOOST_TEST(wider.stages_of(wider.samples[0])[0].ns == 4);
    BOOST_TEST(window(run, end, begin).passes.empty());
}

BOOST_AUTO_TEST_CASE(what_happened_at_the_begin_is_in_the_window_and_at_the_end_is_not) {
    Ledger ledger;
    ledger.allocations = {{.at_ns = 9}, {.at_ns = 10}, {.at_ns = 19}, {.at_ns = 20}};
    const Ledger part = window(ledger, 10, 20);
    BOOST_TEST_REQUIRE(part.allocations.size() == 2u);
    BOOST_TEST(part.allocations[0].at_ns == 10);
    BOOST_TEST(part.allocations[1].at_ns == 19);
}

BOOST_AUTO_TEST_CASE(an_order_that_was_computed_in_the_window_or_into_it_is_kept) {
    Ledger ledger;
    for (const std::int64_t at_ns : {0, 10, 20, 30, 40})
        ledger.orders.push_back({.begin_ns = at_ns, .ns = 5});
    std::vector<std::int64_t> kept;
    for (const OrderRow& row : window(ledger, 13, 40).orders)
        kept.push_back(row.begin_ns);
    BOOST_TEST(kept == (std::vector<std::int64_t>{10, 20, 30}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(steps_of_a_device_go_with_their_draws_and_copies_that_lie_in_it_are_kept) {
    Ledger ledger;
    for (const std::int64_t at_ns : {0, 10, 20, 30, 40}) {
        ledger.device_steps.push_back({.end_ns = at_ns + 20, .host_queued_ns = at_ns});
        ledger.transfers.push_back({.issue_ns = at_ns - 20, .begin_ns = at_ns, .end_ns = at_ns + 5});
    }
    const Ledger part = window(ledger, 13, 40);
    BOOST_TEST_REQUIRE(part.device_steps.size() == 2u);
    BOOST_TEST(part.device_steps[0].host_queued_ns == 20);
    BOOST_TEST_REQUIRE(part.transfers.size() == 2u);
    BOOST_TEST(part.transfers[0].begin_ns == 20);
}

BOOST_AUTO_TEST_CASE(settings_stay_whole_and_the_hosts_rows_reach_around_the_window) {
    Ledger ledger;
    ledger.settings = {{.at_ns = 5}, {.at_ns = 500}};
    for (std::int64_t at_ns = 0; at_ns <= 100; at_ns += 10)
        ledger.host.push_back({.at_ns = at_ns});
    const auto times = [&](std::int64_t from_ns, std::int64_t to_ns) {
        const Ledger part = window(ledger, from_ns, to_ns);
        BOOST_TEST((part.settings == ledger.settings));
        std::vector<std::int64_t> at;
        for (const HostRow& row : part.host)
            at.push_back(row.at_ns);
        return at;
    };
    using Times = std::vector<std::int64_t>;
    BOOST_TEST((times(25, 45) == Times{20, 30, 40, 50}));
    BOOST_TEST((times(20, 40) == Times{20, 30, 40}));   // one lies at each end
    BOOST_TEST((times(41, 42) == Times{40, 50}));
    BOOST_TEST((times(-9, 5) == Times{0, 10}));
    BOOST_TEST((times(95, 400) == Times{90, 100}));
    BOOST_TEST((times(300, 400) == Times{100}));
    BOOST_TEST((times(-9, -5) == Times{0}));
    ledger.host.clear();
    BOOST_TEST(times(0, 5).empty());
}

BOOST_AUTO_TEST_SUITE_END()
