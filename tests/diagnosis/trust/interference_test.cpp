#include <boost/test/unit_test.hpp>

#include <limits>
#include <random>

#include <drawpoint/diagnosis/trust/interference.hpp>

#include "tests/diagnosis/trust/host_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::host_run;

BOOST_AUTO_TEST_SUITE(interference, *boost::unit_test::tolerance(1e-6))

BOOST_AUTO_TEST_CASE(foreign_is_what_is_busy_and_not_ours) {
    Ledger ledger;
    add_host(ledger, 10, constant(1.25), constant(0.4));
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 10 * s);
    BOOST_TEST(found.measured);
    BOOST_TEST(found.cores == 2.0);
    BOOST_TEST(found.own_cores == 1.25);
    BOOST_TEST(found.foreign_cores == 0.4);
    BOOST_TEST(found.foreign_cores_spread == 0.0);
}

BOOST_AUTO_TEST_CASE(only_the_time_asked_for_counts_with_what_lies_between_rows) {
    Ledger ledger;
    add_host(ledger, 10, constant(1), [](double at) { return at < 5 ? 0.0 : 1.0; });
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + 5 * s).foreign_cores == 0.0);
    BOOST_TEST(drawpoint::interference(ledger, start_ns + 5 * s, start_ns + 10 * s).foreign_cores == 1.0);
    const Interference half = drawpoint::interference(ledger, start_ns + 4500 * ms, start_ns + 5500 * ms);
    BOOST_TEST(half.foreign_cores == 0.5);
    const Interference inside = drawpoint::interference(ledger, start_ns + 5050 * ms, start_ns + 5100 * ms);
    BOOST_TEST(inside.foreign_cores == 1.0);   // without a row inside the window, those around it count
    BOOST_TEST(inside.measured);
}

BOOST_AUTO_TEST_CASE(a_load_that_comes_and_goes_has_its_spread) {
    Ledger ledger;
    add_host(ledger, 40, constant(1), [](double at) { return static_cast<int>(at) % 2 == 0 ? 0.0 : 1.0; });
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 40 * s);
    BOOST_TEST(found.foreign_cores == 0.5);
    BOOST_TEST(found.foreign_cores_spread > 0.45);
    BOOST_TEST(found.foreign_cores_spread <= 0.5);
}

BOOST_AUTO_TEST_CASE(what_ticks_alone_explain_is_no_spread_and_no_load) {
    std::mt19937 random{3};
    Ledger ledger;
    add_host(ledger, 60, constant(1), constant(0));
    // in each of 20 ticks, each of two cores is found busy or not
    for (std::size_t i = 1; i < ledger.host.size(); ++i) {
        std::int64_t busy = 0;
        for (int tick = 0; tick < 40; ++tick)
            busy += random() % 2 * 10 * ms;
        ledger.host[i].busy_ns = ledger.host[i - 1].busy_ns + busy;
    }
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 60 * s);
    BOOST_TEST(found.foreign_cores < 0.03);
    BOOST_TEST(found.foreign_cores_spread < 0.06);   // unfiltered: 0.16
}

BOOST_AUTO_TEST_CASE(rounding_to_ticks_hides_no_steady_load) {
    Ledger ledger;
    add_host(ledger, 30, constant(0.731), constant(0.613), 10 * ms);
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 30 * s);
    BOOST_TEST(std::abs(found.foreign_cores - 0.613) < 0.002);
    BOOST_TEST(found.foreign_cores_spread < 0.03);
}

BOOST_AUTO_TEST_CASE(others_may_use_what_a_quota_leaves) {
    Ledger ledger;
    add_host(ledger, 10, constant(1.5), constant(30));
    ledger.set_fact(facts::host_affinity_cores, "32");
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + 10 * s).foreign_cores == 0.0);
    Ledger full;
    add_host(full, 10, constant(1.5), constant(30.5));
    full.set_fact(facts::host_affinity_cores, "32");
    BOOST_TEST(drawpoint::interference(full, start_ns, start_ns + 10 * s).foreign_cores == 0.5);
}

BOOST_AUTO_TEST_CASE(without_host_rows_nothing_is_measured) {
    Ledger ledger;
    const Interference none = drawpoint::interference(ledger, start_ns, start_ns + s);
    BOOST_TEST(!none.measured);
    BOOST_TEST(none.foreign_cores == 0.0);
    BOOST_TEST(!none.cpu_pressure);
    BOOST_TEST(!none.major_faults_per_s);
    BOOST_TEST(!none.resident_peak_bytes);
    ledger.set_fact(facts::machine_cores, "4");
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + s).cores == 4.0);
    add_host(ledger, 1, constant(0.5), constant(0));
    BOOST_TEST(!drawpoint::interference(ledger, start_ns, start_ns + 3 * s).measured);   // a third of the window
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + 2 * s).measured);
    for (HostRow& row : ledger.host)
        row.busy_ns = no_stamp;
    const Interference own_only = drawpoint::interference(ledger, start_ns, start_ns + s);
    BOOST_TEST(!own_only.measured);
    BOOST_TEST(own_only.own_cores == 0.5);
}

BOOST_AUTO_TEST_CASE(a_counter_that_went_back_is_left_out_there) {
    Ledger ledger;
    add_host(ledger, 10, constant(1), constant(0.25));
    for (std::size_t i = 20; i < ledger.host.size(); ++i)
        ledger.host[i].busy_ns -= 6 * s;
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 10 * s);
    BOOST_TEST(found.foreign_cores == 0.25);
    BOOST_TEST(found.foreign_cores_spread == 0.0);
}

BOOST_AUTO_TEST_CASE(what_a_hypervisor_takes_has_its_spread_and_whole_ticks_are_none) {
    const auto found = [](const Load& stolen) {
        Ledger ledger;
        add_host(ledger, 40, constant(1), constant(0));
        double stolen_ns = 0;
        for (std::size_t i = 0; i < ledger.host.size(); ++i) {
            ledger.host[i].steal_ns = std::llround(stolen_ns / 2) / (10 * ms) * (10 * ms) * 2;   // of two cores
            stolen_ns += stolen(static_cast<double>(i) * 0.2 + 0.1) * 200e6;
        }
        return drawpoint::interference(ledger, start_ns, start_ns + 40 * s);
    };
    const Interference steady = found(constant(0.13));
    BOOST_TEST(std::abs(steady.steal_cores - 0.13) < 0.002);
    BOOST_TEST(steady.steal_cores_spread < 0.04);   // unfiltered: 0.046
    const Interference bursts = found([](double at) { return static_cast<int>(at) % 4 == 0 ? 0.8 : 0.0; });
    BOOST_TEST(bursts.steal_cores == 0.2);
    BOOST_TEST(bursts.steal_cores_spread > 0.33);
    BOOST_TEST(bursts.steal_cores_spread < 0.36);
    BOOST_TEST(bursts.foreign_cores_spread == 0);
}

BOOST_AUTO_TEST_CASE(shares_and_rates_are_differences_over_time) {
    Ledger ledger;
    add_host(ledger, 10, constant(1), constant(0));
    for (std::size_t i = 0; i < ledger.host.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i);
        HostRow& row = ledger.host[i];
        row.steal_ns = 77 + n * 20 * ms;
        row.throttled_ns = n * 10 * ms;
        row.cpu_pressure_ns = n * 50 * ms;
        row.io_pressure_ns = n % 2 == 0 ? n * 2 * ms : no_stamp;
        row.memory_pressure_ns = n * 900 * ms;   // more than the time that passed, as in a damaged row
        row.major_faults = 5 + n;
        row.involuntary_switches = 40 * n;
        row.resident_bytes = n == 30 ? 900 : 100 + n;
    }
    const Interference found = drawpoint::interference(ledger, start_ns, start_ns + 10 * s);
    BOOST_TEST(found.steal_cores == 0.1);
    BOOST_TEST(found.throttled_share == 0.05);
    BOOST_TEST(found.cpu_pressure.value() == 0.25);
    BOOST_TEST(found.io_pressure.value() == 0.01);
    BOOST_TEST(found.memory_pressure.value() == 1.0);
    BOOST_TEST(found.major_faults_per_s.value() == 5.0);
    BOOST_TEST(found.involuntary_switches_per_s.value() == 200.0);
    BOOST_TEST(found.resident_peak_bytes.value() == 900u);
    BOOST_TEST(drawpoint::interference(ledger, start_ns + 7 * s, start_ns + 9 * s).resident_peak_bytes.value() == 145u);
}

BOOST_AUTO_TEST_CASE(the_run_queue_is_a_share_of_the_samples_it_was_measured_in) {
    Ledger ledger;
    for (std::uint32_t i = 0; i < 10; ++i) {
        ledger.stages.push_back({.begin_ns = start_ns + i * ms, .ns = 600'000});
        ledger.stages.push_back({.begin_ns = start_ns + i * ms + 600'000, .ns = 400'000});
        ledger.samples.push_back({.slot = i, .begin_ns = start_ns + i * ms, .stages = {2 * i, 2}});
        if (i % 2 == 0)
            ledger.samples.back().run_queue_ns = i < 6 ? 300'000 : 0;
    }
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + s).run_queue_share == 0.18);
    BOOST_TEST(drawpoint::interference(ledger, start_ns, start_ns + 6 * ms).run_queue_share == 0.3);
    BOOST_TEST(drawpoint::interference(ledger, start_ns + 8 * ms, start_ns + s).run_queue_share == 0.0);
}

BOOST_AUTO_TEST_CASE(damaged_rows_yield_numbers_in_their_ranges) {
    std::mt19937_64 random{5};
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < 300; ++round) {
        Ledger ledger;
        const auto any = [&]() -> std::int64_t {
            switch (random() % 5) {
            case 0: return no_stamp;
            case 1: return most;
            case 2: return no_stamp + 1;
            case 3: return static_cast<std::int64_t>(random() % 1000);
            default: return static_cast<std::int64_t>(random());
            }
        };
        for (int i = 0; i < 6; ++i)
            ledger.host.push_back({any(), any(), any(), any(), any(), any(), any(), any(), any(), any(), any()});
        ledger.stages.push_back({.begin_ns = any(), .ns = any()});
        ledger.samples.push_back({.begin_ns = any(), .run_queue_ns = any(), .stages = {0, 1}});
        for (int i = 0; i < 3; ++i)
            ledger.steps.push_back(
                {.phase = Phase::train, .size = 1, .draw_begin_ns = any(), .draw_ns = any(), .batch_ns = any()});
        ledger.set_fact(facts::host_cores, round % 3 == 0 ? "nan" : round % 3 == 1 ? "-1" : "2");
        ledger.sort();
        const std::int64_t from = any(), to = any();
        const Interference found = drawpoint::interference(ledger, from, to);
        BOOST_REQUIRE((found.cores == 1 || found.cores == 2));
        BOOST_REQUIRE((found.foreign_cores >= 0 && found.foreign_cores <= found.cores));
        BOOST_REQUIRE((found.foreign_cores_spread >= 0 && std::isfinite(found.foreign_cores_spread)));
        BOOST_REQUIRE((found.steal_cores >= 0 && found.steal_cores <= found.cores));
        BOOST_REQUIRE((found.steal_cores_spread >= 0 && std::isfinite(found.steal_cores_spread)));
        BOOST_REQUIRE((found.throttled_share >= 0 && found.throttled_share <= 1));
        BOOST_REQUIRE((found.run_queue_share >= 0 && found.run_queue_share <= 1));
        const Trust trust = trust_of(ledger, found, from, to);
        BOOST_REQUIRE((trust.interference_share >= 0 && trust.interference_share <= 1));
        BOOST_REQUIRE((trust.trusted == trust.reasons.empty()));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
