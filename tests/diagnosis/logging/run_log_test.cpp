#include <drawpoint/diagnosis/logging/run_log.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/facts.hpp>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

/// Keeps what it is given.
class Kept final : public Logger {
public:
    struct Point {
        std::uint64_t step = 0;
        std::optional<double> time_s;
        std::map<std::string, double> scalars;
    };
    std::vector<Point> points;
    std::map<std::string, std::string> settings, texts;
    std::map<std::string, std::size_t> summaries;
    std::set<std::string, std::less<>> metrics;

    void log_scalars(std::span<const Scalar> scalars, std::uint64_t step) override {
        Point& point = points.emplace_back(Point{step, time_s_, {}});
        for (const Scalar& scalar : scalars)
            point.scalars[std::string{scalar.name}] = scalar.value;
    }
    void log_summary(std::string_view name, std::span<const double> values) override {
        summaries[std::string{name}] = values.size();
    }
    void log_table(std::string_view, const LogTable&) override {}
    void log_text(std::string_view name, std::string_view text) override { texts[std::string{name}] = text; }
    void log_settings(std::span<const LogSetting> all, std::span<const std::string_view> names) override {
        metrics.insert(names.begin(), names.end());
        for (const LogSetting& setting : all)
            settings[std::string{setting.name}] = setting.value;
    }
    [[nodiscard]] RunEnd end() const noexcept { return end_; }
};

/// Three training steps with a draw of 30 ns and a batch of 70 ns each.
Ledger three_steps() {
    test::DrawnLedger drawn;
    for (std::uint32_t i = 0; i < 3; ++i)
        drawn.step(i, 1000 + 100 * std::int64_t{i}, {{Span::starved, 30}, {Span::forward, 70}}).loss = 0.5 * i;
    drawn.ledger.passes.push_back({.kind = PassKind::train, .begin_ns = 1000, .end_ns = 1300});
    drawn.ledger.sort();
    return drawn.ledger;
}

Kept logged(const Ledger& ledger) {
    Kept kept;
    RunLogger{kept}.finish(ledger, summarize(ledger), nullptr);
    return kept;
}

BOOST_AUTO_TEST_SUITE(run_log)

BOOST_AUTO_TEST_CASE(each_step_is_logged_when_it_ended_and_the_report_after_it) {
    Ledger ledger = three_steps();
    ledger.set_fact(facts::unix_offset_ns, "2000000000");
    ledger.set_fact("option.data", "ph\xf6tos");
    const Kept kept = logged(ledger);
    BOOST_REQUIRE(kept.points.size() == 4u);
    for (std::size_t i = 0; i < 3; ++i) {
        const Kept::Point& point = kept.points[i];
        BOOST_TEST(point.step == i + 1);
        BOOST_TEST(point.time_s.value() == 2 + static_cast<double>(1100 + 100 * i) / 1e9,
                   boost::test_tools::tolerance(1e-12));
        BOOST_TEST(point.scalars.at("drawpoint/draw_s") == 30e-9, boost::test_tools::tolerance(1e-12));
        BOOST_TEST(point.scalars.at("drawpoint/step_s") == 100e-9, boost::test_tools::tolerance(1e-12));
        BOOST_TEST(point.scalars.at("drawpoint/draw_share") == 0.3, boost::test_tools::tolerance(1e-12));
        BOOST_TEST(point.scalars.at("drawpoint/loss") == 0.5 * static_cast<double>(i));
    }
    BOOST_TEST(kept.points[3].scalars.at("report/wall_s") == summarize(ledger).run.wall_s);
    BOOST_TEST(kept.summaries.at("drawpoint/draws_s") == 3u);
    BOOST_TEST(kept.settings.at("data") == "ph\\xf6tos");   // trackers take nothing but UTF-8
    BOOST_TEST(kept.texts.contains("drawpoint/report"));
}

BOOST_AUTO_TEST_CASE(a_run_that_trains_is_logged_step_by_step) {
    Ledger ledger = three_steps();
    ledger.set_fact("option.data", "photos");
    const auto steps_of = [](const Kept& kept) {
        std::vector<std::uint64_t> all;
        for (const Kept::Point& point : kept.points)
            if (point.scalars.contains("drawpoint/step_s"))
                all.push_back(point.step);
        return all;
    };
    Kept kept;
    RunLogger log{kept};
    Ledger begun = ledger;
    begun.steps.clear();
    log.update(begun);
    BOOST_TEST(kept.settings.empty());   // which may not be known yet
    begun = ledger;
    begun.steps.resize(1);
    log.update(begun);
    log.update(begun);
    BOOST_TEST(steps_of(kept) == std::vector<std::uint64_t>{1}, boost::test_tools::per_element());
    BOOST_TEST(kept.settings.at("data") == "photos");
    BOOST_TEST(!kept.settings.contains("digest"));
    Ledger later = ledger;   // the first step is among those of which only totals are kept
    later.steps.erase(later.steps.begin());
    FoldedAction folded{.phase = Phase::train, .action = Action::step, .durations = {}, .rates = 0};
    folded.durations.add(100, 1);
    later.folded.steps = 1;
    later.folded.actions = {folded};
    log.update(later);
    BOOST_TEST(steps_of(kept) == (std::vector<std::uint64_t>{1, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST(kept.points.back().time_s.has_value() == false);   // which the recording does not say
    ledger.set_fact(facts::digest, "abc");
    log.finish(ledger, summarize(ledger), nullptr);
    BOOST_TEST(steps_of(kept) == (std::vector<std::uint64_t>{1, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST(kept.summaries.at("drawpoint/draws_s") == 3u);
    BOOST_TEST(kept.settings.at("digest") == "abc");
    BOOST_TEST(kept.points.back().step == 3u);
    for (const auto& [name, value] : kept.points.back().scalars)
        BOOST_TEST(kept.metrics.contains(name), name);
}

BOOST_AUTO_TEST_CASE(steps_of_which_only_totals_are_kept_count) {
    Ledger ledger = three_steps();
    FoldedAction folded{.phase = Phase::train, .action = Action::step, .durations = {}, .rates = 0};
    folded.durations.add(100, 7);
    FoldedAction other{.phase = Phase::valid, .action = Action::step, .durations = {}, .rates = 0};
    other.durations.add(100, 5);
    ledger.folded.steps = 12;
    ledger.folded.actions = {folded, other};
    BOOST_TEST(logged(ledger).points.front().step == 8u);
}

BOOST_AUTO_TEST_CASE(how_the_run_ended_is_what_the_recording_says) {
    Ledger ledger = three_steps();
    BOOST_TEST((logged(ledger).end() == RunEnd::finished));
    for (const auto& [stopped, end] : std::vector<std::pair<std::string, RunEnd>>{{"--steps 3", RunEnd::finished},
                                                                                  {"SIGTERM", RunEnd::killed},
                                                                                  {"Ctrl-C", RunEnd::killed},
                                                                                  {"error: no file", RunEnd::failed}}) {
        ledger.set_fact(facts::stopped, stopped);
        BOOST_TEST((logged(ledger).end() == end), stopped);
    }
    ledger.passes.front().ended = false;
    BOOST_TEST((logged(ledger).end() == RunEnd::killed));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
