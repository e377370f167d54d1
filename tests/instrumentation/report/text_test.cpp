#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

#include "tests/instrumentation/report/hand_made.hpp"

namespace {

using namespace drawpoint;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

Summary whole_report() {
    Ledger ledger = hand_made::one_epoch();
    ledger.set_fact(std::string{facts::option_prefix} + "model", "small_cnn");
    ledger.set_fact(std::string{facts::option_prefix} + "data", "pictures\n\x1b[2J");
    ledger.set_fact(facts::machine_cpu, "A processor");
    ledger.set_fact(facts::clock, "tsc");
    for (std::uint16_t worker = 0; worker < 12; ++worker)
        ledger.samples.push_back({.slot = worker, .worker = worker, .begin_ns = ledger.steps.front().draw_begin_ns});
    ledger.dropped.push_back({.records = 7});
    Summary report = summarize(ledger);
    report.recording.file = "run.pftrace";
    return report;
}

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(durations_have_three_digits_and_a_fitting_unit) {
    BOOST_TEST(format_duration(0) == "0 s");
    BOOST_TEST(format_duration(9.1) == "9.10 s");
    BOOST_TEST(format_duration(12.345) == "12.3 s");
    BOOST_TEST(format_duration(0.0099996) == "10.0 ms");
    BOOST_TEST(format_duration(0.99999) == "1.00 s");
    BOOST_TEST(format_duration(456e-6) == "456 µs");
    BOOST_TEST(format_duration(7e-9) == "7 ns");
    BOOST_TEST(format_duration(-0.0012) == "-1.20 ms");
    BOOST_TEST(format_duration(123456) == "123,456 s");
}

BOOST_AUTO_TEST_CASE(counts_are_grouped_and_bytes_have_a_fitting_unit) {
    BOOST_TEST(format_count(0) == "0");
    BOOST_TEST(format_count(999) == "999");
    BOOST_TEST(format_count(-1000) == "-1,000");
    BOOST_TEST(format_count(1234567) == "1,234,567");
    BOOST_TEST(format_bytes(512) == "512 B");
    BOOST_TEST(format_bytes(19.31e6) == "19.3 MB");
    BOOST_TEST(format_bytes(999999) == "1.00 MB");
}

BOOST_AUTO_TEST_CASE(ordinals_have_the_ending_that_is_spoken) {
    BOOST_TEST(format_ordinal(1) == "1st");
    BOOST_TEST(format_ordinal(2) == "2nd");
    BOOST_TEST(format_ordinal(3) == "3rd");
    BOOST_TEST(format_ordinal(4) == "4th");
    BOOST_TEST(format_ordinal(10) == "10th");
    BOOST_TEST(format_ordinal(11) == "11th");
    BOOST_TEST(format_ordinal(12) == "12th");
    BOOST_TEST(format_ordinal(13) == "13th");
    BOOST_TEST(format_ordinal(21) == "21st");
    BOOST_TEST(format_ordinal(112) == "112th");
}

BOOST_AUTO_TEST_CASE(control_characters_and_broken_utf_8_are_written_out) {
    BOOST_TEST(printable("Lily Valley/bild ä.jpg") == "Lily Valley/bild ä.jpg");
    BOOST_TEST(printable("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
    BOOST_TEST(printable("\xff\xc3") == "\\xff\\xc3");
    BOOST_TEST(printable("\xc0\x8a") == "\\xc0\\x8a");   // an overlong encoding of a newline
    BOOST_TEST(printable("\xc2\x9b"
                         "31m") == "\\xc2\\x9b31m");              // the one-character form of escape [
    BOOST_TEST(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");   // right-to-left override
}

BOOST_AUTO_TEST_CASE(the_first_lines_say_what_the_run_was_and_what_drawing_cost) {
    const std::string report = to_text(whole_report());
    std::istringstream lines{report};
    std::string head, line;
    for (int i = 0; i < 8 && std::getline(lines, line); ++i)
        head += line + "\n";
    for (const std::string_view part :
         {"small_cnn on pictures\\n\\x1b[2J", "batch 4", "2 workers", "depth 3", "5 steps", "28 samples", "samples/s",
          "of wall", "starved", "handoff", "if the draw were free: ×1.0"})
        BOOST_TEST(contains(head, part), part << " is missing in:\n" << head);
    for (const std::string_view part : {"run.pftrace", "7 events DROPPED", "first batches (warm-up)", "tsc of the host",
                                        "A processor", "0 ns unaccounted"})
        BOOST_TEST(contains(report, part), part << " is missing in:\n" << report);
}

BOOST_AUTO_TEST_CASE(no_line_is_wider_than_a_terminal) {
    Summary report = whole_report();
    report.stages.push_back({.stage = "a stage whose name is as long as a line of a terminal is wide, and then some"});
    report.errors.push_back({.index = 3, .path = "a.jpg", .stage = "decode", .message = std::string(300, 'x')});
    for (const std::size_t width : {120u, 80u, 60u, 40u})
        for (const std::string& text :
             {to_text(report, {.width = width}), to_short_text(report, "why: x\n", {.width = width})}) {
            std::istringstream lines{text};
            for (std::string line; std::getline(lines, line);) {
                BOOST_TEST(columns_of(line) <= width, line);
                BOOST_TEST(!line.ends_with(' '), line);
            }
        }
}

BOOST_AUTO_TEST_CASE(the_short_report_fits_on_a_screen_whatever_there_is_to_say) {
    Summary report = whole_report();
    report.blame.emplace();
    for (int i = 0; i < 6; ++i)
        report.blame->push_back({.cause = "a cause with a long name " + std::to_string(i), .total_s = 1, .share = 0.1});
    report.trust = {.trusted = false, .reasons = std::vector<std::string>(8, "a reason that takes a line of its own")};
    report.model = {.loss_first = 3, .loss_last = 1, .accuracy = 0.5};
    report.errors.resize(100);
    report.recording.error = std::string(500, 'e');
    for (auto& [name, value] : report.run.options)
        if (name == "data")
            value = std::string(2000, 'd');
    report.device = Summary::Device{.name = "cuda:0", .steps = 5, .time_s = 1, .copies = 3};
    const std::string verdict = "why the draw waits: decode\n  predicted: num_workers 2 -> 4\n";
    const std::string text = to_short_text(report, verdict, {.width = 80});
    BOOST_TEST(text.starts_with(verdict), text);
    BOOST_TEST(std::ranges::count(text, '\n') <= 22, text);
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
        BOOST_TEST(columns_of(line) <= 80u, line);
    for (const std::string_view part : {"DISTRUST", "100 samples could not be loaded", "7 events DROPPED", "headroom"})
        BOOST_TEST(contains(text, part), part << " is missing in:\n" << text);
    BOOST_TEST(contains(to_short_text(whole_report(), verdict, {.width = 80}), "by duration, from "));
}

BOOST_AUTO_TEST_CASE(draws_are_counted_by_duration_and_averaged_over_the_run) {
    Ledger ledger = hand_made::one_epoch();
    const Summary few = summarize(ledger);
    BOOST_REQUIRE(few.draws.has_value());
    BOOST_TEST(few.draws->phase == "train");
    std::uint64_t draws = 0;
    for (const std::uint64_t count : few.draws->counts)
        draws += count;
    const auto row = std::ranges::find_if(
        few.rows, [](const SummaryRow& one) { return one.phase == "train" && one.action == Action::draw; });
    BOOST_REQUIRE(row != few.rows.end());
    BOOST_TEST(draws == row->calls);
    BOOST_TEST(few.draws->over_run_s.size() == row->calls);
    BOOST_TEST(few.draws->counts.front() > 0u);
    BOOST_TEST(few.draws->counts.back() > 0u);
    BOOST_TEST(few.draws->begin_s(few.draws->counts.size()) > row->median_s);

    const StepRow step = ledger.steps[1];
    for (int i = 0; i < 240; ++i)
        ledger.steps.push_back(step);
    const Summary many = summarize(ledger);
    BOOST_REQUIRE(many.draws.has_value());
    BOOST_TEST(many.draws->over_run_s.size() == 40u);
    ledger.steps.clear();
    BOOST_TEST(!summarize(ledger).draws.has_value());
}

BOOST_AUTO_TEST_CASE(a_cache_has_a_line_where_there_is_one) {
    Summary report = whole_report();
    BOOST_TEST(!contains(to_text(report), "cache"));
    report.cache = Summary::Cache{
        .hits = 3, .misses = 1, .samples = 1360, .bytes = 5000, .budget_bytes = 2'000'000, .origin = "memory"};
    BOOST_TEST(contains(to_text(report), "hits 75 % of samples, 1,360 samples in 5.00 kB of 2.00 MB, memory"));
}

BOOST_AUTO_TEST_CASE(a_report_says_that_its_percentiles_have_an_error_where_they_do) {
    Summary report = whole_report();
    BOOST_TEST(!contains(to_text(report), "percentiles"));
    report.recording.percentile_error_share = 0.01;
    BOOST_TEST(contains(to_text(report), "percentiles within 1 %, queue of the steps kept"));
    BOOST_TEST(contains(to_markdown(report), "percentiles within 1 %"));
}

BOOST_AUTO_TEST_CASE(colour_changes_nothing_but_adds_escapes) {
    const Summary report = whole_report();
    std::string coloured = to_text(report, {.colour = true});
    const std::string plain = to_text(report);
    BOOST_TEST(!contains(plain, "\x1b"));
    BOOST_TEST(contains(coloured, "\x1b[1m"));
    for (auto at = coloured.find("\x1b["); at != coloured.npos; at = coloured.find("\x1b["))
        coloured.erase(at, coloured.find('m', at) + 1 - at);
    BOOST_TEST(coloured == plain);
}

BOOST_AUTO_TEST_CASE(csv_has_every_row_with_numbers_that_read_back) {
    const Summary report = whole_report();
    std::istringstream lines{to_csv(report)};
    std::string line;
    std::getline(lines, line);
    BOOST_TEST(line == "phase,action,calls,mean_s,std_s,median_s,p90_s,p99_s,total_s,share_of_total,samples_per_s");
    for (const SummaryRow& row : report.rows) {
        BOOST_REQUIRE(std::getline(lines, line));
        BOOST_TEST(std::ranges::count(line, ',') == 10);
        BOOST_TEST(line.starts_with(std::string{row.phase} + "," + std::string{name_of(row.action)} + ","));
        std::string mean = line.substr(line.find(',', line.find(',') + 1) + 1);
        mean = mean.substr(mean.find(',') + 1);
        BOOST_TEST(std::stod(mean) == row.mean_s);
    }
    BOOST_TEST(!std::getline(lines, line));
}

BOOST_AUTO_TEST_CASE(markdown_tables_have_equally_many_cells_in_each_line) {
    std::istringstream lines{to_markdown(whole_report())};
    std::ptrdiff_t bars = 0, rows = 0;
    for (std::string line; std::getline(lines, line);) {
        const bool in_table = line.starts_with('|');
        if (in_table && bars > 0)
            BOOST_TEST(std::ranges::count(line, '|') == bars, line);
        bars = in_table ? std::ranges::count(line, '|') : 0;
        rows += in_table ? 1 : 0;
    }
    BOOST_TEST(rows > 20);
}

BOOST_AUTO_TEST_CASE(a_run_without_a_step_says_so) {
    BOOST_TEST(to_text(summarize(Ledger{})) == "no steps\n");
    BOOST_TEST(to_markdown(summarize(Ledger{})) == "no steps\n");
}

BOOST_AUTO_TEST_CASE(blame_and_distrust_stand_at_the_top_where_they_are_known) {
    Summary report = whole_report();
    BOOST_TEST(!contains(to_text(report), "blame"));
    BOOST_TEST(!contains(to_text(report), "trust"));
    report.blame = {{.cause = "decode+crop", .total_s = 0.3, .share = 0.5}};
    for (int i = 0; i < 6; ++i)
        report.blame->push_back({.cause = "cause\x1b" + std::to_string(i), .total_s = 0.05, .share = 0.05});
    report.trust = {.interference_share = 0.025, .steal_share = 0};
    for (const std::string& text : {to_text(report), to_markdown(report)}) {
        BOOST_TEST(contains(text, "decode+crop 300 ms (50 %), cause\\x1b0 50.0 ms (5.0 %)"), text);
        BOOST_TEST(contains(text, "others 100 ms"), text);
        BOOST_TEST(contains(text, "nothing speaks against these numbers, others took 2.5 % of the cores"), text);
        BOOST_TEST(!contains(text, "DISTRUST"), text);
    }
    report.trust = {.trusted = false, .reasons = {"others kept 1.00 of 2 cores busy", "the clock went back"}};
    for (const std::string& text : {to_text(report), to_markdown(report)}) {
        const std::size_t first = text.find("others kept 1.00"), second = text.find("the clock went back");
        BOOST_TEST(first < second, text);
        BOOST_TEST(second < text.find("phase"), text);   // before the table
        BOOST_TEST(contains(text, "see DISTRUST above"), text);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
