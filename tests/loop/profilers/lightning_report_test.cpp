#include <drawpoint/instrumentation/report/lightning.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include "loop/profilers/small_fit.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

std::int64_t self_of(const ActionNode& node) {
    return std::accumulate(node.children.begin(), node.children.end(), node.self_ns,
                           [](std::int64_t sum, const ActionNode& child) { return sum + self_of(child); });
}

const ActionNode& find(const ActionNode& node, std::string_view path) {
    const std::size_t slash = path.find('/');
    const auto child = std::ranges::find(node.children, path.substr(0, slash), &ActionNode::name);
    BOOST_REQUIRE(child != node.children.end());
    return slash == path.npos ? *child : find(*child, path.substr(slash + 1));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(lightning_report)

BOOST_AUTO_TEST_CASE(a_number_has_five_digits_and_a_point_as_python_writes_it) {
    using Row = std::pair<double, const char*>;
    for (const auto& [value, text] :
         {Row{0, "0.0"}, Row{1, "1.0"}, Row{3600, "3600.0"}, Row{10000, "1e+04"}, Row{12345.65, "1.2346e+04"},
          Row{0.0012345678, "0.0012346"}, Row{1e-5, "1e-05"}, Row{9999.96, "1e+04"}, Row{-0.5, "-0.5"},
          Row{std::numeric_limits<double>::quiet_NaN(), "nan"}, Row{1e100, "1e+100"}})
        BOOST_TEST(lightning_number(value) == text);
}

BOOST_AUTO_TEST_CASE(hannahs_table_is_laid_out_as_its_page_shows) {
    const LightningProfile profile{.stage = "fit",
                                   .total_s = 29.42,
                                   .actions = {{"on_before_accelerator_backend_setup", 1, 1.1859e-05},
                                               {"[_TrainingEpochLoop].train_dataloader_next", 288, 6.4087},
                                               {"run_training_epoch", 1, 21.692}}};
    std::istringstream text{to_lightning(profile, {.extended = true, .hannah = true})};
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
        lines.push_back(line);
    const std::vector<std::string> expected{"Action                             \t|  Mean duration (s)\t|Num calls     "
                                            " \t|  Total time (s) \t|  Percentage %   \t|",
                                            std::string(132, '-'),
                                            "Total                              \t|  -              \t|_              "
                                            "\t|  29.42          \t|  100 %          \t|",
                                            std::string(132, '-'),
                                            "run_training_epoch                 \t|  21.692         \t|1              "
                                            "\t|  21.692         \t|  73.732         \t|",
                                            "get_train_batch                    \t|  0.022252       \t|288            "
                                            "\t|  6.4087         \t|  21.783         \t|",
                                            "on_before_accelerator_backend_setup\t|  1.1859e-05     \t|1              "
                                            "\t|  1.1859e-05     \t|  4.0309e-05     \t|"};
    BOOST_TEST(lines == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_profile_of_no_time_has_no_shares) {
    const LightningProfile profile{.stage = "", .total_s = 0, .actions = {{"a", 1, 0}}};
    BOOST_TEST(to_lightning(profile).find("|  a\t|  0.0            \t|  1              \t|  0.0            \t|  -  ") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(actions_of_no_known_length_stand_below_all_others) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const LightningProfile profile{
        .stage = "",
        .total_s = 10,
        .actions = {
            {"one", 1, 1}, {"unknown", 1, unknown}, {"three", 1, 3}, {"unknown too", 1, unknown}, {"two", 1, 2}}};
    for (const bool extended : {false, true}) {
        const std::string text = to_lightning(profile, {.extended = extended});
        std::size_t last = 0;
        for (const char* const name : {"|  three ", "|  two ", "|  one ", "|  unknown ", "|  unknown too"}) {
            const std::size_t at = text.find(name);
            BOOST_TEST((at != std::string::npos && at > last), name);
            last = at;
        }
    }
}

BOOST_AUTO_TEST_CASE(regions_of_user_code_are_actions_and_one_named_like_an_action_of_the_loop_is_that) {
    SmallFit fit{1, 2};
    At user{Event::before_batch, [&](LoopState& state) {
                if (!state.training.value_or(false))
                    return;
                const auto region = profile_region(fit.recorder, "augment");
                const auto known = profile_region(fit.recorder, "training_step");
                fit.clock.advance(5ms);
            }};
    fit.callbacks.add(user);
    fit.run();
    const LightningProfile profile = lightning_actions(fit.recorder.ledger());
    BOOST_TEST(profile.stage == "fit");
    const auto augment = std::ranges::find(profile.actions, "augment", &LightningAction::name);
    BOOST_REQUIRE(augment != profile.actions.end());
    BOOST_TEST(augment->calls == 2u);
    BOOST_TEST(augment->total_s == 0.01);
    const auto step = std::ranges::find(profile.actions, "training_step", &LightningAction::name);
    BOOST_REQUIRE(step != profile.actions.end());
    BOOST_TEST(step->calls == 2u);
    BOOST_TEST(step->total_s == 0.028);
}

BOOST_AUTO_TEST_CASE(in_a_tree_every_nanosecond_is_counted_once) {
    SmallFit fit{2, 3};
    fit.train.known_size = false;   // so one more draw finds the end
    fit.train.opening = 7ms;
    At between{Event::before_epoch, [&](LoopState&) { fit.clock.advance(11ms); }};
    fit.callbacks.add(between);
    fit.run();
    const Ledger ledger = fit.recorder.ledger();
    const auto trees = action_tree(ledger);
    BOOST_REQUIRE_EQUAL(trees.size(), 1u);
    BOOST_TEST(trees[0].name == "fit");
    BOOST_TEST(trees[0].total_ns == ledger.passes.at(0).end_ns - ledger.passes.at(0).begin_ns);
    BOOST_TEST(self_of(trees[0]) == trees[0].total_ns);
    BOOST_TEST(trees[0].self_ns == 0);   // its pieces cover it completely
    const ActionNode& step = find(trees[0], "epoch/train/step");
    BOOST_TEST(step.calls == 6u);
    BOOST_TEST(step.total_ns == 300'000'000);
    BOOST_TEST(find(step, "draw/starved").total_ns == 48'000'000);
    BOOST_TEST(find(step, "batch/backward").total_ns == 120'000'000);
    BOOST_TEST(find(trees[0], "epoch/before_epoch").total_ns == 22'000'000);
}

BOOST_AUTO_TEST_CASE(validation_stands_beside_training_in_its_epoch) {
    SmallFit fit{2, 3};
    fit.run();
    const auto trees = action_tree(fit.recorder.ledger());
    BOOST_REQUIRE_EQUAL(trees.size(), 1u);
    BOOST_TEST(find(trees[0], "epoch/valid").calls == 2u);
    BOOST_TEST(find(trees[0], "epoch/valid/step").calls == 4u);
    for (const char* const path : {"epoch", "epoch/train", "epoch/valid"})
        BOOST_TEST(find(trees[0], path).self_ns == 0, path);
}

BOOST_AUTO_TEST_CASE(a_threads_regions_are_a_tree_by_nesting) {
    ManualClock clock{1000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    for (int i = 0; i < 2; ++i) {
        const auto outer = profile_region(recorder, "outer");
        clock.advance(1ms);
        for (int j = 0; j < 2; ++j) {
            const auto inner = profile_region(recorder, "inner");
            clock.advance(2ms);
        }
    }
    const auto trees = action_tree(recorder.ledger());
    BOOST_REQUIRE_EQUAL(trees.size(), 1u);
    BOOST_TEST(trees[0].total_ns == 10'000'000);
    BOOST_TEST(trees[0].self_ns == 0);
    const ActionNode& outer = find(trees[0], "outer");
    BOOST_TEST(outer.calls == 2u);
    BOOST_TEST(outer.self_ns == 2'000'000);
    BOOST_TEST(find(outer, "inner").calls == 4u);
    BOOST_TEST(find(outer, "inner").self_ns == 8'000'000);
    const std::string text = action_tree_text(trees);
    BOOST_TEST(text.find("  outer") != std::string::npos);
    BOOST_TEST(text.find("80.00") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_steps_annotated_on_a_thread_are_one_line) {
    ManualClock clock{1000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    for (const std::string_view name : {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"}) {
        const auto step = profile_region(recorder, name);
        clock.advance(1ms);
    }
    const auto trees = action_tree(recorder.ledger());
    BOOST_REQUIRE_EQUAL(trees.size(), 1u);
    BOOST_REQUIRE_EQUAL(trees[0].children.size(), 1u);
    BOOST_TEST(find(trees[0], "ProfilerStep*").calls == 3u);
}

BOOST_AUTO_TEST_CASE(the_reports_of_a_folded_ledger_say_so) {
    Ledger ledger;
    ledger.passes = {{.kind = PassKind::epoch, .begin_ns = 0, .end_ns = 100, .ended = true, .spans = {}},
                     {.kind = PassKind::train, .begin_ns = 0, .end_ns = 100, .ended = true, .spans = {}}};
    const auto reports = [&] {
        const FastxtendReport report = fastxtend_report(fastxtend_values(ledger), ProfileMode::simple);
        return std::vector{to_plain(report), to_markdown(report), to_lightning(lightning_actions(ledger)),
                           to_lightning(lightning_actions(ledger), {.extended = true, .hannah = true})};
    };
    for (const std::string& text : reports())
        BOOST_TEST(text.find("folded") == std::string::npos);
    ledger.folded.steps = 7;
    ledger.passes[1].folded_ns = 60;
    for (const std::string& text : reports())
        BOOST_TEST(text.find("\n7 old steps folded") != std::string::npos);
    const auto trees = action_tree(ledger);
    BOOST_REQUIRE_EQUAL(trees.size(), 1u);
    BOOST_TEST(find(trees[0], "train/steps folded").total_ns == 60);
}

BOOST_AUTO_TEST_SUITE_END()
