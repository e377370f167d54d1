#include "diagnosis/replay/machine/run_queue.hpp"

#include <vector>

#include <boost/test/unit_test.hpp>

using namespace drawpoint;

namespace {

constexpr std::int64_t ms = 1'000'000 * Turn::ns;

/// Threads with these slices, all in the queue of one core.
struct Core {
    explicit Core(std::vector<std::int64_t> slices) {
        turns.resize(slices.size());
        for (RunQueue::Thread thread = 0; thread < slices.size(); ++thread) {
            turns[thread].slice = slices[thread];
            queue.join(turns, thread);
        }
    }
    void run(RunQueue::Thread thread, std::int64_t ns) { turns[thread].ran += ns; }

    std::vector<Turn> turns;
    RunQueue queue{4'000'000};
};

}   // namespace

BOOST_AUTO_TEST_SUITE(run_queue)

BOOST_AUTO_TEST_CASE(the_shortest_slice_has_the_first_turn_and_whoever_had_more_than_the_average_none) {
    Core core{{10 * ms, 2 * ms, 10 * ms}};
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 1u);
    core.run(1, 1 * ms);
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) != 1u);
    core.run(0, 3 * ms);
    core.run(2, 3 * ms);
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 1u);
}

BOOST_AUTO_TEST_CASE(a_turn_lasts_a_slice_of_the_shortest_that_queues) {
    Core core{{10 * ms, 2 * ms}};
    core.queue.protect(core.turns, 0, true);
    core.run(0, 2 * ms - 1);
    BOOST_TEST(!core.queue.look_at(core.turns, 0));
    core.run(0, 1);
    BOOST_TEST(core.queue.look_at(core.turns, 0));
    BOOST_TEST(core.queue.pick(core.turns, 0, true) == 1u);
}

BOOST_AUTO_TEST_CASE(a_protected_turn_ends_for_one_with_a_shorter_slice_only) {
    Core core{{10 * ms, 10 * ms, 2 * ms}};
    core.queue.leave(core.turns, 2);
    core.run(1, 3 * ms);
    core.queue.protect(core.turns, 0, true);
    core.run(0, 1 * ms);
    core.queue.join(core.turns, 2);
    core.turns[2].ran = 0;
    BOOST_TEST(core.queue.pick(core.turns, 0, true) == 0u);
    BOOST_TEST(core.queue.pick(core.turns, 0, false) == 2u);
}

BOOST_AUTO_TEST_CASE(a_slice_that_is_over_is_followed_by_another_one) {
    Core core{{2 * ms}};
    core.run(0, 3 * ms);
    BOOST_TEST(!core.queue.look_at(core.turns, 0));   // nobody else
    BOOST_TEST(core.turns[0].deadline == 5 * ms);
}

BOOST_AUTO_TEST_CASE(one_that_sleeps_having_had_too_much_stays_until_others_have_had_as_much) {
    Core core{{2 * ms, 2 * ms}};
    core.run(0, 1 * ms);
    core.queue.sleep(core.turns, 0);
    BOOST_TEST(core.turns[0].asleep);
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 1u);
    BOOST_TEST(core.queue.size() == 2u);
    core.run(1, 1 * ms);
    core.turns[1].deadline += 2 * ms;
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 1u);
    BOOST_TEST(core.queue.size() == 1u);
    BOOST_TEST(core.turns[0].lag == 0);   // nor is it owed anything

    core.queue.sleep(core.turns, 1);
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == RunQueue::nobody);
}

BOOST_AUTO_TEST_CASE(one_that_wakes_too_early_still_has_had_too_much) {
    for (const std::int64_t other_ran : {ms / 2, 2 * ms}) {
        Core core{{2 * ms, 2 * ms}};
        core.run(0, 1 * ms);
        core.queue.sleep(core.turns, 0);
        core.run(1, other_ran);
        core.queue.wake(core.turns, 0);
        BOOST_TEST(!core.turns[0].asleep);
        BOOST_TEST(core.turns[0].ran == (other_ran < 1 * ms ? 1 * ms : other_ran));   // what it was owed is forgotten
    }
}

BOOST_AUTO_TEST_CASE(one_that_slept_wakes_with_what_it_was_owed) {
    Core core{{2 * ms, 2 * ms}};
    core.run(1, 1 * ms);
    core.queue.sleep(core.turns, 0);
    BOOST_TEST(core.turns[0].lag == ms / 2);
    core.run(1, 5 * ms);
    core.queue.join(core.turns, 0);
    BOOST_TEST(core.turns[0].ran == 5 * ms);   // again half a millisecond behind the average of both
    core.queue.sleep(core.turns, 0);
    core.run(1, 1000 * ms);
    core.queue.join(core.turns, 0);
    core.queue.leave(core.turns, 0);
    BOOST_TEST(core.turns[0].lag <= 4 * ms);   // at most two slices or a tick
}

BOOST_AUTO_TEST_CASE(what_is_yielded_goes_to_those_that_queue) {
    Core core{{10 * ms, 2 * ms}};
    core.queue.yield(core.turns, 0);
    BOOST_TEST(core.turns[0].ran == 10 * ms);
    for (int turn = 0; turn < 5; ++turn) {
        BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 1u);
        core.run(1, 2 * ms - 1);
    }
    core.run(1, 1 * ms);
    BOOST_TEST(core.queue.pick(core.turns, RunQueue::nobody, false) == 0u);

    Core alone{{10 * ms}};
    alone.queue.yield(alone.turns, 0);
    BOOST_TEST(alone.turns[0].ran == 0);
}

BOOST_AUTO_TEST_CASE(one_that_moves_takes_what_is_left_of_its_slice_along) {
    Core from{{10 * ms, 10 * ms}}, to{{10 * ms, 10 * ms}};
    from.run(0, 4 * ms);
    from.queue.leave(from.turns, 0);
    to.queue.leave(to.turns, 0);
    to.run(1, 7 * ms);
    to.turns[0] = from.turns[0];
    to.queue.join(to.turns, 0, true);
    BOOST_TEST(to.turns[0].deadline - to.turns[0].ran == 6 * ms);
    BOOST_TEST(to.turns[0].ran == 11 * ms);   // here, too, it has had 4 ms more than the others
}

BOOST_AUTO_TEST_SUITE_END()
