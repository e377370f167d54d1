#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/tuner/tuning_report.hpp>

namespace {

using namespace drawpoint;

LoaderSetting setting(std::size_t workers, std::size_t depth) {
    return {.num_workers = workers, .prefetch_depth = depth, .batch_size = 8};
}

Tuning tuning() {
    return {.chosen = setting(2, 4),
            .batches_per_s = 205.5,
            .best_seen = 206.25,
            .steps_used = 400,
            .separated = true,
            .why = "the cheapest <within> 2 %",
            .log = {{.tried = setting(1, 4), .predicted = {100, 90, 110}, .decision = "not measured"},
                    {.tried = setting(2, 4),
                     .predicted = {200, 180, 220},
                     .measured = 205.5,
                     .blocks = 7,
                     .decision = "chosen"}}};
}

/// Keeps what it is told.
struct Log final : Logger {
    std::vector<std::string> settings, metrics, scalars;
    void log_scalars(std::span<const Scalar> all, std::uint64_t) override {
        for (const Scalar& scalar : all)
            scalars.emplace_back(scalar.name);
    }
    void log_summary(std::string_view, std::span<const double>) override {}
    void log_table(std::string_view, const LogTable&) override {}
    void log_settings(std::span<const LogSetting> all, std::span<const std::string_view> names) override {
        for (const LogSetting& one : all)
            settings.push_back(std::string{one.name} + "=" + std::string{one.value});
        metrics.assign(names.begin(), names.end());
    }
};

BOOST_AUTO_TEST_SUITE(tuning_report)

BOOST_AUTO_TEST_CASE(the_text_has_every_trial_and_the_chosen_options) {
    const std::string text = to_text(tuning());
    for (const char* const part : {"100 (90 - 110)", "205.5", "chosen", "--num-workers 2 --prefetch-depth 4 --order in",
                                   "best seen 206.2", "400 steps", "the cheapest <within> 2 %"})
        BOOST_TEST(text.find(part) != std::string::npos, part << " is missing in:\n" << text);
    BOOST_TEST(text.find('\x1b') == std::string::npos);
    BOOST_TEST(to_text(tuning(), {.colour = true}).find("\x1b[32mchosen") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_page_has_the_numbers_of_the_document) {
    const std::string page = to_html(tuning(), "Tuning on <photos>");
    for (const char* const part : {"Tuning on &lt;photos&gt;", "the cheapest &lt;within&gt; 2 %", "<svg",
                                   "value=\"205.5\"", "value=\"220\"", "2 workers, depth 4, in (chosen)"})
        BOOST_TEST(page.find(part) != std::string::npos, part << " is missing");
    const auto document = to_json(tuning(), {.version = "1", .command = "drawpoint tune"}, {});
    BOOST_TEST(document["schema"] == "drawpoint.tuning/1");
    BOOST_TEST(document["log"][0]["measured"].is_null());
    BOOST_TEST(document["log"][1]["measured"] == 205.5);
    BOOST_TEST(document["chosen"]["num_workers"] == 2);
}

BOOST_AUTO_TEST_CASE(a_trial_is_a_run_with_its_setting_and_what_was_measured_of_it) {
    Log first, second;
    log_trial(tuning().log[0], first);
    log_trial(tuning().log[1], second);
    BOOST_TEST(name_of(tuning().log[1]) == "2_workers_depth_4_order_in");
    BOOST_TEST((first.settings ==
                std::vector<std::string>{"num-workers=1", "prefetch-depth=4", "order=in", "decision=not measured"}));
    BOOST_TEST((first.scalars == std::vector<std::string>{"tune/predicted", "tune/low", "tune/high"}));
    BOOST_TEST(
        (second.scalars == std::vector<std::string>{"tune/predicted", "tune/low", "tune/high", "tune/measured"}));
    BOOST_TEST((second.metrics == second.scalars));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
