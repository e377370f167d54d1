#include <drawpoint/pipeline/tensor_rows.hpp>

#include <array>

#include <boost/test/unit_test.hpp>

#include "stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(tensor_rows)

using namespace drawpoint;
using test::MadeSample;

namespace {
constexpr SampleLayout two_floats{ScalarType::float32, 1, {2}};
constexpr std::array<float, 6> rows{0, 1, 2, 3, 4, 5};
constexpr std::array<std::int64_t, 3> labels{7, 8, 9};
}   // namespace

BOOST_AUTO_TEST_CASE(a_sample_is_a_row_and_its_target) {
    const TensorRows source{std::as_bytes(std::span{rows}), two_floats, labels};
    BOOST_TEST(source.size() == 3u);
    MadeSample sample{source};
    sample.fill({.index = 2});
    BOOST_TEST(sample.floats() == (std::vector<float>{4, 5}), boost::test_tools::per_element());
    BOOST_TEST(sample.target == 9);
    BOOST_TEST(sample.task.stage_count == 1u);
}

BOOST_AUTO_TEST_CASE(without_targets_the_target_is_0) {
    const TensorRows source{std::as_bytes(std::span{rows}), two_floats};
    MadeSample sample{source};
    sample.fill({.index = 1});
    BOOST_TEST(sample.target == 0);
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_refused) {
    const auto bytes = std::as_bytes(std::span{rows});
    BOOST_CHECK_THROW((TensorRows{bytes.first(20), two_floats}), std::invalid_argument);
    BOOST_CHECK_THROW((TensorRows{bytes, two_floats, std::span{labels}.first(2)}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(an_array_that_belongs_to_the_source_lives_as_long) {
    auto owned = std::make_shared<std::vector<std::byte>>(16);
    const std::weak_ptr<std::vector<std::byte>> watched = owned;
    {
        const TensorRows source{*owned, two_floats, {}, owned};
        owned.reset();
        BOOST_TEST(!watched.expired());
    }
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_SUITE_END()
