#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "cli/top/screen_line.hpp"
#include "cli/top/top_frame.hpp"
#include "cli/top/top_view.hpp"
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

namespace {

using namespace drawpoint;
using namespace drawpoint::cli;

Ledger kept_run() { return read_trace(DRAWPOINT_KEPT_RUN).ledger; }

TopView view_of(const Ledger& ledger, TopView::State state = TopView::State::running) {
    TopView view = top_view(ledger, 0);
    view.state = state;
    view.diagnosis = top_diagnosis(ledger, diagnose(ledger, {.most_samples = 100'000}));
    view.rates = {10, 20, 15};
    return view;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines(1);
    for (const char c : text)
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    return lines;
}

/// Without the codes for colours.
std::string plain(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\x1b')
            i = text.find('m', i);
        else
            out += text[i];
    return out;
}

constexpr std::array pages{TopPage::run,     TopPage::draws,   TopPage::workers,
                           TopPage::samples, TopPage::verdict, TopPage::help};

BOOST_AUTO_TEST_SUITE(top_frame)

BOOST_AUTO_TEST_CASE(no_line_is_wider_and_no_frame_higher_than_the_screen) {
    Ledger odd = kept_run();
    odd.set_fact(std::string{facts::option_prefix} + "data", "写真\x1b[31m" + std::string(200, 'x'));
    odd.pipelines.front().stages.front() = "デコード\n" + std::string(90, 'y');
    for (const Ledger& ledger : {kept_run(), odd, Ledger{}})
        for (const TopPage page : pages)
            for (const std::size_t width : {1u, 7u, 20u, 33u, 80u, 100u, 160u, 400u})
                for (const std::size_t height : {1u, 3u, 10u, 24u, 50u}) {
                    const TopView view = view_of(ledger);
                    const std::string text = frame_text(view, {.width = width, .height = height, .page = page});
                    const auto lines = lines_of(text);
                    BOOST_TEST(lines.size() == height);
                    for (const std::string& line : lines) {
                        BOOST_TEST(columns_of(line) <= width, line);
                        BOOST_TEST(line.find('\x1b') == line.npos, line);
                    }
                    const TopFrame coloured{.width = width, .height = height, .colour = true, .page = page};
                    BOOST_TEST(plain(frame_text(view, coloured)) == text);
                }
}

BOOST_AUTO_TEST_CASE(its_numbers_are_those_of_the_report_and_the_diagnosis) {
    const Ledger ledger = kept_run();
    const TopView view = view_of(ledger);
    const Summary report = summarize(ledger);
    BOOST_TEST((view.run == report));
    const std::string run = frame_text(view, {.width = 160, .height = 50});
    const auto contains = [](const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    };
    char share[32];
    std::snprintf(share, sizeof share, "mean %.1f %%", 100 * report.headroom.draw_share.value());
    BOOST_TEST(contains(run, share), run);
    BOOST_TEST(contains(run, std::string{to_string(view.diagnosis->diagnosis.verdict)}), run);
    const std::string draws = frame_text(view, {.width = 160, .height = 60, .page = TopPage::draws});
    for (const SummaryRow& row : report.rows)
        BOOST_TEST(contains(draws, format_duration(row.p99_s)), name_of(row.action));
    const std::string workers = frame_text(view, {.width = 160, .height = 60, .page = TopPage::workers});
    for (const StageSummary& stage : report.stages)
        BOOST_TEST(contains(workers, format_duration(stage.p99_s)), stage.stage);
    const std::string verdict = frame_text(view, {.width = 160, .height = 60, .page = TopPage::verdict});
    for (const std::string& sentence : view.diagnosis->diagnosis.evidence)
        BOOST_TEST(contains(verdict, sentence), verdict);
}

BOOST_AUTO_TEST_CASE(each_workers_time_is_divided_and_causes_sum_to_the_draws_of_the_window) {
    const Ledger ledger = kept_run();
    const TopView view = view_of(ledger);
    BOOST_REQUIRE(!view.workers.empty());
    for (const WorkerBlame& worker : view.workers)
        BOOST_TEST(worker.stages_ns.size() == view.stages.size());
    double causes = 0;
    for (const auto& [name, seconds] : view.causes)
        causes += seconds;
    BOOST_TEST(causes == view.now.headroom.draw_s, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(what_distrusts_a_run_and_how_it_ended_stand_on_every_page) {
    TopView view = view_of(kept_run(), TopView::State::cut);
    view.diagnosis->diagnosis.trust.trusted = false;
    view.earlier_s = 10;
    for (const TopPage page : pages) {
        const std::string text = frame_text(view, {.page = page});
        for (const std::string_view part : {"DISTRUST", "10 s earlier", "ended without its last records"})
            BOOST_TEST(text.find(part) != text.npos, text);
    }
    BOOST_TEST(line_text(view).find("DISTRUST") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_earlier_moment_is_shown_as_far_back_as_rows_are_kept) {
    const Ledger ledger = kept_run();
    const TopView now = top_view(ledger, 0);
    BOOST_TEST(!now.earlier_s);
    const double step_s = now.run.run.wall_s / static_cast<double>(now.run.run.steps);
    const TopView earlier = top_view(ledger, static_cast<std::int64_t>(1e9 * now.run.run.wall_s / 2));
    BOOST_REQUIRE(earlier.earlier_s);
    BOOST_TEST(*earlier.earlier_s > 0);
    BOOST_TEST((earlier.run == now.run));
    BOOST_TEST(earlier.now.run.steps < now.run.run.steps);
    const TopView first = top_view(ledger, std::int64_t{1} << 60);
    BOOST_TEST(first.earlier_s.value() <= now.run.run.wall_s + step_s);
    BOOST_TEST(first.now.run.steps >= 1u);
}

BOOST_AUTO_TEST_CASE(rates_are_thinned_and_stay_true) {
    TopRates rates;
    for (std::int64_t second = 0; second <= 100'000; ++second)
        rates.add(second * 1'000'000'000, static_cast<std::uint64_t>(second) * 50);
    BOOST_TEST(rates.rates().size() <= 512u);
    BOOST_TEST(rates.rates().size() >= 128u);
    for (const double rate : rates.rates())
        BOOST_TEST(rate == 50.0, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(rates.span_s() > 99'000);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
