#include <boost/test/unit_test.hpp>

#include <random>

#include <drawpoint/diagnosis/trust/interference.hpp>

#include "tests/diagnosis/trust/host_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::host_run;

Trust trust_in(const Ledger& ledger, double end_s = 20) {
    const std::int64_t end_ns = start_ns + std::llround(end_s * 1e9);
    return trust_of(ledger, interference(ledger, start_ns, end_ns), start_ns, end_ns);
}

std::string only_reason(const Trust& trust) {
    BOOST_TEST(!trust.trusted);
    BOOST_TEST(trust.reasons.size() == 1u,
               (trust.reasons.empty() ? std::string{"no reason"} : trust.reasons.back().text));
    return trust.reasons.empty() ? "" : trust.reasons.front().text;
}

Ledger calm(double own = 1, double foreign = 0.05) {
    Ledger ledger;
    add_host(ledger, 20, constant(own), constant(foreign), 10 * ms);
    return ledger;
}

/// Adds steps of a loader with varying samples, whose batches come in the rhythm of its two workers.
void add_rhythm(Ledger& ledger, int count, std::mt19937& random, const std::function<double(int)>& scale) {
    std::lognormal_distribution<double> sample{0, 1};
    for (int i = 0; i < count; ++i) {
        double batch = 0;
        for (int k = 0; k < 8; ++k)
            batch += sample(random);
        add_step(ledger, i % 2 == 0 ? std::llround(2e6 * batch * scale(i)) : 0, std::llround(3e6 * scale(i)));
    }
}

BOOST_AUTO_TEST_SUITE(trust)

BOOST_AUTO_TEST_CASE(a_calm_run_is_trusted) {
    const Trust found = trust_in(calm());
    BOOST_TEST(found.trusted);
    BOOST_TEST(found.reasons.empty());
    BOOST_TEST(std::abs(found.interference_share - 0.025) < 0.001);
    BOOST_TEST(found.steal_share == 0.0);
    BOOST_TEST(trust_in(Ledger{}).trusted);   // there is no reason for distrust
}

BOOST_AUTO_TEST_CASE(a_steady_neighbour_is_an_input_below_a_quarter_of_the_cores_and_a_reason_above) {
    BOOST_TEST(trust_in(calm(1, 0.45)).trusted);
    const Trust found = trust_in(calm(1, 0.8));
    BOOST_TEST(only_reason(found) == "others kept 0.80 of 2 cores busy (the replay allows for less than 0.5)");
    BOOST_TEST(std::abs(found.interference_share - 0.4) < 0.01);
    const auto with_cores = [](double cores, double others) {
        Ledger ledger;
        add_host(ledger, 20, constant(0.5), constant(others), 10 * ms, cores);
        return trust_in(ledger);
    };
    BOOST_TEST(with_cores(8, 1.5).trusted);
    BOOST_TEST(!with_cores(8, 2.5).trusted);
    BOOST_TEST(!with_cores(1, 0.4).trusted);
}

BOOST_AUTO_TEST_CASE(a_neighbour_that_comes_in_the_middle_is_a_reason) {
    Ledger ledger;
    add_host(ledger, 20, constant(1), [](double at) { return at < 10 ? 0.0 : 0.4; }, 10 * ms);
    BOOST_TEST(only_reason(trust_in(ledger)) == "others kept 0.00 cores busy in the first half and 0.40 in the second");
    Ledger little;
    add_host(little, 20, constant(1), [](double at) { return at < 10 ? 0.0 : 0.2; }, 10 * ms);
    BOOST_TEST(trust_in(little).trusted);
}

BOOST_AUTO_TEST_CASE(ticks_of_a_short_run_are_no_neighbour) {
    std::mt19937 random{8};
    int distrusted = 0;
    for (int round = 0; round < 400; ++round) {
        Ledger ledger;
        add_host(ledger, 0.6, constant(1), constant(0.1));
        for (std::size_t i = 1; i < ledger.host.size(); ++i) {
            std::int64_t busy = 0;
            for (int tick = 0; tick < 40; ++tick)
                busy += (random() % 100 < 55 ? 10 : 0) * ms;
            ledger.host[i].busy_ns = ledger.host[i - 1].busy_ns + busy;
        }
        distrusted += trust_in(ledger, 0.6).trusted ? 0 : 1;
    }
    BOOST_TEST(distrusted <= 4);
}

BOOST_AUTO_TEST_CASE(throttling_and_steal_have_their_thresholds) {
    for (const bool above : {false, true}) {
        Ledger throttled = calm(), stolen = calm();
        for (std::size_t i = 0; i < throttled.host.size(); ++i) {
            const auto n = static_cast<std::int64_t>(i);
            throttled.host[i].throttled_ns = n * (above ? 3 : 1) * ms;
            stolen.host[i].steal_ns = n * (above ? 120 : 80) * ms;
        }
        BOOST_TEST(trust_in(throttled).trusted == !above);
        BOOST_TEST(trust_in(stolen).trusted == !above);
        if (above) {
            BOOST_TEST(only_reason(trust_in(throttled)) ==
                       "the cgroup's quota stopped this process for 1.5 % of the time");
            BOOST_TEST(only_reason(trust_in(stolen)) == "the hypervisor took 30 % of the cores");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_run_queue_without_own_overload_speaks_for_others_where_they_are_not_measured) {
    Ledger ledger;
    ledger.set_fact(facts::host_cores, "2");
    ledger.pipelines.push_back({.num_workers = 1});
    ledger.stages.push_back({.begin_ns = start_ns, .ns = 10 * ms});
    ledger.samples.push_back({.begin_ns = start_ns, .run_queue_ns = 1 * ms, .stages = {0, 1}});
    BOOST_TEST(only_reason(trust_in(ledger)).starts_with("workers waited 10 % of their time for a core"));
    ledger.samples[0].run_queue_ns = ms / 4;
    BOOST_TEST(trust_in(ledger).trusted);
    ledger.samples[0].run_queue_ns = ms;
    Ledger measured = ledger;
    add_host(measured, 20, constant(1), constant(0));
    BOOST_TEST(trust_in(measured).trusted);
    ledger.settings.push_back({.num_workers = 2});   // three threads on two cores wait for one another
    BOOST_TEST(trust_in(ledger).trusted);
    ledger.settings.clear();
    ledger.pipelines[0].num_workers = 2;
    BOOST_TEST(trust_in(ledger).trusted);
}

BOOST_AUTO_TEST_CASE(lost_records_of_the_loop_and_the_workers_count) {
    Ledger ledger = calm();
    ledger.samples.resize(1899);
    ledger.batches.resize(100);
    ledger.dropped.push_back({.records = 1, .ring = 1});
    BOOST_TEST(trust_in(ledger).trusted);
    ledger.dropped.push_back({.records = 2, .ring = 0});
    BOOST_TEST(only_reason(trust_in(ledger)) == "3 records were lost, 0.15 % of them");
    ledger.dropped.back().ring = first_operator_ring;
    BOOST_TEST(trust_in(ledger).trusted);
}

BOOST_AUTO_TEST_CASE(pieces_that_do_not_sum_are_a_reason) {
    Ledger ledger = calm();
    ledger.passes.push_back({.kind = PassKind::fit, .begin_ns = start_ns, .end_ns = start_ns + 5});
    BOOST_TEST(only_reason(trust_in(ledger)) == "the measured parts of a pass differ from its length by 5 ns");
    ledger.spans = {{Span::other, start_ns, 3}, {Span::other, start_ns + 2, 2}};   // one nanosecond twice, one never
    ledger.passes[0].spans = {0, 2};
    BOOST_TEST(only_reason(trust_in(ledger)) == "2 ns of the passes are in no measured part, or in two");
}

BOOST_AUTO_TEST_CASE(time_that_lies_where_it_was_not_spent_is_a_reason_from_one_percent_on) {
    const std::int64_t wall_ns = 2'000'000'000;
    const auto with = [&](std::int64_t PassRow::* member, std::int64_t ns) {
        Ledger ledger = calm();
        ledger.passes.push_back(
            {.kind = PassKind::fit, .begin_ns = start_ns, .end_ns = start_ns + wall_ns, .spans = {0, 1}});
        ledger.spans.push_back({Span::between, start_ns, wall_ns});
        ledger.passes[0].*member = ns;
        return trust_in(ledger);
    };
    for (const auto member : {&PassRow::unmarked_ns, &PassRow::clamped_ns, &PassRow::ahead_ns})
        BOOST_TEST(with(member, wall_ns / 100).trusted);
    BOOST_TEST(only_reason(with(&PassRow::unmarked_ns, 20'000'001)) ==
               "20 ms at the edges of passes and steps were not marked, so they count as what followed");
    for (const auto member : {&PassRow::clamped_ns, &PassRow::ahead_ns})
        BOOST_TEST(only_reason(with(member, 20'000'001)) ==
                   "stamps were off by 20 ms in all: before the one before them, or in the future");
}

BOOST_AUTO_TEST_CASE(steps_that_vary_do_not_drift) {
    std::mt19937 random{21};
    int distrusted = 0;
    for (int round = 0; round < 300; ++round) {
        Ledger ledger;
        add_rhythm(ledger, round % 2 == 0 ? 60 : 200, random, [](int) { return 1.0; });
        const Trust found = trust_in(ledger, 100);
        for (const std::string& reason : found.texts())
            distrusted += reason.starts_with("steps took") ? 1 : 0;
    }
    BOOST_TEST(distrusted <= 3);
}

BOOST_AUTO_TEST_CASE(steps_that_get_faster_or_slower_drift) {
    const auto drifts = [](const std::function<double(int)>& scale) {
        std::mt19937 random{22};
        int found = 0;
        for (int round = 0; round < 50; ++round) {
            Ledger ledger;
            add_rhythm(ledger, 400, random, scale);
            for (const std::string& reason : trust_in(ledger, 100).texts())
                found += reason.starts_with("steps took") ? 1 : 0;
        }
        return found;
    };
    BOOST_TEST(drifts([](int i) { return i < 200 ? 2.0 : 1.0; }) >= 48);   // a cache that has filled
    BOOST_TEST(drifts([](int i) { return 1 + i / 400.0; }) >= 35);         // a growing heap
    // another guest of the host that comes and goes
    BOOST_TEST(drifts([](int i) { return i > 190 && i < 310 ? 2.5 : 1.0; }) >= 48);
    BOOST_TEST(drifts([](int i) { return 1 + 0.02 * i / 400.0; }) <= 1);
}

BOOST_AUTO_TEST_CASE(first_steps_of_passes_and_validation_are_no_drift) {
    Ledger ledger;
    for (int i = 0; i < 128; ++i) {
        StepRow& step = add_step(ledger, ms, 9 * ms);
        if (i % 64 == 63) {
            step.batch = 0;
            step.draw_ns = 900 * ms;
        }
        if (i > 100 && i % 2 == 0) {
            step.phase = Phase::valid;
            step.batch_ns = ms;
        }
    }
    for (const std::string& reason : trust_in(ledger, 100).texts())
        BOOST_TEST(!reason.starts_with("steps took"), reason);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_is_a_reason) {
    Ledger ledger;
    for (int i = 0; i < 20; ++i)
        add_step(ledger, ms, 9 * ms);
    const auto back = [&] {
        for (const std::string& reason : trust_in(ledger).texts())
            if (reason == "the clock went back at step 12")
                return true;
        return false;
    };
    BOOST_TEST(!back());
    ledger.steps[12].draw_begin_ns -= 5 * ms;
    BOOST_TEST(back());
    ledger.steps[12].draw_begin_ns += 5 * ms;
    ledger.steps[12].batch_ns = -1;
    BOOST_TEST(back());
}

BOOST_AUTO_TEST_CASE(a_gap_that_one_step_fills_is_a_stop_or_a_clock_step) {
    const auto gap = [](std::int64_t step_jump_ns, std::int64_t host_jump_ns) {
        Ledger ledger = calm();
        for (int i = 0; i < 400; ++i)
            add_step(ledger, ms, (i == 207 ? step_jump_ns : 0) + 9 * ms);
        for (HostRow& row : ledger.host)
            row.at_ns += row.at_ns > start_ns + 2075 * ms ? host_jump_ns : 0;
        std::string found;
        for (const std::string& reason : trust_in(ledger, 60).texts())
            if (reason.starts_with("nothing happened"))
                found = reason;
        return found;
    };
    BOOST_TEST(gap(0, 0) == "");
    BOOST_TEST(gap(3 * s, 3 * s) ==
               "nothing happened for 3.00 s in step 207: the process was stopped or its clock stepped");
    BOOST_TEST(gap(3 * s, 0) == "");   // a long step, during which the recorder went on
    BOOST_TEST(gap(0, 3 * s) == "");   // a late writer thread
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
