#include <boost/test/unit_test.hpp>

#include <array>
#include <memory>

#include "instrumentation/recorder/ring.hpp"
#include "model/weakening.hpp"

using namespace drawpoint;
using model::Plain;
using model::Run;

namespace {

using ModelRing = BasicRing<model::Atomics>;

/// What a message's memory is to the model: a message's content is its number.
struct State {
    ModelRing ring{64};
    std::array<Plain<std::uint32_t>, 64> contents;
    std::uint32_t pushed = 0, taken = 0, sent[8] = {};
    std::uint64_t drops = 0, told = 0;
    std::int64_t drop_from = 0, drop_to = 0;

    std::size_t place_of(const std::byte* message) const {
        return static_cast<std::size_t>(message - base) / ModelRing::record_bytes;
    }
    const std::byte* base = nullptr;

    /// Pushes message `number` of `records` records at the time `number`.
    void push(std::uint32_t number, std::uint8_t records) {
        std::byte* const to = ring.claim(records);
        if (to == nullptr) {
            ring.count_drop(number);
            ++drops;
            return;
        }
        to[0] = std::byte{1};
        to[1] = std::byte{records};
        contents[place_of(to)] = number;
        ring.publish();
        sent[pushed++] = number;
    }
    void take_all() {
        ring.consume(ring.head(), [&](const std::byte* message) {
            const std::uint32_t number = contents[place_of(message)];
            Run::current().check(taken < 8 && number == sent[taken], "another message than was pushed");
            ++taken;
        });
    }
    void take_drops() {
        const ModelRing::Drops told_now = ring.take_drops();
        told += told_now.count;
        if (told_now.count != 0)
            Run::current().check(told_now.from_ns >= 1 && told_now.from_ns <= told_now.to_ns && told_now.to_ns <= 8,
                                 "drops at a time when there were none");
    }
    void check_all() {
        take_all();
        take_drops();
        Run::current().check(taken == pushed, "a message is lost");
        Run::current().check(told == drops && ring.dropped() == drops, "drops are not counted");
    }
};

/// A ring in which every message must wait for the place of one before it.
void full_ring(Run& run) {
    const auto state = std::make_shared<State>();
    state->base = state->ring.claim(1);   // not published
    State* const s = state.get();
    run.thread([s] {
        for (std::uint32_t number = 1; number <= 6; ++number)
            s->push(number, 30);   // two of them fit, and skip the ring's last records
    });
    run.thread([s] {
        for (int round = 0; round < 3; ++round)
            s->take_all();
    });
    run.at_end([state] { state->check_all(); });
}

/// Drops are counted by one side, and taken and looked at by others.
void drops(Run& run) {
    const auto state = std::make_shared<State>();
    state->base = state->ring.claim(1);
    State* const s = state.get();
    s->push(0, 60);   // so that nothing else fits
    run.thread([s] {
        for (std::uint32_t number = 1; number <= 2; ++number)
            s->push(number, 60);
    });
    run.thread([s] {
        s->take_drops();
        s->take_drops();
    });
    run.thread([s] { Run::current().check(s->ring.dropped() <= 2, "more drops than messages"); });
    run.at_end([state] { state->check_all(); });
}

/// The producer asks how full the ring is before it pushes, as the loop does.
void asking(Run& run) {
    const auto state = std::make_shared<State>();
    state->base = state->ring.claim(1);
    State* const s = state.get();
    run.thread([s] {
        for (std::uint32_t number = 1; number <= 4; ++number)
            if (!s->ring.fuller_than(32))
                s->push(number, 30);
    });
    run.thread([s] {
        s->take_all();
        s->take_all();
    });
    run.thread([s] { s->ring.close(); });
    run.at_end([state] { state->check_all(); });
}

}   // namespace

BOOST_AUTO_TEST_SUITE(ring_model)

BOOST_AUTO_TEST_CASE(no_schedule_loses_a_message_and_every_weaker_order_does_harm) {
    constexpr std::string_view why = "keeps the times that were read before from being those of a later drop; in the "
                                     "model, no load reads what is stored later";
    model::check_orders("recorder/ring.hpp", {{"full ring", full_ring}, {"drops", drops}, {"asking", asking}},
                        {{"reported_.load(std::memory_order_acquire) == dropped", why},
                         {"reported_.store(dropped, std::memory_order_release)", why}});
}

BOOST_AUTO_TEST_SUITE_END()
