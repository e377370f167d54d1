#include <boost/test/unit_test.hpp>

#include <cmath>
#include <stdexcept>

#include "golden/golden_files.hpp"

BOOST_AUTO_TEST_SUITE(golden_files)

BOOST_AUTO_TEST_CASE(a_group_without_a_file_throws) {
    BOOST_CHECK_THROW(golden::files("no_such_group"), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(only_plain_fits_are_selected) {
    using golden::Json;
    BOOST_TEST(golden::is_plain_fit(Json::parse(R"({"epochs": 1})")));
    BOOST_TEST(golden::is_plain_fit(Json::parse(R"({"gaps": [], "throw": null, "lr_finder": false, "logger": {}})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"gaps": [{"order": 0}]})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"throw": {"event": "after_batch"}})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"grad_accum": 16})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"nan_loss_at": 0})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"logger": true})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"lr_finder": true})")));
}

BOOST_AUTO_TEST_CASE(numbers_that_json_cannot_hold_are_read_from_text) {
    BOOST_TEST(std::isnan(golden::number("nan")));
    BOOST_TEST(golden::number("-inf") == -INFINITY);
    BOOST_TEST(golden::number(0.5) == 0.5);
    BOOST_CHECK_THROW(golden::number("seven"), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
