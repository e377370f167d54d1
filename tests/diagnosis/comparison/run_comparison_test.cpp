#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>

#include "diagnosis/blame/drawn_ledger.hpp"
#include "loop/random_fits.hpp"
#include "support/sanitized.hpp"

namespace drawpoint {
namespace {

constexpr std::uint32_t pairs = test::sanitized ? 100 : 1'000;

/// Random fits with cancels, failures and two phases; of every third a part only, and every fifth was killed.
Ledger random_ledger(std::uint32_t seed) {
    ManualClock clock{1};
    Recorder recorder{RecorderOptions{.ring_records = 1u << 14}, AnyClock{clock}};
    test::Spent spent;
    for (std::uint32_t fit = 0; fit < 1 + seed % 4; ++fit)
        test::run_random_fit(seed * 8 + fit, clock, recorder, spent);
    Ledger ledger = recorder.ledger();
    if (seed % 3 == 0)
        ledger = window(ledger, clock.now_ns() / 4, clock.now_ns() - clock.now_ns() / 5);
    if (seed % 5 == 0 && !ledger.passes.empty()) {
        ledger.passes.front().ended = false;   // its own pieces come with its end
        ledger.passes.front().spans = {};
        ledger.pack();
    }
    return ledger;
}

using Key = std::pair<std::string, std::string>;

std::map<Key, WaterfallRow> by_key(const RunComparison& found) {
    std::map<Key, WaterfallRow> rows;
    for (const WaterfallRow& row : found.rows)
        BOOST_TEST(rows.emplace(Key{row.phase, row.name}, row).second,
                   row.phase << " " << row.name << " is there twice");
    return rows;
}

/// What is wrong with the comparison of two ledgers and with that of the exchanged ones; empty: nothing.
std::string fault_of(const Ledger& a, const Ledger& b) {
    const RunComparison forth = compare_runs(a, b), back = compare_runs(b, a);
    std::int64_t difference = 0, before = 0, after = 0;
    for (const WaterfallRow& row : forth.rows) {
        difference += row.difference_ns;
        before += row.a_ns;
        after += row.b_ns;
    }
    if (difference != forth.b_wall_ns - forth.a_wall_ns)
        return "the rows do not sum to the difference";
    if (before != forth.a_wall_ns || after != forth.b_wall_ns)
        return "the columns do not sum to the walls";
    const auto rows = by_key(forth), mirrored = by_key(back);
    if (rows.size() != mirrored.size())
        return "the exchanged comparison has other rows";
    for (const auto& [key, row] : rows) {
        const auto found = mirrored.find(key);
        if (found == mirrored.end() || found->second.difference_ns != -row.difference_ns ||
            found->second.a_ns != row.b_ns || found->second.b_ns != row.a_ns ||
            found->second.interval_ns.has_value() != row.interval_ns.has_value())
            return "exchanged, " + key.second + " is not the same with another sign";
        if (row.interval_ns &&
            (found->second.interval_ns->low != -row.interval_ns->high || row.interval_ns->low > row.interval_ns->high))
            return "exchanged, " + key.second + " has another interval";
    }
    return "";
}

/// A run of `steps` steps: a draw that waits for its decode, or not, and a forward.
Ledger run_of(std::uint32_t steps, std::int64_t decode_ns, std::int64_t forward_ns) {
    test::DrawnLedger run;
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i < steps; ++i) {
        const std::int64_t wait = decode_ns + i % 3;
        BatchRow& batch = run.batch(i, 1);
        batch.admitted_ns = batch.first_claim_ns = now;
        batch.last_done_ns = batch.offered_ns = batch.taken_ns = now + wait;
        run.sample(i, 0, 0, now, {0, wait});
        run.step(i, now, {{Span::starved, wait}, {Span::forward, forward_ns}, {Span::between, 5}}, 1);
        now += wait + forward_ns + 5;
    }
    run.ledger.passes.push_back({.kind = PassKind::train, .begin_ns = 0, .end_ns = now});
    run.ledger.sort();
    return run.ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(run_comparison)

BOOST_AUTO_TEST_CASE(rows_sum_to_the_difference_and_exchanging_the_runs_changes_every_sign_and_nothing_else) {
    for (std::uint32_t seed = 1; seed <= pairs; ++seed) {
        const std::string fault = fault_of(random_ledger(2 * seed), random_ledger(2 * seed + 1));
        BOOST_REQUIRE_MESSAGE(fault.empty(), "seed " << seed << ": " << fault);
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_left_unrecorded_unless_rows_are_missing) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        const auto rows = by_key(compare_runs(random_ledger(seed), random_ledger(seed)));
        const bool killed = seed % 5 == 0;
        BOOST_TEST((killed || !rows.contains({"run", "not recorded"})), "seed " << seed);
        for (const auto& [key, row] : rows)
            BOOST_TEST(row.difference_ns == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_slower_stage_is_the_row_that_grew) {
    const Ledger before = run_of(60, 1'000, 400), after = run_of(60, 1'500, 400);
    const RunComparison found = compare_runs(before, after);
    BOOST_TEST(fault_of(before, after) == "");
    BOOST_TEST(found.b_wall_ns - found.a_wall_ns == 60 * 500);
    BOOST_TEST(found.rows[0].name == "draw: decode");
    BOOST_TEST(found.rows[0].difference_ns == 59 * 500);
    BOOST_REQUIRE(found.rows[0].interval_ns.has_value());
    BOOST_TEST(found.rows[0].interval_ns->low > 59 * 495);
    BOOST_TEST(found.rows[1].name == "first draws");
    BOOST_TEST(found.rows[1].difference_ns == 500);
    BOOST_TEST(found.rows[2].difference_ns == 0);
    BOOST_TEST(to_text(found).find("draw: decode") != std::string::npos);
    BOOST_TEST(to_markdown(found).find("| train | draw: decode | ") != std::string::npos);
    const auto document = to_json(found, {.version = "1", .command = "x"}, {});
    BOOST_TEST(document["rows"][0]["difference_ns"] == 59 * 500);
}

/// Steps whose draw waits for a batch of four samples; each worker makes one after the other. The last sample is short.
Ledger run_of_batches(std::uint16_t workers, std::int64_t read_ns, std::int64_t decode_ns) {
    test::DrawnLedger run{workers, 4};
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i < 30; ++i) {
        std::vector<std::int64_t> free_ns(workers, now);
        for (std::uint32_t place = 0; place < 4; ++place) {
            const auto worker = static_cast<std::uint16_t>(place % workers);
            const std::int64_t decode = place == 3 ? decode_ns / 10 : decode_ns;
            run.sample(i, place, worker, free_ns[worker], {read_ns, decode});
            free_ns[worker] += read_ns + decode + 1;   // the worker needs 1 ns between two
        }
        const std::int64_t wait = std::ranges::max(free_ns) - 1 - now;
        BatchRow& batch = run.batch(i, 4);
        batch.admitted_ns = batch.first_claim_ns = now;
        batch.last_done_ns = batch.offered_ns = batch.taken_ns = now + wait;
        run.step(i, now, {{Span::starved, wait}, {Span::forward, 50}}, 4);
        now += wait + 50;
    }
    run.ledger.passes.push_back({.kind = PassKind::train, .begin_ns = 0, .end_ns = now});
    run.ledger.sort();
    return run.ledger;
}

BOOST_AUTO_TEST_CASE(a_wait_for_other_samples_is_in_the_stages_that_workers_had_them_in) {
    const Ledger before = run_of_batches(1, 20, 100), slower = run_of_batches(1, 20, 150);
    BOOST_TEST(fault_of(before, slower) == "");
    const auto rows = by_key(compare_runs(before, slower));
    BOOST_TEST(rows.at({"train", "draw: decode"}).difference_ns == 29 * (3 * 50 + 5));
    BOOST_TEST(rows.at({"train", "draw: read"}).a_ns == 29 * 4 * 20);
    BOOST_TEST(rows.at({"train", "draw: read"}).difference_ns == 0);
    BOOST_TEST(rows.at({"train", "draw: other samples"}).a_ns == 29 * 3);   // between samples
    // Of two workers the wait for both is shared out between the stages that they were in.
    const Ledger two = run_of_batches(2, 20, 100), slower_two = run_of_batches(2, 20, 150);
    BOOST_TEST(fault_of(two, slower_two) == "");
    const auto rows_of_two = by_key(compare_runs(two, slower_two));
    const auto& decode = rows_of_two.at({"train", "draw: decode"});
    const std::int64_t all = compare_runs(two, slower_two).b_wall_ns - compare_runs(two, slower_two).a_wall_ns;
    BOOST_TEST(decode.difference_ns > all * 8 / 10);
}

BOOST_AUTO_TEST_CASE(a_chart_and_a_page_have_each_row_and_no_markup_of_a_recording) {
    Ledger before = run_of(60, 1'000, 400), after = run_of(60, 1'500, 380);
    after.set_fact("option.data", "<b>&\"");
    const RunComparison found = compare_runs(before, after);
    const std::string svg = to_svg(found), html = to_html(found, "a <&> b", "one\n<two>\n");
    BOOST_TEST(svg.find("train draw: decode: +") != std::string::npos, svg);
    BOOST_TEST(svg.find("train forward: -") != std::string::npos, svg);
    const std::size_t bars = svg.find("<text"), end = svg.rfind("</svg>");
    BOOST_TEST(html.find(svg.substr(bars, end - bars)) != std::string::npos);
    BOOST_TEST(html.find("<h1>a &lt;&amp;&gt; b</h1>") != std::string::npos);
    BOOST_TEST(html.find("one\n&lt;two&gt;\n</pre>") != std::string::npos);
    BOOST_TEST(html.find("&lt;b&gt;&amp;&quot;") != std::string::npos);
    BOOST_TEST(to_svg({}).starts_with("<svg "));
}

BOOST_AUTO_TEST_CASE(more_steps_of_the_same_kind_are_only_more_steps) {
    const Ledger before = run_of(60, 900, 400), after = run_of(90, 900, 400);
    const auto rows = by_key(compare_runs(before, after));
    BOOST_TEST(fault_of(before, after) == "");
    const std::int64_t step_ns = 901 + 400 + 5;
    BOOST_TEST(std::abs(rows.at({"train", "number of steps"}).difference_ns - 30 * step_ns) < 10);
    BOOST_TEST(std::abs(rows.at({"train", "forward"}).difference_ns) <= 1);
}

BOOST_AUTO_TEST_CASE(a_phase_that_only_one_run_has_is_steps_more) {
    Ledger both = run_of(30, 900, 400), train = both;
    for (std::size_t i = 20; i < 30; ++i)
        both.steps[i].phase = Phase::valid;
    BOOST_TEST(fault_of(train, both) == "");
    BOOST_TEST(by_key(compare_runs(train, both)).at({"valid", "number of steps"}).difference_ns > 10 * 400);
}

BOOST_AUTO_TEST_CASE(folded_steps_are_rows_of_their_own_and_nothing_of_them_is_left) {
    const auto fits = [](std::uint64_t ledger_bytes) {
        ManualClock clock{1};
        Recorder recorder{RecorderOptions{.ring_records = 1u << 16, .ledger_bytes = ledger_bytes}, AnyClock{clock}};
        test::Spent spent;
        for (std::uint32_t fit = 0; fit < 400; ++fit)
            test::run_random_fit(fit, clock, recorder, spent);
        return recorder.ledger();
    };
    const Ledger whole = fits(0), folded = fits(1u << 16);
    BOOST_REQUIRE(folded.folded.steps > 0u);
    BOOST_TEST(fault_of(whole, folded) == "");
    BOOST_TEST(fault_of(folded, folded) == "");
    const auto rows = by_key(compare_runs(whole, folded));
    BOOST_TEST(!rows.contains({"run", "not recorded"}));
    BOOST_TEST(rows.at({"run", "folded draws"}).difference_ns == folded.folded.draws_ns);
}

BOOST_AUTO_TEST_CASE(what_was_not_the_same_is_said) {
    Ledger a = run_of(5, 10, 10), b = a;
    b.pipelines[0].num_workers = 7;
    b.set_fact("option.batch-size", "32");
    const RunComparison found = compare_runs(a, b);
    const RunDifference workers{.name = "loader train: num_workers", .a = "2", .b = "7"};
    BOOST_TEST((std::ranges::find(found.differences, workers) != found.differences.end()));
    BOOST_TEST(found.differences.size() == 2u);
    BOOST_TEST(to_text(found).find("num_workers: 2 -> 7") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
