// Compares what the original's profilers sent to a logger, during and after training, with ours for the same fit.

#include <drawpoint/loop/profilers/fastxtend.hpp>

#include <cmath>
#include <map>

#include <boost/test/unit_test.hpp>

#include "golden/fastxtend_cases.hpp"
#include "golden/replay.hpp"
#include "golden/replays.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

struct Point {
    std::uint64_t step;
    std::map<std::string, double> values;
};

class Notebook final : public Logger {
public:
    std::vector<Point> points;
    std::vector<std::pair<std::string, std::vector<double>>> summaries;
    std::vector<std::pair<std::string, std::size_t>> tables;

    void log_scalars(std::span<const Scalar> scalars, std::uint64_t step) override {
        Point point{step, {}};
        for (const Scalar& scalar : scalars)
            point.values.emplace(scalar.name, scalar.value);
        points.push_back(std::move(point));
    }
    void log_summary(std::string_view name, std::span<const double> values) override {
        summaries.emplace_back(name, std::vector<double>{values.begin(), values.end()});
    }
    void log_table(std::string_view name, const LogTable& table) override {
        tables.emplace_back(name, table.rows.size());
    }
};

std::map<std::string, double> values_of(const Json& object) {
    std::map<std::string, double> values;
    for (const auto& [name, value] : object.items())
        if (!value.is_string())   // it is a table
            values.emplace(name, golden::number(value));
    return values;
}

/// The recorded live values with their steps: only newly computed ones, not those that 0.1.7 sent repeatedly.
std::vector<Point> points_of(const Json& log) {
    std::vector<Point> points;
    bool computed = false;
    for (const Json& entry : log) {
        const std::string kind = entry.at(0);
        if (kind == "log" && entry.at(2).is_number()) {
            points.push_back({entry.at(2).get<std::uint64_t>(), values_of(entry.at(1))});
        } else if (kind == "_log_dict") {
            computed = true;
        } else if (kind == "logger" && computed) {
            points.push_back({entry.at(1).at("train_iter").get<std::uint64_t>(), values_of(entry.at(2))});
            computed = false;
        }
    }
    return points;
}

void check_close(double ours, double theirs) {
    BOOST_TEST(std::abs(ours - theirs) <= 1e-9 * std::abs(theirs), ours << " is not " << theirs);
}

FastxtendSettings settings_of(const Json& input, Logger& logger) {
    FastxtendSettings settings{.show_report = false, .logger = &logger};
    settings.rolling_average = input.at("options").at("rolling_average").get<std::size_t>();
    settings.drop_first_batch = input.at("options").at("drop_first_batch").get<bool>();
    return settings;
}

void run(golden::Replay& replay) {
    replay.run();
    if (replay.escaped)
        std::rethrow_exception(replay.escaped);
}

/// A fit with a log, and the profile mode of its group's version.
struct Logged {
    golden::Case one;
    ProfileMode mode;
};

std::vector<Logged> logged_cases() {
    std::vector<Logged> all;
    for (const char* group : {"g2_fastxtend", "g2_fastxtend_seed001_v0.0.19", "g2_fastxtend_seed000_v0.1"})
        for (golden::Case& one : golden::cases(group)) {
            if (!one.output.contains("log") || one.output.at("log").empty())
                continue;   // recorded without a logger, or in Simple mode of 0.1, which stopped at its first batch
            const ProfileMode mode = golden::mode_of(one);
            const bool old = mode == ProfileMode::simple && std::string_view{group}.ends_with("v0.0.19");
            all.push_back({std::move(one), old ? ProfileMode::simple_old : mode});
        }
    if (all.empty())
        throw std::runtime_error("no golden fit has a log");
    return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_fastxtend_log)

BOOST_AUTO_TEST_CASE(live_values_are_those_of_the_original_at_its_log_points_and_each_is_sent_once) {
    golden::Replays replays{"golden_fastxtend_log"};
    for (const auto& [one, mode] : logged_cases())
        replays(one.path, [&] {
            golden::Replay replay{one.input};
            Notebook notebook;
            FastxtendCallback profiler{replay.recorder, mode, settings_of(one.input, notebook)};
            replay.callbacks.add(profiler);
            run(replay);
            const auto theirs = points_of(one.output.at("log"));
            BOOST_TEST(!theirs.empty());
            BOOST_REQUIRE_EQUAL(notebook.points.size(), theirs.size());
            for (std::size_t i = 0; i < theirs.size(); ++i) {
                BOOST_TEST(notebook.points[i].step == theirs[i].step);
                BOOST_REQUIRE_EQUAL(notebook.points[i].values.size(), theirs[i].values.size());
                for (const auto& [name, value] : theirs[i].values)
                    check_close(notebook.points[i].values.at(name), value);
            }
        });
}

BOOST_AUTO_TEST_CASE(the_final_log_has_the_originals_summaries_in_order_but_each_pass_its_own_durations) {
    golden::Replays replays{"golden_fastxtend_log"};
    for (const auto& [one, mode] : logged_cases())
        replays(one.path, [&] {
            if (mode == ProfileMode::simple_old || one.failed())
                return;   // without summaries, at which 0.1 failed
            golden::Replay replay{one.input};
            Notebook notebook;
            FastxtendCallback profiler{replay.recorder, mode, settings_of(one.input, notebook)};
            replay.callbacks.add(profiler);
            run(replay);
            std::size_t at = 0;
            for (const Json& entry : one.output.at("log")) {
                if (entry.at(0) != "summary")
                    continue;
                const std::string name = entry.at(1);
                BOOST_REQUIRE_LT(at, notebook.summaries.size());
                const auto& [our_name, ours] = notebook.summaries[at++];
                BOOST_TEST_CONTEXT(name) {
                    BOOST_TEST(our_name == name);
                    std::vector<double> theirs = entry.at(2).get<std::vector<double>>();
                    // The original reports the fit's duration for each of these.
                    if (name.starts_with("fit/") && name.ends_with("_duration"))
                        theirs = golden::numbers(one.output.at("raw_values"), name.substr(4, name.size() - 13));
                    BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
                    for (std::size_t i = 0; i < theirs.size(); ++i)
                        check_close(ours[i], theirs[i]);
                }
            }
            BOOST_TEST(at == notebook.summaries.size());
        });
}

BOOST_AUTO_TEST_CASE(the_final_log_has_the_report_and_the_results_as_tables) {
    golden::Replays replays{"golden_fastxtend_log"};
    for (const auto& [one, mode] : logged_cases())
        replays(one.path, [&] {
            golden::Replay replay{one.input};
            Notebook notebook;
            FastxtendCallback profiler{replay.recorder, mode, settings_of(one.input, notebook)};
            replay.callbacks.add(profiler);
            run(replay);
            const std::string old = mode == ProfileMode::simple_old ? "simple_" : "";
            BOOST_REQUIRE_EQUAL(notebook.tables.size(), 2u);
            BOOST_TEST(notebook.tables[0].first == old + "profile_report");
            BOOST_TEST(notebook.tables[1].first == old + "profile_results");
            for (const Json& entry : one.output.at("log"))
                if (entry.at(0) == "table") {
                    const bool report = entry.at(1) == "profile_report";
                    BOOST_TEST(notebook.tables[report ? 0 : 1].second == entry.at(2).get<std::size_t>());
                }
        });
}

BOOST_AUTO_TEST_CASE(the_report_after_a_fit_is_the_originals_and_so_is_its_csv) {
    golden::Replays replays{"golden_fastxtend_log"};
    for (const golden::Case& one : golden::cases("g2_fastxtend"))
        if (one.output.contains("log"))
            replays(one.path, [&] {
                golden::Replay replay{one.input};
                FastxtendSettings settings{.show_report = false};
                settings.drop_first_batch = golden::drops_first_batch(one);
                FastxtendCallback profiler{replay.recorder, golden::mode_of(one), settings};
                replay.callbacks.add(profiler);
                run(replay);
                BOOST_REQUIRE(profiler.report().has_value());
                BOOST_TEST(to_plain(*profiler.report()) == one.plain.value_or(to_plain(*profiler.report())));
                BOOST_TEST(to_csv(*profiler.report()) == one.csv.value_or(to_csv(*profiler.report())));
            });
}

BOOST_AUTO_TEST_SUITE_END()
