#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "instrumentation/recorder/ring_message.hpp"

using namespace drawpoint;

namespace {

struct Numbered {
    std::uint64_t number = 0;
};

bool push(Ring& ring, std::uint64_t number, std::size_t side_rows) {
    const std::vector<std::uint64_t> side(side_rows, number);
    const std::uint64_t before = ring.dropped();
    push_message(ring, MessageKind::step, static_cast<std::int64_t>(number), Numbered{number},
                 std::span<const std::uint64_t>{side});
    return ring.dropped() == before;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(ring)

BOOST_AUTO_TEST_CASE(a_ring_is_a_power_of_two_of_at_least_64_records) {
    BOOST_CHECK_THROW(Ring{0}, std::invalid_argument);
    BOOST_CHECK_THROW(Ring{32}, std::invalid_argument);
    BOOST_CHECK_THROW(Ring{100}, std::invalid_argument);
    BOOST_CHECK_NO_THROW(Ring{64});
}

BOOST_AUTO_TEST_CASE(messages_of_every_length_come_out_as_they_went_in_however_they_meet_the_end) {
    Ring ring{64};
    std::uint64_t number = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::uint64_t> sent;
        for (std::size_t i = 0; i < 3; ++i, ++number)
            if (push(ring, number, (number * 7) % 100))
                sent.push_back(number);
        std::vector<std::uint64_t> got;
        ring.consume(ring.head(), [&](const std::byte* message) {
            const auto row = row_of<Numbered>(message);
            std::array<std::uint64_t, 128> buffer{};
            const auto side = side_rows_of<Numbered>(message, buffer);
            BOOST_TEST_REQUIRE(side.size() == (row.number * 7) % 100);
            for (const std::uint64_t value : side)
                BOOST_TEST_REQUIRE(value == row.number);
            got.push_back(row.number);
        });
        BOOST_TEST_REQUIRE(got == sent);
        BOOST_TEST_REQUIRE(!sent.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_message_that_does_not_fit_is_left_out_whole_and_counted_with_its_time) {
    Ring ring{64};
    for (std::uint64_t number = 0; number < 100; ++number)
        push(ring, number, 7);   // takes 2 records
    const Ring::Drops drops = ring.take_drops();
    BOOST_TEST(drops.count == 68u);
    BOOST_TEST(drops.from_ns == 32);
    BOOST_TEST(drops.to_ns == 99);
    BOOST_TEST(ring.take_drops().count == 0u);
    std::uint64_t expected = 0;
    ring.consume(ring.head(),
                 [&](const std::byte* message) { BOOST_TEST(row_of<Numbered>(message).number == expected++); });
    BOOST_TEST(expected == 32u);

    BOOST_TEST(push(ring, 100, 7));
    for (std::uint64_t number = 200; number < 240; ++number)
        push(ring, number, 7);
    BOOST_TEST(ring.take_drops().from_ns == 231);   // a new group of drops begins with its first record
}

BOOST_AUTO_TEST_CASE(a_closed_ring_takes_nothing_and_counts_it) {
    Ring ring{64};
    ring.close();
    BOOST_TEST(!push(ring, 1, 0));
    BOOST_TEST(ring.dropped() == 1u);
    BOOST_TEST(ring.head() == 0u);
}

BOOST_AUTO_TEST_CASE(between_two_threads_every_message_arrives_in_order_or_is_counted) {
    Ring ring{256};
    constexpr std::uint64_t messages = 200'000;
    std::atomic<bool> finished = false;
    std::jthread producer{[&] {
        for (std::uint64_t number = 0; number < messages; ++number)
            push(ring, number, number % 19);
        finished = true;
    }};
    std::uint64_t arrived = 0, dropped = 0, next = 0;
    bool intact = true;
    for (bool last = false; !last;) {
        last = finished;
        ring.consume(ring.head(), [&](const std::byte* message) {
            const auto row = row_of<Numbered>(message);
            std::array<std::uint64_t, 32> buffer{};
            const auto side = side_rows_of<Numbered>(message, buffer);
            intact = intact && row.number >= next && side.size() == row.number % 19 &&
                     std::all_of(side.begin(), side.end(), [&](std::uint64_t value) { return value == row.number; });
            next = row.number + 1;
            ++arrived;
        });
        const Ring::Drops drops = ring.take_drops();
        dropped += drops.count;
        intact = intact && (drops.count == 0 || drops.from_ns <= drops.to_ns);
    }
    BOOST_TEST(intact);
    BOOST_TEST(arrived + dropped == messages);
    BOOST_TEST(arrived > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
