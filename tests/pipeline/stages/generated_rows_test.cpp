#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include <cmath>

#include <boost/test/unit_test.hpp>

#include "pipeline/stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(generated_rows)

using namespace drawpoint;
using test::MadeSample;

namespace {

std::vector<float> image(const SyntheticImages& source, std::uint64_t index, std::uint64_t epoch = 0) {
    MadeSample sample{source};
    sample.fill({.index = index, .epoch = epoch});
    return sample.floats();
}

/// The energy of each colour, which identifies the class for any phase and noise.
std::array<double, 3> colours(const std::vector<float>& values) {
    std::array<double, 3> energy{};
    for (std::size_t i = 0; i < values.size(); ++i)
        energy[i / (values.size() / 3)] += static_cast<double>(values[i]) * values[i];
    return energy;
}

double distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_generated_image_depends_on_seed_and_index_only) {
    const SyntheticImages source{100, 5, 32, 1};
    BOOST_TEST((image(source, 3) == image(SyntheticImages{100, 5, 32, 1}, 3, 7)));
    BOOST_TEST((image(source, 3) != image(source, 8)));
    BOOST_TEST((image(source, 3) != image(SyntheticImages{100, 5, 32, 2}, 3)));
}

BOOST_AUTO_TEST_CASE(images_of_one_class_resemble_each_other_more_than_those_of_others) {
    const SyntheticImages source{100, 5, 32};
    for (std::uint64_t label = 0; label < 5; ++label) {
        const auto mine = colours(image(source, label)), again = colours(image(source, label + 50));
        for (std::uint64_t other = 0; other < 5; ++other)
            if (other != label)
                BOOST_TEST(distance(mine, again) < distance(mine, colours(image(source, other))));
    }
}

BOOST_AUTO_TEST_CASE(classes_take_turns) {
    const SyntheticImages source{10, 3, 8};
    MadeSample sample{source};
    for (const std::uint64_t index : {0u, 1u, 2u, 3u, 7u}) {
        sample.fill({.index = index});
        BOOST_TEST(sample.target == static_cast<std::int64_t>(index % 3));
    }
}

BOOST_AUTO_TEST_CASE(counts_below_1_are_refused_by_name) {
    BOOST_CHECK_EXCEPTION((SyntheticImages{1, 0}), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()} == "SyntheticImages: num_classes must be at least 1, got 0";
    });
}

BOOST_AUTO_TEST_CASE(a_function_makes_the_samples_and_their_targets) {
    const auto source = from_function(4, {ScalarType::int64, 0, {}}, "squares", [](SampleView& sample) {
        const auto square = static_cast<std::int64_t>(sample.index * sample.index);
        std::memcpy(sample.data.data(), &square, sizeof square);
        *sample.target = square % 5;
    });
    BOOST_TEST(source.stages().at(0) == "squares");
    MadeSample sample{source};
    sample.fill({.index = 3});
    BOOST_TEST(std::to_integer<int>(sample.data[0]) == 9);
    BOOST_TEST(sample.target == 4);
}

BOOST_AUTO_TEST_SUITE_END()
