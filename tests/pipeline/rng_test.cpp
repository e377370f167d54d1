#include <drawpoint/pipeline/rng.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <vector>

BOOST_AUTO_TEST_SUITE(rng)

namespace {

using drawpoint::CounterRng;
using Block = std::array<std::uint32_t, 4>;

std::vector<std::uint32_t> stream(std::uint64_t seed, std::uint32_t epoch, std::uint64_t index) {
    CounterRng random{seed, epoch, index};
    std::vector<std::uint32_t> values;
    for (int i = 0; i < 12; ++i)
        values.push_back(random.next_u32());
    return values;
}

}   // namespace

BOOST_AUTO_TEST_CASE(philox_gives_the_published_answers) {
    const std::uint32_t ones = 0xFFFFFFFF;
    BOOST_TEST(
        (drawpoint::philox4x32_10({0, 0, 0, 0}, {0, 0}) == Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
    BOOST_TEST((drawpoint::philox4x32_10({ones, ones, ones, ones}, {ones, ones}) ==
                Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
    BOOST_TEST((drawpoint::philox4x32_10({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}) ==
                Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

BOOST_AUTO_TEST_CASE(equal_keys_give_equal_streams_and_any_other_key_another) {
    const auto values = stream(1, 2, 3);
    BOOST_TEST((values == stream(1, 2, 3)));
    BOOST_TEST((values != stream(2, 2, 3)));
    BOOST_TEST((values != stream(1, 3, 3)));
    BOOST_TEST((values != stream(1, 2, 4)));
    BOOST_TEST((values != stream(1 + (std::uint64_t{1} << 32), 2, 3)));
    BOOST_TEST((values != stream(1, 2, 3 + (std::uint64_t{1} << 32))));
}

BOOST_AUTO_TEST_CASE(the_stream_is_the_blocks_of_its_key_in_order) {
    const auto values = stream(0x299F31D0A4093822, 5, 6);
    for (std::uint32_t block = 0; block < 3; ++block) {
        const Block expected = drawpoint::philox4x32_10({block, 5, 6, 0}, {0xA4093822, 0x299F31D0});
        for (std::size_t i = 0; i < 4; ++i)
            BOOST_TEST(values[block * 4 + i] == expected[i]);
    }
}

BOOST_AUTO_TEST_CASE(uniform_lies_in_the_unit_interval_and_fills_it_evenly) {
    std::array<int, 16> counts{};
    const int draws = 160000;
    for (int i = 0; i < draws; ++i) {
        CounterRng random{7, 0, static_cast<std::uint64_t>(i)};
        const double value = random.uniform();
        BOOST_REQUIRE((value >= 0 && value < 1));
        ++counts[static_cast<std::size_t>(value * 16)];
    }
    for (const int count : counts)
        BOOST_TEST(std::abs(count - draws / 16) < 500);   // 5 standard deviations
}

BOOST_AUTO_TEST_SUITE_END()
