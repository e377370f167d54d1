#include <drawpoint/loop/profilers/fastxtend.hpp>

#include <sstream>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <drawpoint/loop/cancel.hpp>
#include "support/temporary_folder.hpp"
#include "loop/profilers/small_fit.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

class Steps final : public Logger {
public:
    std::vector<std::uint64_t> steps;
    std::vector<std::vector<std::pair<std::string, double>>> values;
    std::vector<std::string> summaries, tables;
    void log_scalars(std::span<const Scalar> scalars, std::uint64_t step) override {
        steps.push_back(step);
        auto& point = values.emplace_back();
        for (const Scalar& scalar : scalars)
            point.emplace_back(scalar.name, scalar.value);
    }
    void log_summary(std::string_view name, std::span<const double>) override { summaries.emplace_back(name); }
    void log_table(std::string_view name, const LogTable&) override { tables.emplace_back(name); }
};

std::size_t calls_of(const FastxtendReport& report, std::string_view phase, std::string_view action) {
    for (const FastxtendRow& row : report.rows)
        if (row.phase == phase && row.action == action)
            return row.calls;
    return 0;
}

bool is_attached(const CallbackList& callbacks) { return !callbacks.of(Event::after_fit).empty(); }

}   // namespace

BOOST_AUTO_TEST_SUITE(fastxtend_callback)

BOOST_AUTO_TEST_CASE(after_a_fit_it_prints_the_report_of_the_ledger_and_leaves) {
    SmallFit fit{2, 3};
    std::ostringstream out;
    SimpleProfilerCallback profiler{fit.recorder, {.out = &out}};
    fit.callbacks.add(profiler);
    fit.run();
    const auto from_ledger = fastxtend_report(fastxtend_values(fit.recorder.ledger()), ProfileMode::simple);
    BOOST_TEST(out.str() == to_plain(from_ledger));
    BOOST_TEST(!is_attached(fit.callbacks));
    BOOST_TEST(profiler.profile_report().rows.size() == 17u);
    BOOST_TEST(profiler.profile_results().rows.size() == 17u);
    BOOST_TEST((profiler.profile_results().rows == raw_cells(from_ledger)));
}

BOOST_AUTO_TEST_CASE(markdown_wins_over_plain_and_an_unshown_report_prints_nothing) {
    for (const bool show : {true, false}) {
        SmallFit fit{1, 2};
        std::ostringstream out;
        ThroughputCallback profiler{fit.recorder, {.show_report = show, .plain = true, .markdown = true, .out = &out}};
        fit.callbacks.add(profiler);
        fit.run();
        BOOST_TEST(out.str() == (show ? to_markdown(*profiler.report()) : ""));
    }
}

BOOST_AUTO_TEST_CASE(an_exception_that_leaves_the_fit_takes_it_off_the_list_too) {
    SmallFit fit{1, 3};
    SimpleProfilerCallback profiler{fit.recorder};
    At thrower{Event::after_loss, [](LoopState&) { throw std::runtime_error("broken"); }};
    fit.callbacks.add(profiler);
    fit.callbacks.add(thrower);
    BOOST_CHECK_THROW(fit.run(), std::runtime_error);
    BOOST_TEST(!is_attached(fit.callbacks));
    BOOST_TEST(!profiler.report().has_value());
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_from_one_fit_to_the_next) {
    SmallFit fit{1, 3};
    Steps steps;
    ThroughputCallback profiler{fit.recorder, {.show_report = false, .rolling_average = 2, .logger = &steps}};
    for (int i = 0; i < 2; ++i) {
        fit.callbacks.add(profiler);
        fit.run();
        BOOST_TEST(calls_of(*profiler.report(), "fit", "epoch") == 1u);
        BOOST_TEST(calls_of(*profiler.report(), "train", "draw") == 2u);   // 3 draws, the first one dropped
        BOOST_TEST(steps.steps.empty());   // a counter that is not reset would reach a log point in the second fit
    }
}

BOOST_AUTO_TEST_CASE(log_points_are_batches_12_22_32_and_one_earlier_if_none_is_dropped) {
    for (const bool drop : {true, false}) {
        SmallFit fit{2, 17};
        Steps steps;
        ThroughputCallback profiler{fit.recorder, {.show_report = false, .drop_first_batch = drop, .logger = &steps}};
        fit.callbacks.add(profiler);
        fit.run();
        const std::vector<std::uint64_t> expected =
            drop ? std::vector<std::uint64_t>{12, 22, 32} : std::vector<std::uint64_t>{11, 21, 31};
        BOOST_TEST(steps.steps == expected, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_live_value_is_a_ratio_of_means_where_the_report_is_a_mean_of_ratios) {
    FastxtendLiveLog live{ProfileMode::throughput, 2, false};
    BOOST_TEST(live.add({.size = 10, .draw = 1, .batch = 1}).empty());
    BOOST_TEST(live.add({.size = 10, .draw = 1, .batch = 1}).empty());
    const auto values = live.add({.size = 40, .draw = 1, .batch = 3});   // together with the step before
    BOOST_REQUIRE_EQUAL(values.size(), 3u);
    BOOST_TEST(values[0].name == "throughput/step");
    BOOST_TEST(values[0].value == 25.0 / 3);   // the mean of the ratios is 7.5
    BOOST_TEST(values[1].value == 25.0 / 3 - 25.0 / 2);
    BOOST_TEST(values[2].value == 25.0 / 2);
}

BOOST_AUTO_TEST_CASE(a_live_value_is_over_the_batches_that_have_the_action) {
    FastxtendLiveLog live{ProfileMode::simple, 2, false};
    const FastxtendBatch accumulated{.size = 10, .draw = 1, .batch = 1, .forward = 1, .loss = 1, .backward = 1};
    FastxtendBatch stepped = accumulated;
    stepped.opt_step = 2;
    static_cast<void>(live.add(accumulated));
    static_cast<void>(live.add(stepped));
    const auto values = live.add(accumulated);
    const auto find = [&](std::string_view name) { return std::ranges::find(values, name, &FastxtendLogValue::name); };
    BOOST_REQUIRE(find("throughput/opt_step") != values.end());
    BOOST_TEST(find("throughput/opt_step")->value == 5.0);
    BOOST_TEST((find("throughput/zero_grad") == values.end()));
}

BOOST_AUTO_TEST_CASE(the_old_version_logs_every_training_batch_by_itself_unless_told_not_to) {
    for (const bool rates : {true, false}) {
        SmallFit fit{1, 3};
        Steps steps;
        FastxtendCallback profiler{fit.recorder,
                                   ProfileMode::simple_old,
                                   {.show_report = false, .samples_per_second = rates, .logger = &steps}};
        fit.callbacks.add(profiler);
        fit.run();
        BOOST_TEST(steps.steps.size() == (rates ? 3u : 0u));
        BOOST_TEST(steps.summaries.empty());
        BOOST_REQUIRE_EQUAL(steps.tables.size(), 2u);
        BOOST_TEST(steps.tables[0] == "simple_profile_report");
        if (rates)
            BOOST_TEST(steps.values[0].size() == 6u);   // without step and zero_grad
    }
}

BOOST_AUTO_TEST_CASE(a_trial_fit_shows_and_logs_nothing_and_leaves_it_attached) {
    SmallFit fit{1, 30};
    Steps steps;
    std::ostringstream out;
    SimpleProfilerCallback profiler{fit.recorder, {.trial_fit = true, .logger = &steps, .out = &out}};
    fit.callbacks.add(profiler);
    fit.run();
    BOOST_TEST(out.str().empty());
    BOOST_TEST(steps.steps.empty());
    BOOST_TEST(steps.tables.empty());
    BOOST_TEST(is_attached(fit.callbacks));
    BOOST_TEST(profiler.report().has_value());
}

BOOST_AUTO_TEST_CASE(a_validation_alone_is_none_of_its_business) {
    SmallFit fit{1, 1};
    Steps steps;
    SimpleProfilerCallback profiler{fit.recorder, {.rolling_average = 1, .drop_first_batch = false, .logger = &steps}};
    fit.callbacks.add(profiler);
    run_alone(validate(fit.learner, fit.valid, fit.callbacks, fit.recorder));
    BOOST_TEST(steps.steps.empty());
    BOOST_TEST(!profiler.report().has_value());
    BOOST_TEST(is_attached(fit.callbacks));
}

BOOST_AUTO_TEST_CASE(a_fit_cancelled_amid_a_batch_and_accumulated_steps_have_their_report) {
    SmallFit fit{1, 6};
    std::ostringstream out;
    SimpleProfilerCallback profiler{fit.recorder, {.out = &out}};
    std::size_t batch = 0;
    At accumulate{Event::after_backward, [&](LoopState&) {
                      if (++batch % 2 == 1)
                          throw CancelBatch{};
                  }};
    At stop{Event::after_batch, [](LoopState& state) {
                if (state.batch == 4)
                    throw CancelFit{};
            }};
    fit.callbacks.add(profiler);
    fit.callbacks.add(accumulate);
    fit.callbacks.add(stop);
    fit.run();
    BOOST_TEST(calls_of(*profiler.report(), "train", "draw") == 3u);   // 4 whole steps, the first one dropped
    BOOST_TEST(calls_of(*profiler.report(), "train", "opt_step") == 2u);
    BOOST_TEST(!out.str().empty());
}

BOOST_AUTO_TEST_CASE(the_csv_has_its_default_name_and_its_folder_is_made) {
    const TemporaryFolder folder;
    SmallFit fit{1, 2};
    ThroughputCallback throughput{fit.recorder, {.show_report = false, .save_csv = true, .path = folder / "a/b"}};
    SimpleProfilerCallback simple{fit.recorder, {.show_report = false, .save_csv = true, .path = folder / "a/b"}};
    FastxtendCallback old{
        fit.recorder, ProfileMode::simple_old, {.show_report = false, .save_csv = true, .path = folder / "a/b"}};
    fit.callbacks.add(throughput);
    fit.callbacks.add(simple);
    fit.callbacks.add(old);
    fit.run();
    BOOST_TEST(bytes_in(folder / "a/b/throughput.csv") == to_csv(*throughput.report()));
    BOOST_TEST(bytes_in(folder / "a/b/simpleprofiler.csv") == to_csv(*simple.report()));
    BOOST_TEST(bytes_in(folder / "a/b/simple_profile.csv") == to_csv(*old.report()));
    const ThroughputCallback named{fit.recorder, {.path = "p", .csv_name = "mine.csv"}};
    BOOST_TEST(named.csv_path() == std::filesystem::path{"p/mine.csv"});
}

BOOST_AUTO_TEST_CASE(a_csv_that_cannot_be_written_is_told_and_the_fit_ends_well) {
    SmallFit fit{1, 2};
    std::ostringstream out;
    ThroughputCallback profiler{fit.recorder,
                                {.show_report = false, .save_csv = true, .path = "/dev/full/x", .out = &out}};
    fit.callbacks.add(profiler);
    fit.run();
    BOOST_TEST(profiler.error().find("/dev/full") != std::string::npos);
    BOOST_TEST(out.str().find(profiler.error()) != std::string::npos);
    BOOST_TEST(profiler.report().has_value());
}

BOOST_AUTO_TEST_CASE(a_mode_is_known_by_its_name) {
    BOOST_TEST((profile_mode_named("throughput") == ProfileMode::throughput));
    BOOST_TEST((profile_mode_named("simple") == ProfileMode::simple));
    BOOST_CHECK_EXCEPTION(static_cast<void>(profile_mode_named("fast")), std::invalid_argument,
                          [](const std::invalid_argument& error) {
                              return std::string_view{error.what()}.find("fast") != std::string_view::npos;
                          });
}

BOOST_AUTO_TEST_SUITE_END()
