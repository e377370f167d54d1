#include <drawpoint/pipeline/stages/stage.hpp>

#include <chrono>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include "pipeline/stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(stage)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::MadeSample;
using Names = std::vector<std::string>;

namespace {

constexpr SampleLayout two_floats{ScalarType::float32, 1, {2}};

auto counting() {
    return from_function(5, two_floats, "make", [](SampleView& sample) {
        sample.floats()[0] = static_cast<float>(sample.index);
        sample.floats()[1] = 1;
        *sample.target = 7;
    });
}

struct Doubled {
    [[nodiscard]] std::string name() const { return "doubled"; }
    void operator()(SampleView& sample) const {
        for (float& value : sample.floats())
            value *= 2;
    }
};

/// The first number of the stage's random stream.
template <class Make>
double chance(const Make& make, MadeSample::Key key) {
    const auto source = make();
    MadeSample sample{source};
    sample.fill(key);
    return sample.floats()[0];
}

}   // namespace

BOOST_AUTO_TEST_CASE(stages_are_named_in_the_order_they_were_composed) {
    const auto recipe = counting() | drawpoint::stage("one", [](SampleView&) {}) | Doubled{};
    BOOST_TEST(recipe.stages() == (Names{"make", "one", "doubled"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_stage_changes_the_sample_and_its_target_in_place) {
    const auto recipe =
        counting() | Doubled{} | drawpoint::stage("relabel", [](SampleView& sample) { *sample.target += 1; });
    MadeSample sample{recipe};
    sample.fill({.index = 3});
    BOOST_TEST(sample.floats() == (std::vector<float>{6, 2}), boost::test_tools::per_element());
    BOOST_TEST(sample.target == 8);
}

BOOST_AUTO_TEST_CASE(each_stage_is_stamped_with_exactly_its_own_time) {
    ManualClock manual{100};
    const AnyClock clock{manual};
    const auto takes = [&manual](std::chrono::nanoseconds time) {
        return [&manual, time](SampleView&) { manual.advance(time); };
    };
    const auto recipe = from_function(1, two_floats, "a", takes(1ns)) | drawpoint::stage("b", takes(2ns)) |
                        drawpoint::stage("c", takes(4ns)) | drawpoint::stage("d", takes(8ns));
    MadeSample sample{recipe};
    sample.fill({}, &clock);
    BOOST_TEST(sample.times() == (std::vector<std::int64_t>{1, 2, 4, 8}), boost::test_tools::per_element());
    BOOST_TEST(sample.stages().front().begin_ns == 100);
    BOOST_TEST(sample.tiled());
}

BOOST_AUTO_TEST_CASE(a_failing_stage_is_the_last_one_counted_and_its_time_is_kept) {
    ManualClock manual;
    const AnyClock clock{manual};
    const auto recipe = counting() |
                        drawpoint::stage("breaks",
                                         [&](SampleView&) {
                                             manual.advance(16ns);
                                             throw std::runtime_error{"no"};
                                         }) |
                        drawpoint::stage("never", [](SampleView&) {});
    MadeSample sample{recipe};
    BOOST_CHECK_THROW(sample.fill({}, &clock), std::runtime_error);
    BOOST_REQUIRE(sample.task.stage_count == 2u);
    BOOST_TEST(recipe.stages()[sample.task.stage_count - 1] == "breaks");
    BOOST_TEST(sample.task.stages[1].ns == 16);
}

BOOST_AUTO_TEST_CASE(without_a_clock_stages_are_only_counted) {
    const auto recipe = counting() | Doubled{};
    MadeSample sample{recipe};
    sample.fill();
    BOOST_TEST(sample.times() == (std::vector<std::int64_t>{0, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_random_numbers_of_a_stage_are_keyed_by_seed_epoch_index_and_its_place) {
    const auto draw = [](SampleView& sample) { sample.floats()[0] = static_cast<float>(sample.random.uniform()); };
    const auto first = [&] { return counting() | drawpoint::stage("chance", draw); };
    const auto second = [&] {
        return counting() | drawpoint::stage("other", [](SampleView&) {}) | drawpoint::stage("chance", draw);
    };
    const MadeSample::Key key{.index = 1, .seed = 2, .epoch = 3};
    BOOST_TEST(chance(first, key) == chance(first, key));
    BOOST_TEST(chance(first, key) != chance(second, key));
    for (const MadeSample::Key other : {MadeSample::Key{2, 2, 3}, MadeSample::Key{1, 3, 3}, MadeSample::Key{1, 2, 4}})
        BOOST_TEST(chance(first, key) != chance(first, other));
}

BOOST_AUTO_TEST_CASE(a_stage_beyond_the_eighth_is_refused_by_name) {
    Recipe recipe = counting() | drawpoint::stage("2", [](SampleView&) {});
    for (int i = 3; i <= 8; ++i)
        recipe = recipe | drawpoint::stage(std::to_string(i), [](SampleView&) {});
    BOOST_CHECK_EXCEPTION((void)(recipe | drawpoint::stage("ninth", [](SampleView&) {})), std::invalid_argument,
                          [](const auto& error) {
                              return std::string{error.what()} == "stage ninth: a recipe has at most 8 timed stages";
                          });
}

BOOST_AUTO_TEST_CASE(a_stage_without_a_name_is_refused) {
    BOOST_CHECK_THROW((void)drawpoint::stage("", [](SampleView&) {}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_recipe_owns_what_it_was_composed_of) {
    std::optional<Recipe> recipe;
    {
        auto source = counting();
        recipe = source | Doubled{};
    }
    const Recipe copy = *recipe;
    recipe.reset();
    MadeSample sample{copy};
    sample.fill({.index = 4});
    BOOST_TEST(sample.floats()[0] == 8);
}

BOOST_AUTO_TEST_CASE(a_shared_source_is_shared) {
    const auto source = std::make_shared<const FunctionRows>(counting());
    const Recipe recipe = source | Doubled{};
    BOOST_TEST(source.use_count() == 2);
}

BOOST_AUTO_TEST_CASE(values_of_another_type_are_not_floats) {
    const auto bytes =
        from_function(1, {ScalarType::uint8, 1, {4}}, "bytes", [](SampleView& sample) { (void)sample.floats(); });
    MadeSample sample{bytes};
    BOOST_CHECK_THROW(sample.fill(), std::logic_error);
}

BOOST_AUTO_TEST_SUITE_END()
