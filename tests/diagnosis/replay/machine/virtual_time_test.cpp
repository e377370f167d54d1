#include "diagnosis/replay/machine/virtual_time.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

using namespace drawpoint;

namespace {

constexpr std::int64_t ms = 1'000'000, us = 1'000;

/// Runs until there are no more events; returns the time of each entity's last event.
std::map<VirtualTime::Entity, std::int64_t> ends(VirtualTime& time) {
    std::map<VirtualTime::Entity, std::int64_t> at;
    while (const auto entity = time.next())
        at[*entity] = time.now_ns();
    return at;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(virtual_time)

BOOST_AUTO_TEST_CASE(a_thread_has_its_core_until_it_ends_and_the_next_in_the_queue_then) {
    VirtualTime time{1, 1, 2};
    time.compute(0, 2 * ms);
    time.compute(1, 3 * ms);
    auto at = ends(time);
    BOOST_TEST(at[0] == 2 * ms);   // if shared evenly, both would take 4 and 5 ms
    BOOST_TEST(at[1] == 5 * ms);
}

BOOST_AUTO_TEST_CASE(a_slice_ends_where_others_queue_and_only_there) {
    VirtualTime time{1, 1, 2};
    time.compute(0, 20 * ms);
    time.compute(1, 3 * ms);
    auto at = ends(time);
    BOOST_TEST(at[1] == 12 * ms + 3 * ms);   // the third tick is the first after 10 ms
    BOOST_TEST(at[0] == 23 * ms);
    VirtualTime alone{1, 1, 2};
    alone.compute(0, 20 * ms);
    BOOST_TEST(ends(alone)[0] == 20 * ms);
}

BOOST_AUTO_TEST_CASE(one_that_wakes_waits_for_the_next_tick_where_the_other_had_the_core_alone) {
    VirtualTime time{1, 1, 2};
    time.compute(0, 40 * ms);
    time.wait(1, 14 * ms);   // in the second slice
    BOOST_TEST(*time.next() == 1u);
    time.compute(1, 1 * ms);
    auto at = ends(time);
    BOOST_TEST(at[1] == 17 * ms);
    BOOST_TEST(at[0] == 41 * ms);
}

BOOST_AUTO_TEST_CASE(whoever_queues_has_its_turn_also_beside_pieces_that_end_with_a_slice) {
    VirtualTime time{1, 1, 2};
    time.compute(0, 12 * ms);
    time.compute(1, 4 * ms);
    BOOST_TEST(*time.next() == 0u);
    time.compute(0, 4 * ms);
    BOOST_TEST(*time.next() == 1u);
    BOOST_TEST(time.now_ns() == 16 * ms);
}

BOOST_AUTO_TEST_CASE(a_core_is_idle_until_the_next_tick_at_most_while_others_queue) {
    VirtualTime time{2, 1, 3};
    time.compute(0, 100 * ms);
    time.compute(2, 100 * ms);      // queues for the same core
    time.compute(1, 12'200 * us);   // ends just after those two changed places, when the queued one has just run
    auto at = ends(time);
    BOOST_TEST(at[0] == 16 * ms + 88 * ms);
    BOOST_TEST(at[2] == 12 * ms + 100 * ms);
}

BOOST_AUTO_TEST_CASE(one_that_goes_on_at_once_keeps_its_core_and_its_slice) {
    VirtualTime time{1, 1, 2};
    time.compute(0, 1 * ms);
    time.compute(1, 1 * ms);
    BOOST_TEST(*time.next() == 0u);
    time.compute(0, 1 * ms);   // without waiting in between
    BOOST_TEST(*time.next() == 0u);
    time.compute(0, 13 * ms);
    BOOST_TEST(*time.next() == 1u);
    BOOST_TEST(time.now_ns() == 12 * ms + 1 * ms);
    BOOST_TEST(*time.next() == 0u);
    BOOST_TEST(time.now_ns() == 16 * ms);
    time.wait(0, 0);   // it waits, so the next in the queue gets the core
    time.compute(1, 1 * ms);
    BOOST_TEST(*time.next() == 0u);
    time.compute(0, 1 * ms);
    BOOST_TEST(*time.next() == 1u);
}

BOOST_AUTO_TEST_CASE(a_prompt_thread_runs_as_soon_as_it_wakes_and_no_other_does) {
    for (const bool prompt : {false, true}) {
        VirtualTime time{1, 1, 2, prompt ? 1 : VirtualTime::nobody};
        time.compute(0, 3 * ms);
        time.wait(1, 1 * ms);
        BOOST_TEST(*time.next() == 1u);
        time.compute(1, 1 * ms);
        auto at = ends(time);
        BOOST_TEST(at[1] == (prompt ? 2 * ms : 4 * ms));
        BOOST_TEST(at[0] == (prompt ? 4 * ms : 3 * ms));
    }
}

BOOST_AUTO_TEST_CASE(beside_a_prompt_thread_all_that_queue_have_their_turn_at_ticks) {
    VirtualTime time{1, 1, 3, 0};
    time.compute(0, 6 * ms);
    time.compute(1, 6 * ms);
    time.compute(2, 6 * ms);
    auto at = ends(time);
    BOOST_TEST(at[0] == 14 * ms);   // the others have the core from 4 to 12
    BOOST_TEST(at[1] == 16 * ms);
    BOOST_TEST(at[2] == 18 * ms);
}

BOOST_AUTO_TEST_CASE(on_busy_cores_a_thread_queues_where_it_ran_though_another_core_is_idle) {
    // Entities 0 and 2 have core 0, entity 1 core 1.
    VirtualTime busy{2, 1, 3};   // assumed busy at first
    busy.compute(0, 10 * ms);
    busy.compute(2, 1 * ms);
    BOOST_TEST(ends(busy)[2] == 4 * ms + 1 * ms);

    VirtualTime calm{2, 1, 3};
    calm.wait(0, 200 * ms);
    BOOST_TEST(*calm.next() == 0u);
    calm.compute(0, 10 * ms);
    calm.compute(2, 1 * ms);
    BOOST_TEST(ends(calm)[2] == 200 * ms + 1 * ms);
}

BOOST_AUTO_TEST_CASE(a_core_that_falls_idle_takes_a_queued_thread_now_and_then_unless_it_ran_just_now) {
    VirtualTime time{2, 1, 3};
    int taken = 0;
    constexpr int rounds = 2000;
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t begin_ns = time.now_ns();
        const auto beside = static_cast<VirtualTime::Entity>(taken % 2);   // has the core that entity 2 had
        time.compute(beside, 3 * ms);
        time.compute(1 - beside, 1 * ms);
        time.compute(2, 1 * ms);
        for (int end = 0; end < 3; ++end)
            if (const auto entity = time.next(); entity == 2u && time.now_ns() == begin_ns + 2 * ms)
                ++taken;
        time.wait(2, 4 * ms - (time.now_ns() - begin_ns));   // until the next tick
        (void)time.next();
    }
    BOOST_TEST(taken > rounds / 5);
    BOOST_TEST(taken < rounds * 3 / 4);   // some move only at a tick

    // Preempted 0.2 ms before the other core becomes idle, it stays.
    VirtualTime hot{2, 1, 3, 2};
    hot.compute(0, 10 * ms);
    hot.compute(1, 1 * ms);
    hot.wait(2, 800 * us);
    BOOST_TEST(*hot.next() == 2u);
    hot.compute(2, 2 * ms);
    auto at = ends(hot);
    BOOST_TEST(at[1] == 1 * ms);
    BOOST_TEST(at[2] == 2800 * us);
    BOOST_TEST(at[0] == 12 * ms);
}

BOOST_AUTO_TEST_CASE(threads_of_one_entity_run_side_by_side_and_end_together) {
    VirtualTime two{2, 1, 1};
    two.compute(0, 4 * ms, 2);
    BOOST_TEST(ends(two)[0] == 2 * ms);
    VirtualTime part{2, 1, 1};
    part.compute(0, 3 * ms, 1.5);   // 2 ms on one core, 1 ms on the other
    BOOST_TEST(ends(part)[0] == 2 * ms);
    VirtualTime one{1, 1, 1, 0};
    one.compute(0, 3 * ms, 1.5);
    BOOST_TEST(ends(one)[0] == 3 * ms);
}

BOOST_AUTO_TEST_CASE(a_thread_that_spins_for_the_others_of_its_entity_keeps_its_core_until_they_have_ended) {
    // Entity 0 computes 2 ms on core 0, and its helper 2 ms more once core 1 is free.
    for (const bool spins : {false, true}) {
        VirtualTime time{2, 1, 3};
        time.compute(1, 8 * ms);
        time.compute(0, 4 * ms, 2, spins ? Spinning::own : Spinning::no);
        time.wait(2, 3 * ms);
        BOOST_TEST(*time.next() == 2u);
        time.compute(2, 2 * ms);   // on core 0
        auto at = ends(time);
        if (spins) {
            BOOST_TEST(at[0] == 10 * ms);
            BOOST_TEST(at[2] == 12 * ms);
        } else {
            BOOST_TEST(at[2] <= 6 * ms);   // 1 ms later if the idle core took the helper
        }
    }
}

BOOST_AUTO_TEST_CASE(a_helper_that_yields_is_late_for_its_next_work) {
    // Entity 0 computes 1 ms on each of two threads, again and again, beside one thread on each core.
    const auto took_ns = [](Spinning spinning) {
        VirtualTime time{2, 1, 3, 0};
        time.compute(1, 1000 * ms);
        time.compute(2, 1000 * ms);
        for (int round = 0; round < 100; ++round) {
            time.compute(0, 2 * ms, 2, spinning);
            BOOST_TEST(*time.next() == 0u);
            time.wait(0, 2 * ms);
            BOOST_TEST(*time.next() == 0u);
        }
        return time.now_ns();
    };
    BOOST_TEST(took_ns(Spinning::yields) > took_ns(Spinning::own) + 10 * ms);
}

BOOST_AUTO_TEST_CASE(what_yields_begins_its_work_at_its_next_turn_and_what_is_stopped_ends_at_once) {
    VirtualTime time{1, 1, 2, 0};
    time.compute(1, 2 * ms);
    BOOST_TEST(*time.next() == 1u);
    time.yield(1, 4);
    time.compute(0, 10 * ms);
    time.wait(1, 5 * ms);   // entity 1 still queues behind entity 0
    BOOST_TEST(*time.next() == 1u);
    BOOST_TEST(time.yields(1));
    time.compute(1, 3 * ms);
    auto at = ends(time);
    BOOST_TEST(!time.yields(1));
    BOOST_TEST(std::max(at[0], at[1]) >= 2 * ms + 10 * ms + 3 * ms);
    BOOST_TEST(std::max(at[0], at[1]) <= 2 * ms + 10 * ms + 3 * ms + 4 * 4 * us);

    VirtualTime stopped{1, 1, 2};
    stopped.compute(0, 50 * ms);
    stopped.wait(1, 1 * ms);
    BOOST_TEST(*stopped.next() == 1u);
    stopped.stop(0);
    BOOST_TEST(ends(stopped)[0] == 1 * ms);
}

BOOST_AUTO_TEST_CASE(what_others_take_slows_all_cores_once_all_compute) {
    VirtualTime time{1.5, 1, 2};
    time.compute(0, 3 * ms);
    time.compute(1, 3 * ms);
    auto at = ends(time);
    BOOST_TEST(at[0] == 4 * ms);
    BOOST_TEST(at[1] == 4 * ms);
    VirtualTime alone{1.5, 1, 2};
    alone.compute(0, 3 * ms);
    BOOST_TEST(ends(alone)[0] == 3 * ms);
    VirtualTime unlimited{0, 1, 3};
    for (VirtualTime::Entity entity = 0; entity < 3; ++entity)
        unlimited.compute(entity, 3 * ms);
    at = ends(unlimited);
    BOOST_TEST(at.size() == 3u);
    for (const auto& [entity, end_ns] : at)
        BOOST_TEST(end_ns == 3 * ms);
}

BOOST_AUTO_TEST_CASE(whatever_is_asked_for_comes_to_its_end_once_and_never_faster_than_the_cores) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random{seed};
        const auto pick = [&random](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
        const double cores = (1 + pick(8)) / 2.0;
        const std::uint32_t entities = 1 + pick(7);
        VirtualTime time{cores, 1, entities, pick(2) ? pick(entities) : VirtualTime::nobody};
        std::vector<bool> busy(entities, false);
        std::int64_t asked_ns = 0, now_ns = 0;
        std::size_t open = 0;
        const auto ask = [&](VirtualTime::Entity entity) {
            busy[entity] = true;
            ++open;
            if (pick(3) == 0)
                return time.wait(entity, pick(3000) * us);
            const std::int64_t cpu_ns = (1 + pick(9000)) * us;
            asked_ns += cpu_ns;
            // only one entity is parallel
            time.compute(entity, cpu_ns, entity == 0 && pick(2) == 0 ? 1 + pick(30) / 10.0 : 1);
        };
        for (VirtualTime::Entity entity = 0; entity < entities; ++entity)
            ask(entity);
        for (int turn = 0; turn < 400; ++turn) {
            const auto entity = time.next();
            BOOST_REQUIRE(entity);
            BOOST_REQUIRE(busy[*entity]);
            BOOST_REQUIRE(time.now_ns() >= now_ns);
            now_ns = time.now_ns();
            busy[*entity] = false;
            --open;
            ask(*entity);
        }
        while (const auto entity = time.next()) {
            BOOST_REQUIRE(busy[*entity]);
            busy[*entity] = false;
            --open;
        }
        BOOST_TEST(open == 0u);
        BOOST_TEST(static_cast<double>(asked_ns) <= cores * static_cast<double>(time.now_ns()) * (1 + 1e-5),
                   "seed " << seed);
    }
}

BOOST_AUTO_TEST_SUITE_END()
