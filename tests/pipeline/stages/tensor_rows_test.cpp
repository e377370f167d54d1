#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include <array>
#include <cstring>
#include <numeric>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>

#include "pipeline/stages/made_sample.hpp"

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

BOOST_AUTO_TEST_CASE(a_run_of_any_order_and_any_row_size_is_its_rows) {
    std::vector<std::byte> bytes(std::size_t{3} << 20);
    CounterRng random{1, 0, 0};
    for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(random.next_u32());
    for (const std::size_t row : {1u, 2u, 4u, 5u, 8u, 12u, 16u, 24u, 32u, 64u, 100u, 3072u, 262144u, 300001u}) {
        const std::size_t count = bytes.size() / row;
        std::vector<std::int64_t> targets(count);
        std::iota(targets.begin(), targets.end(), 5);
        const TensorRows source{
            std::span{bytes}.first(count * row), {ScalarType::uint8, 1, {static_cast<std::int64_t>(row)}}, targets};
        BOOST_TEST(source.fills_runs());
        const std::vector<std::uint64_t> indices{count - 1, 0, 1, 2, 5, 6, 4, 4, 3};
        std::vector<std::byte> data(indices.size() * row + 2, std::byte{77});
        std::vector<std::int64_t> made(indices.size());
        SampleRun run{.indices = indices, .data = data.data() + 1, .targets = made.data()};   // unaligned
        WorkerScratch scratch;
        source.fill_run(run, scratch);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            BOOST_TEST(std::memcmp(data.data() + 1 + i * row, bytes.data() + indices[i] * row, row) == 0,
                       row << " bytes, " << i);
            BOOST_TEST(made[i] == targets[indices[i]]);
        }
        BOOST_TEST((data.front() == std::byte{77} && data.back() == std::byte{77}));
    }
}

BOOST_AUTO_TEST_CASE(a_recipe_over_rows_fills_no_runs) {
    const auto recipe =
        TensorRows{std::as_bytes(std::span{rows}), two_floats, labels} | stage("twice", [](SampleView& view) {
            for (float& value : view.floats())
                value *= 2;
        });
    BOOST_TEST(!recipe.fills_runs());
    MadeSample sample{recipe};
    sample.fill({.index = 1});
    BOOST_TEST(sample.floats() == (std::vector<float>{4, 6}), boost::test_tools::per_element());
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
