#include <boost/test/unit_test.hpp>

#include "instrumentation/recorder/thinning.hpp"

using drawpoint::Thinning;

BOOST_AUTO_TEST_SUITE(thinning)

BOOST_AUTO_TEST_CASE(slices_go_first_then_samples_and_slices_never_outlive_their_samples) {
    Thinning thinning{1000};
    BOOST_TEST(!thinning.update(249));
    BOOST_TEST(thinning.slices_every() == 1u);
    BOOST_TEST(thinning.update(250));
    BOOST_TEST(thinning.slices_every() == 8u);
    BOOST_TEST(thinning.samples_every() == 1u);
    BOOST_TEST(thinning.update(500));
    BOOST_TEST(thinning.slices_every() == 64u);
    BOOST_TEST(thinning.samples_every() == 1u);
    BOOST_TEST(thinning.update(750));
    BOOST_TEST(thinning.samples_every() == 4u);
    for (std::uint64_t used = 751; used <= 1000; ++used) {
        thinning.update(used);
        BOOST_TEST_REQUIRE(thinning.slices_every() % thinning.samples_every() == 0u);
    }
    BOOST_TEST(thinning.samples_every() == 1u << 30);
}

BOOST_AUTO_TEST_CASE(a_million_batches_stay_within_a_limit_that_holds_four_hundred) {
    constexpr std::uint64_t limit = 1 << 20, sliced = 12'800, bare = 5'000;
    Thinning thinning{limit};
    std::uint64_t used = 0;
    for (std::uint64_t batch = 0; batch < 1'000'000; ++batch) {
        if (batch % thinning.samples_every() == 0)
            used += batch % thinning.slices_every() == 0 ? sliced : bare;
        thinning.update(used);
    }
    BOOST_TEST(used <= limit + sliced);   // a batch was begun when only a part of it had room
    BOOST_TEST(used > limit / 4 * 3);
}

BOOST_AUTO_TEST_SUITE_END()
