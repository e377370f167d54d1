#include <drawpoint/diagnosis/blame/explain.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;

/// Two steps with a batch of two samples each; sample 101, the last of the second batch, is in decode for 600 ns while
/// the loop waits.
DrawnLedger stalled() {
    DrawnLedger drawn{2, 1};
    for (std::uint32_t i = 0; i < 2; ++i) {
        const std::int64_t from = 1000 * i;
        BatchRow& batch = drawn.batch(i);
        batch.admitted_ns = from;
        batch.first_claim_ns = from + 50;
        batch.last_done_ns = from + 800;
        batch.offered_ns = from + 810;
        batch.taken_ns = from + 820;
        drawn.sample(i, 0, 0, from + 50, {100, 100});
        drawn.sample(i, 1, 1, from + 100, {100, 600});
        drawn.step(i, from + 200, {{Span::starved, 610}, {Span::handoff, 10}, {Span::forward, 180}});
    }
    return drawn;
}

std::string explained(const Ledger& ledger, std::optional<std::uint32_t> step = {}, std::size_t width = 100) {
    return explain(ledger, drawpoint::blame(ledger), step, {.width = width});
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// The line that begins with `begin`, without that beginning.
std::string line_of(const std::string& text, const std::string& begin) {
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(begin))
            return line.substr(begin.size());
    return "none";
}

BOOST_AUTO_TEST_SUITE(explain)

BOOST_AUTO_TEST_CASE(a_step_s_chain_is_shown_on_one_axis) {
    // 82 cells for the 820 ns since the batch's admission
    const std::string text = explained(stalled().ledger, 1, 104);
    const std::string label = "sample 100, worker 0";
    BOOST_REQUIRE(has(text, label));
    BOOST_TEST(line_of(text, label + " |") == "     RRRRRRRRRRDDDDDDDDDD");
    BOOST_TEST(line_of(text, "sample 101, worker 1 |") ==
               std::string(10, ' ') + std::string(10, 'R') + std::string(60, 'D'));
    std::string draw = std::string(20, ' ');
    for (std::size_t i = 0; i < 62; ++i)
        draw += "█";
    BOOST_TEST(line_of(text, "draw                 |") == draw);
    const std::string stamps = line_of(text, "stamps               |");
    BOOST_TEST(stamps.find('a') == 0u);
    BOOST_TEST(stamps.find('f') == 5u);
    BOOST_TEST(stamps.find('d') == 20u);
    BOOST_TEST(stamps.find('l') == 80u);
    BOOST_TEST(stamps.find('o') == 81u);
    BOOST_TEST(has(text, "last done +600 ns"));
    BOOST_TEST(has(text, "admitted -200 ns"));
}

BOOST_AUTO_TEST_CASE(its_pieces_and_its_reason_follow) {
    const std::string text = explained(stalled().ledger, 1);
    BOOST_TEST(has(text, "decode   600 ns   96.8 %  sample 101"));
    BOOST_TEST(has(text, "handoff   20 ns    3.2 %"));
    BOOST_TEST(has(text, "draw     620 ns"));
    BOOST_TEST(
        has(text, "The loop waited 600 ns because sample 101 was still in decode on worker 1, the last of its batch."));
}

BOOST_AUTO_TEST_CASE(how_a_stage_spent_its_time_is_shaded) {
    Ledger ledger = stalled().ledger;
    ledger.stages[7].cpu_ns = 200;   // of 600 ns
    ledger.samples[3].run_queue_ns = 300;
    const std::string text = explained(ledger, 1, 104);
    std::string bar = std::string(10, ' ') + std::string(10, 'R') + std::string(20, 'D');
    for (std::size_t i = 0; i < 30; ++i)
        bar += "░";
    BOOST_TEST(line_of(text, "sample 101, worker 1 |") == bar + std::string(10, 'd'));
    BOOST_TEST(has(text, "300 ns   48.4 %  sample 101, waiting for a core"));
    BOOST_TEST(has(explained(ledger, 1, 200), "on worker 1, the last of its batch, mostly waiting for a core."));
}

BOOST_AUTO_TEST_CASE(reads_ahead_are_shown_before_and_while_a_worker_waits_for_them) {
    Ledger ledger = stalled().ledger;
    ledger.samples[3].read_begin_ns = 1050;
    ledger.samples[3].read_end_ns = 1180;
    BOOST_TEST(line_of(explained(ledger, 1, 104), "sample 101, worker 1 |").starts_with("     ·····~~~~~~~~RRDDD"));
}

BOOST_AUTO_TEST_CASE(without_a_step_it_is_the_steady_one_with_the_longest_draw) {
    Ledger ledger = stalled().ledger;
    ledger.steps[0].draw_ns += 1000;
    BOOST_TEST(has(explained(ledger), "step 1 (train"));   // step 0 is warm-up
    ledger.steps.resize(1);
    BOOST_TEST(has(explained(ledger), "step 0 (train"));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_there_is_named) {
    const Ledger ledger = stalled().ledger;
    const auto says = [](std::string words) {
        return [words](const std::invalid_argument& error) { return has(error.what(), words); };
    };
    BOOST_CHECK_EXCEPTION(explained(ledger, 7), std::invalid_argument,
                          says("no step 7 in this recording, whose steps are 0 to 1"));
    BOOST_CHECK_EXCEPTION(explained({}), std::invalid_argument, says("no step"));
}

BOOST_AUTO_TEST_CASE(what_is_not_recorded_is_said) {
    Ledger ledger = stalled().ledger;
    ledger.samples.pop_back();
    BOOST_TEST(has(explained(ledger, 1), "Not all samples of this batch are recorded."));
    ledger.samples.clear();
    BOOST_TEST(has(explained(ledger, 1), "The samples of this batch are not recorded."));
    ledger.batches.clear();
    BOOST_TEST(has(explained(ledger, 1), "The loop waited 610 ns: the batch of this draw was not recorded."));
    ledger.steps[1].draw_ns = 0;
    ledger.steps[1].spans = {};
    BOOST_TEST(has(explained(ledger, 1), "The loop waited for nothing"));
}

BOOST_AUTO_TEST_CASE(lines_keep_to_the_width_and_names_cannot_act_on_a_terminal) {
    DrawnLedger drawn = stalled();
    for (std::uint32_t slot = 2; slot < 60; ++slot)
        drawn.sample(1, slot, 0, 1250 + slot, {1, 1});
    drawn.ledger.batches[1].size = 60;
    drawn.ledger.sort();
    for (SampleRow& sample : drawn.ledger.samples)   // of a long decode 200 ns compute, the rest waits
        if (sample.slot == 1) {
            drawn.ledger.stages[sample.stages.first + 1].cpu_ns = 200;
            sample.run_queue_ns = 0;
        }
    for (const char* const name : {"de\x1b[31mcode", "decode+crop+resize+normalize",
                                   "a stage whose name has more words than a narrow terminal has columns for it"})
        for (const std::size_t width : {0u, 60u, 80u, 200u}) {
            drawn.ledger.pipelines[0].stages[1] = name;
            const std::string text = explained(drawn.ledger, 1, width);
            BOOST_TEST(has(text, "Of 60 records of samples, the 32 that ended last."));
            BOOST_TEST(has(text, "sample 101, waiting off its core\n"));
            BOOST_TEST(!has(text, "\x1b"));
            std::istringstream lines{text};
            for (std::string line; std::getline(lines, line);)
                BOOST_TEST(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }) <=
                               static_cast<std::ptrdiff_t>(std::max<std::size_t>(width, 60)),
                           line);
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
