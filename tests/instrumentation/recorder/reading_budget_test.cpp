#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>

#include <boost/test/unit_test.hpp>

#include <array>

using namespace drawpoint;

BOOST_AUTO_TEST_SUITE(reading_budget)

BOOST_AUTO_TEST_CASE(long_pieces_are_all_measured) {
    ReadingBudget budget;
    for (int i = 0; i < 1000; ++i) {
        BOOST_TEST_REQUIRE(budget.next());
        budget.took(2'000'000, 6);
    }
}

BOOST_AUTO_TEST_CASE(readings_take_their_share_of_the_time_and_no_more) {
    for (const std::int64_t ns : {1'000, 20'000, 100'000, 999'999})
        for (const std::uint32_t readings : {3u, 6u}) {
            ReadingBudget budget;
            double measured = 0;
            constexpr int pieces = 400'000;
            for (int i = 0; i < pieces; ++i) {
                measured += budget.next();
                budget.took(ns, readings);
            }
            const double share = measured * readings * ReadingBudget::reading_ns / (static_cast<double>(ns) * pieces);
            BOOST_TEST(share <= 1.15 * ReadingBudget::share);
            BOOST_TEST(share >= 0.85 * ReadingBudget::share);
        }
}

BOOST_AUTO_TEST_CASE(no_pattern_in_the_work_falls_in_with_the_choice) {
    ReadingBudget budget;
    std::array<int, 16> measured{};
    int all = 0;
    for (std::size_t i = 0; i < 160'000; ++i) {
        if (budget.next())
            ++measured[i % 16], ++all;
        budget.took(125'000, 6);   // readings of one in 16
    }
    for (const int of_place : measured)
        BOOST_TEST(std::abs(of_place * 16 - all) < all / 4);
}

BOOST_AUTO_TEST_CASE(a_clock_that_steps_back_is_forgotten) {
    for (const int before : {0, 100}) {
        ReadingBudget budget;
        for (int i = 0; i < before; ++i)
            budget.took(4'000'000, 6);
        for (int i = 0; i < 3; ++i)
            budget.took(-1'000'000'000, 6);
        for (int i = 0; i < 200; ++i)
            budget.took(4'000'000, 6);
        BOOST_TEST(budget.every() == 1);
        BOOST_TEST(!budget.is_straggler(4'000'000));
    }
}

BOOST_AUTO_TEST_CASE(one_straggler_is_known_as_such_and_hardly_moves_the_mean) {
    ReadingBudget budget;
    BOOST_TEST(!budget.is_straggler(1'000'000'000));   // nothing is known yet
    for (int i = 0; i < 100; ++i)
        budget.took(100'000, 6);
    BOOST_TEST(!budget.is_straggler(800'000));
    BOOST_TEST(budget.is_straggler(810'000));
    const double before = budget.every();
    budget.took(1'000'000'000'000, 6);
    BOOST_TEST(budget.every() > before / 2);
    BOOST_TEST(!budget.is_straggler(810'000));
    for (int i = 0; i < 100; ++i)
        budget.took(100'000, 6);
    BOOST_TEST(budget.is_straggler(810'000));
}

BOOST_AUTO_TEST_SUITE_END()
