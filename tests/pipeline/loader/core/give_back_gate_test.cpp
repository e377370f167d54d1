#include "pipeline/loader/core/give_back_gate.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace drawpoint {
namespace {

using Then = GiveBackGate::Then;
using State = LoaderMachine::Gate;

/// Gives slots back, from `slot` on, until one wakes a worker. Returns how many that took; 0: none of `most` did.
std::uint32_t gives_until_woken(GiveBackGate& gate, std::uint32_t slot, std::uint32_t most) {
    for (std::uint32_t given = 1; given <= most; ++given, ++slot)
        if (!gate.give_quietly(slot) && gate.give(slot) == Then::wake_worker)
            return given;
    return 0;
}

BOOST_AUTO_TEST_SUITE(give_back_gate)

BOOST_AUTO_TEST_CASE(it_wakes_once_after_the_threshold_and_is_off_then) {
    GiveBackGate gate;
    BOOST_TEST(!gate.is_armed());
    BOOST_TEST(gate.arm(3));
    BOOST_TEST(gate.is_armed());
    BOOST_TEST(gives_until_woken(gate, 0, 3) == 3u);
    BOOST_TEST(gives_until_woken(gate, 3, 10) == 0u);
    const GiveBackGate::TakenUp taken = gate.take_up(1);
    BOOST_TEST(taken.slots == (std::uint64_t{1} << 13) - 1);
    BOOST_CHECK(taken.state == State::fired);
    BOOST_TEST(!gate.is_armed());
    BOOST_TEST(gives_until_woken(gate, 0, 10) == 0u);   // not armed anew by the one who took them up
    BOOST_CHECK(gate.take_up(1).state == State::off);
}

BOOST_AUTO_TEST_CASE(the_smaller_of_two_thresholds_counts) {
    for (const auto& [first, second] : {std::pair{3u, 1u}, {1u, 3u}, {2u, 2u}}) {
        GiveBackGate gate;
        BOOST_TEST(gate.arm(first));
        BOOST_TEST(gate.arm(second));
        BOOST_TEST(gives_until_woken(gate, 0, 5) == std::min(first, second));
    }
}

BOOST_AUTO_TEST_CASE(it_cannot_be_armed_while_a_slot_is_back) {
    GiveBackGate gate;
    BOOST_TEST(gate.give_quietly(4));
    BOOST_TEST(gate.has_slots());
    BOOST_TEST(!gate.arm(1));
    BOOST_TEST(!gate.is_armed());
    BOOST_TEST(gate.take_up(1).slots == 16u);
    BOOST_TEST(!gate.has_slots());
    BOOST_TEST(gate.arm(1));
}

BOOST_AUTO_TEST_CASE(who_takes_slots_up_lets_it_count_anew) {
    GiveBackGate gate;
    BOOST_TEST(gate.arm(4));
    const GiveBackGate::TakenUp none = gate.take_up(2);   // nothing is back: it counts on
    BOOST_CHECK(none.state == State::counting);
    BOOST_TEST(none.left == 4u);
    BOOST_TEST(gives_until_woken(gate, 0, 3) == 0u);
    const GiveBackGate::TakenUp three = gate.take_up(2);
    BOOST_CHECK(three.state == State::counting);
    BOOST_TEST(three.left == 2u);
    BOOST_TEST(three.slots == 7u);
    BOOST_TEST(gives_until_woken(gate, 0, 5) == 2u);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_makes_the_next_slot_wake) {
    GiveBackGate gate;
    BOOST_TEST(gate.arm(9));
    gate.announce_wait();
    gate.end_wait();
    BOOST_TEST(gives_until_woken(gate, 0, 1) == 0u);
    gate.announce_wait();
    BOOST_TEST(gives_until_woken(gate, 1, 5) == 1u);
    BOOST_TEST(gives_until_woken(gate, 2, 5) == 0u);   // nobody else sleeps
}

BOOST_AUTO_TEST_CASE(disarming_says_whether_it_has_fired) {
    GiveBackGate gate;
    BOOST_TEST(gate.arm(2));
    BOOST_TEST(!gate.disarm());
    BOOST_TEST(!gate.is_armed());
    BOOST_TEST(gives_until_woken(gate, 0, 5) == 0u);
    (void)gate.take();
    BOOST_TEST(gate.arm(1));
    BOOST_TEST(gives_until_woken(gate, 0, 1) == 1u);
    BOOST_TEST(gate.disarm());
}

BOOST_AUTO_TEST_CASE(a_closed_gate_says_so_and_which_slots_are_out) {
    GiveBackGate gate;
    BOOST_TEST(gate.give_quietly(1));
    std::uint64_t word = gate.word();
    while (!gate.close(word)) {
    }
    BOOST_TEST(GiveBackGate::still_out(word, 0b1110) == 0b1100u);
    BOOST_TEST(!gate.give_quietly(2));
    BOOST_CHECK(gate.give(2) == Then::note_closed);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
