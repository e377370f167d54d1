#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

#include "tests/support/count_allocations.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(host_counters_allocation)

BOOST_AUTO_TEST_CASE(reading_the_host_never_allocates) {
    drawpoint::HostCounters counters;
    const std::uint64_t before = drawpoint::test::counted_allocations();
    drawpoint::test::count_this_thread(true);
    std::int64_t sum = 0;
    for (int i = 0; i < 20; ++i)
        sum += counters.read(i).at_ns;
    drawpoint::test::count_this_thread(false);
    BOOST_TEST(sum == 190);
    if (drawpoint::test::counts_allocations())
        BOOST_TEST(drawpoint::test::counted_allocations() == before);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
