#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "diagnosis/trust/core_probe.hpp"
#include <drawpoint/diagnosis/trust/capacity.hpp>

namespace {

using namespace drawpoint;

BOOST_AUTO_TEST_SUITE(capacity)

BOOST_AUTO_TEST_CASE(the_fastest_of_many_probes_counts_however_often_others_disturb) {
    std::mt19937 random{17};
    const CoreProbe disturbed = [&](std::size_t threads) -> std::int64_t {
        const std::int64_t undisturbed = threads == 1 ? 2'000'000 : 2'500'000;
        return random() % 10 == 0 ? undisturbed : undisturbed * (2 + static_cast<std::int64_t>(random() % 5));
    };
    BOOST_TEST(core_efficiency(disturbed, 4, 150) == 0.8);
}

BOOST_AUTO_TEST_CASE(each_kind_is_probed_as_often_as_asked_in_turns) {
    std::vector<std::size_t> asked;
    const CoreProbe probe = [&](std::size_t threads) -> std::int64_t {
        asked.push_back(threads);
        return 5;
    };
    BOOST_TEST(core_efficiency(probe, 3, 25) == 1.0);
    BOOST_TEST(std::ranges::count(asked, 1u) == 25);
    BOOST_TEST(std::ranges::count(asked, 3u) == 25);
    BOOST_TEST(asked[0] == 1u);
    BOOST_TEST(asked[10] == 3u);
    BOOST_TEST(asked[20] == 1u);
    asked.clear();
    BOOST_TEST(core_efficiency(probe, 1, 25) == 1.0);
    BOOST_TEST(asked.empty());   // the efficiency of a single core is 1 by definition
    BOOST_TEST(core_efficiency(probe, 2, 0) == 1.0);
    BOOST_TEST(asked.size() == 2u);
}

BOOST_AUTO_TEST_CASE(efficiency_is_at_most_one) {
    BOOST_TEST(core_efficiency([](std::size_t threads) -> std::int64_t { return threads == 1 ? 9 : 3; }, 2, 5) == 1.0);
    BOOST_TEST(core_efficiency([](std::size_t) -> std::int64_t { return 0; }, 2, 5) == 1.0);
}

BOOST_AUTO_TEST_CASE(this_machine_has_a_capacity) {
    const Capacity found = measure_capacity(2);
    BOOST_TEST(found.cores == usable_cores());
    for (const double efficiency : {found.core_efficiency, found.copy_efficiency}) {
        BOOST_TEST(efficiency > 0.0);
        BOOST_TEST(efficiency <= 1.0);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
