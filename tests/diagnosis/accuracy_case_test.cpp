#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>

#include "support/verdict_print.hpp"
#include "bench/accuracy/baselines.hpp"
#include "bench/accuracy/case_run.hpp"
#include "bench/accuracy/fresh_case.hpp"
#include "bench/accuracy/score.hpp"
#include "bench/accuracy/truth.hpp"
#include "bench/accuracy/tuned_case.hpp"
#include "support/temporary_folder.hpp"

using namespace drawpoint;
using namespace drawpoint::bench;

namespace {

const std::string full = R"({
  "about": "all fields", "kind": "single", "injected": "read-latency", "severity": "mild", "noise": "low",
  "batch_size": 4, "steps": 50,
  "setting": {"num_workers": 2, "prefetch_depth": 3, "order": "in", "read_concurrency": 4, "memory_budget": 64000000},
  "read": {"latency_us": 800, "sigma": 0.5, "bytes": 1000, "megabytes_per_s": 100, "by_size": true},
  "stages": [{"name": "decode", "work_us": 100, "sigma": 0.3}, {"name": "fetch", "wait_us": 50, "work_us": 10}],
  "collate_us": 200, "transfer_us": 100,
  "consumer": {"wait_us": 1000, "work_us": 500, "threads": 2, "jitter": 0.1},
  "grid": {"num_workers": [1, 2], "prefetch_depth": [1, 4, 8]}
})";

Case full_case() { return parse_case(full, "full"); }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    BOOST_REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

/// The text with which parse_case() refuses the case.
std::string refusal(const std::string& text) {
    try {
        (void)parse_case(text, "c");
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

MeasuredGain gained(std::string key, double gain) { return {std::move(key), {gain, gain, gain}, {}}; }

Truth decided(std::vector<MeasuredGain> gains, const Case& of = full_case()) {
    Truth truth;
    truth.gains = std::move(gains);
    decide(truth, of);
    return truth;
}

using Words = std::set<std::string>;
using Verdicts = std::set<Verdict>;

}   // namespace

BOOST_AUTO_TEST_SUITE(accuracy_case)

BOOST_AUTO_TEST_CASE(a_case_says_what_its_file_says) {
    const Case of = full_case();
    BOOST_TEST(of.setting.batch_size == 4U);
    BOOST_TEST(of.setting.prefetch_depth == 3U);
    BOOST_TEST(of.setting.read_concurrency == 4U);
    BOOST_TEST(of.setting.memory_budget == 64'000'000U);
    BOOST_TEST(of.read.latency_us == 800);
    BOOST_TEST(of.read.variation.sigma == 0.5);
    BOOST_TEST(of.read.by_size);
    BOOST_TEST(of.read.line_us() == 10);
    BOOST_TEST(of.stages.size() == 2U);
    BOOST_TEST(of.stages[1].wait_us == 50);
    BOOST_TEST(of.consumer.threads == 2U);
    BOOST_TEST(of.grid_depths.size() == 3U);
    BOOST_TEST(of.steps == 50U);
}

BOOST_AUTO_TEST_CASE(what_a_case_cannot_be_is_refused_by_name) {
    BOOST_TEST(refusal(full) == "accepted");
    BOOST_TEST(refusal("{") != "accepted");
    BOOST_TEST(
        refusal(replaced(full, "\"latency_us\": 800", "\"latency\": 800")).find("case c.read.latency: unknown") == 0U);
    BOOST_TEST(refusal(replaced(full, "\"num_workers\": 2,", "\"num_workers\": 0,"))
                   .find("case c.setting.num_workers: must") == 0U);
    BOOST_TEST(refusal(replaced(full, "\"work_us\": 100", "\"work_us\": -1")).find("case c.stages[0].work_us: must") ==
               0U);
    BOOST_TEST(refusal(replaced(full, "\"single\"", "\"other\"")).find("case c.kind: 'other' is none of") == 0U);
    BOOST_TEST(refusal(replaced(full, "\"work_us\": 100", "\"jpeg_decodes\": 3"))
                   .find("case c.stages[0].jpeg_decodes: must be even") == 0U);
    BOOST_TEST(refusal(replaced(full, "\"work_us\": 100", "\"jpeg_decodes\": 2"))
                   .find("case c.stages[0].work_us: must be above 0, decoding included") == 0U);
    BOOST_TEST(refusal(replaced(full, "\"name\": \"fetch\"", "\"name\": \"read\"")).find("case c.stages[1].name") ==
               0U);
    BOOST_TEST(refusal(replaced(full, "\"bytes\": 1000, ", "")).find("case c.read.bytes: must be above 0") == 0U);
}

BOOST_AUTO_TEST_CASE(every_case_of_the_benchmark_is_one_and_there_are_enough_of_each_kind) {
    const std::vector<Case> cases = read_cases(std::filesystem::path{DRAWPOINT_TEST_DIR} / "../bench/accuracy/cases");
    const auto count = [&](auto is) { return std::ranges::count_if(cases, is); };
    const auto of_kind = [&](std::string_view kind) { return count([=](const Case& of) { return of.kind == kind; }); };
    BOOST_TEST(of_kind("single") + of_kind("compound") + of_kind("control") + of_kind("adversarial") >= 60);
    BOOST_TEST(of_kind("compound") >= 12);
    BOOST_TEST(of_kind("control") >= 6);
    BOOST_TEST(of_kind("adversarial") >= 6);
    BOOST_TEST(3 * count([](const Case& of) { return of.jpeg(); }) >= static_cast<long>(cases.size()));
    BOOST_TEST(count([](const Case& of) { return !of.grid_workers.empty(); }) >= 12);
    for (const Case& of : cases)
        for (const std::string& key : change_keys(of))
            BOOST_TEST(!verdicts_of(of, key).empty(), of.name + " " + key);
}

BOOST_AUTO_TEST_CASE(a_factor_is_the_samples_own_and_has_mean_one) {
    const Variation variation{.sigma = 0.5};
    const std::vector<double> factors = factors_of(variation, 2, 20'000);
    const double mean = std::accumulate(factors.begin(), factors.end(), 0.0) / 20'000;
    BOOST_TEST(std::abs(mean - 1) < 0.02);
    BOOST_TEST(factors_of(variation, 2, 100) == std::vector(factors.begin(), factors.begin() + 100),
               boost::test_tools::per_element());
    BOOST_TEST(factors_of(variation, 3, 100) != factors_of(variation, 2, 100));
}

BOOST_AUTO_TEST_CASE(other_samples_have_the_same_distribution) {
    const Variation variation{.sigma = 0.5, .rare_share = 0.05, .rare_factor = 10};
    const std::vector<double> truth = factors_of(variation, 2, 20'000), recorded = factors_of(variation, 2, 20'000, 1);
    BOOST_TEST(truth != recorded);
    const auto mean = [](const std::vector<double>& all) {
        return std::accumulate(all.begin(), all.end(), 0.0) / 20'000;
    };
    BOOST_TEST(std::abs(mean(truth) - mean(recorded)) < 0.1);
    BOOST_TEST(step_factor({.jitter = 0.3}, 4) != step_factor({.jitter = 0.3}, 4, 1));
}

BOOST_AUTO_TEST_CASE(cases_are_drawn_from_a_seed_with_some_on_each_side_of_every_limit) {
    BOOST_TEST(draw_case(1, 1) == draw_case(1, 1));
    BOOST_TEST(draw_case(1, 1) != draw_case(1, 2));
    BOOST_TEST(draw_case(1, 1) != draw_case(2, 1));
    std::size_t loop_is_longer = 0, more_workers_than_cores = 0, reads = 0, bursts = 0, grids = 0;
    for (std::size_t number = 1; number <= 300; ++number) {
        const Case of = parse_case(draw_case(7, number), "drawn");
        double sample_us = 0;
        for (const CaseStage& stage : of.stages)
            sample_us += stage.work_us + stage.wait_us;
        const auto batch = static_cast<double>(of.setting.batch_size),
                   workers = static_cast<double>(of.setting.num_workers);
        loop_is_longer += of.consumer.wait_us + of.consumer.work_us > (sample_us * batch + of.collate_us) / workers;
        more_workers_than_cores += of.setting.num_workers > 2;
        reads += of.read.any();
        bursts += of.consumer.burst_length > 0;
        grids += !of.grid_workers.empty();
        BOOST_TEST(change_keys(of).size() >= 3U);
        for (const std::string& key : change_keys(of))
            BOOST_TEST(!verdicts_of(of, key).empty(), key);
    }
    BOOST_TEST(loop_is_longer > 100U);
    BOOST_TEST(loop_is_longer < 250U);
    for (const std::size_t count : {more_workers_than_cores, reads, grids})
        BOOST_TEST((count > 60 && count < 240));
    BOOST_TEST(bursts > 30U);
}

BOOST_AUTO_TEST_CASE(without_variance_the_same_samples_cost_the_same_in_all) {
    Variation variation{.sigma = 0.8, .rare_share = 0.02, .rare_factor = 40};
    const std::vector<double> varying = factors_of(variation, 2, 500);
    variation.spread = 0;
    const std::vector<double> constant = factors_of(variation, 2, 500);
    BOOST_TEST(std::abs(std::reduce(varying.begin(), varying.end()) - std::reduce(constant.begin(), constant.end())) <
               1e-9 * 500);
    BOOST_TEST(std::abs(std::ranges::min(constant) - std::ranges::max(constant)) < 1e-9);
    variation.spread = 0.5;
    BOOST_TEST(std::abs(factors_of(variation, 2, 500)[7] - (varying[7] + constant[7]) / 2) < 1e-9);
    BOOST_TEST(std::ranges::max(varying) > 10 * std::ranges::min(varying));
}

BOOST_AUTO_TEST_CASE(bursts_leave_the_mean_of_a_step) {
    CaseConsumer consumer{.wait_us = 100};
    consumer.burst_length = 3;
    consumer.burst_factor = 1.8;
    double sum = 0;
    for (std::size_t step = 0; step < 12; ++step)
        sum += step_factor(consumer, step);
    BOOST_TEST(std::abs(sum - 12) < 1e-9);
    BOOST_TEST(step_factor(consumer, 2) == 1.8);
    BOOST_TEST(std::abs(step_factor(consumer, 3) - 0.2) < 1e-9);
}

BOOST_AUTO_TEST_CASE(a_change_changes_what_it_says_and_nothing_else) {
    const Case of = full_case();
    Case expected = of;
    expected.stages[1].work_us = 5;
    expected.stages[1].wait_us = 25;
    BOOST_TEST((changed(of, "stage:fetch") == expected));
    expected = of;
    expected.setting.num_workers = 4;
    BOOST_TEST((changed(of, "num_workers") == expected));
    expected.setting.num_workers = 1;
    BOOST_TEST((changed(of, "num_workers/2") == expected));
    expected = of;
    expected.read.latency_us = 400;
    expected.read.megabytes_per_s = 200;
    BOOST_TEST((changed(of, "read") == expected));
    BOOST_TEST((changed(of, "stage:read") == expected));
    expected.stages[1].wait_us = 25;
    BOOST_TEST((changed(of, "waiting") == expected));
    expected = of;
    for (CaseStage& stage : expected.stages)
        stage.variation.spread = stage.variation.sigma > 0 ? 0.5 : 1;
    expected.read.variation.spread = expected.read.variation.sigma > 0 ? 0.5 : 1;
    expected.consumer.jitter /= 2;
    expected.consumer.burst_factor = (1 + expected.consumer.burst_factor) / 2;
    BOOST_TEST((changed(of, "variance") == expected));
    expected = of;
    expected.consumer.wait_us = 500;
    expected.consumer.work_us = 250;
    BOOST_TEST((changed(of, "compute") == expected));
    expected = of;
    expected.setting.read_concurrency = 16;
    BOOST_TEST((changed(of, "read_concurrency") == expected));
    BOOST_CHECK_THROW((void)changed(of, "cores"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(what_would_change_nothing_is_not_measured) {
    const Case plain =
        parse_case(R"({"kind": "control", "setting": {"num_workers": 1, "prefetch_depth": 2, "order": "out"},
                                      "stages": [{"name": "decode", "work_us": 10}], "consumer": {"wait_us": 100}})",
                   "plain");
    const std::vector<std::string> expected{"stage:decode", "prefetch_depth", "num_workers", "compute"};
    BOOST_TEST(change_keys(plain) == expected, boost::test_tools::per_element());
    BOOST_TEST(change_keys(full_case()).size() == 14U);
}

BOOST_AUTO_TEST_CASE(a_setting_is_known_by_what_it_changes) {
    const Case of = full_case();
    for (const std::string& key : change_keys(of))
        if (can_be_set(key))
            BOOST_TEST(key_of(of.setting, changed(of, key).setting).value_or("none") == key);
    LoaderSetting other = of.setting;
    other.num_workers = 5;
    BOOST_TEST(!key_of(of.setting, other));
    BOOST_TEST(!key_of(of.setting, of.setting));
}

BOOST_AUTO_TEST_CASE(right_are_all_that_gain_within_two_points_of_the_most) {
    const Truth truth =
        decided({gained("collate", 0.30), gained("num_workers", 0.315), gained("prefetch_depth", 0.28)});
    BOOST_TEST(truth.gains.front().key == "num_workers");
    BOOST_TEST(truth.verdicts == (Verdicts{Verdict::workers, Verdict::collate}), boost::test_tools::per_element());
    BOOST_TEST(truth.changes == (Words{"num_workers", "collate"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_not_shown_to_gain_less_than_the_most_is_right_too) {
    const auto in_rounds = [](std::string key, std::vector<double> rounds) {
        return MeasuredGain{std::move(key), median_interval(rounds), rounds};
    };
    // Noise that a round's gains share tells nothing of their difference.
    std::vector<double> shared, lower, other;
    for (int round = 0; round < 12; ++round) {
        shared.push_back(0.3 + 0.02 * (round * 7 % 12));
        lower.push_back(shared.back() - 0.05 - 0.001 * (round % 3));
        other.push_back(0.3 + 0.02 * (round * 5 % 12));
    }
    const MeasuredGain collate = in_rounds("collate", shared), less = in_rounds("num_workers", lower);
    const MeasuredGain noisy = in_rounds("prefetch_depth", other);
    BOOST_TEST(advantage(collate, less).low > 0.04);
    BOOST_TEST(advantage(collate, less).high < 0.06);
    BOOST_TEST(advantage(collate, noisy).low < 0);
    BOOST_TEST(decided({collate, less, noisy}).verdicts == (Verdicts{Verdict::collate, Verdict::prefetch_depth}),
               boost::test_tools::per_element());
    BOOST_TEST(!is_control(decided({collate})));
    BOOST_TEST(is_control(decided({gained("collate", 0.01)})));
    BOOST_TEST(is_control(decided({gained("compute", 0.5), gained("collate", 0.01)})));
}

BOOST_AUTO_TEST_CASE(below_three_percent_nothing_holds_the_run_back) {
    BOOST_TEST(decided({gained("collate", 0.029)}).verdicts == (Verdicts{Verdict::balanced, Verdict::compute_bound}),
               boost::test_tools::per_element());
    BOOST_TEST(decided({gained("collate", 0.031), gained("order", 0.02)}).verdicts == (Verdicts{Verdict::collate}),
               boost::test_tools::per_element());
    BOOST_TEST(decided({gained("compute", 0.05), gained("collate", 0.04)}).verdicts ==
                   (Verdicts{Verdict::balanced, Verdict::collate, Verdict::compute_bound}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_read_is_bound_by_what_takes_longer) {
    Case of = full_case();
    BOOST_TEST(verdicts_of(of, "read") == (Verdicts{Verdict::read_latency}),
               boost::test_tools::per_element());   // 10 us of line, 800 / 4 of latency
    of.read.megabytes_per_s = 4;
    BOOST_TEST(verdicts_of(of, "waiting") == (Verdicts{Verdict::read_bandwidth}), boost::test_tools::per_element());
    BOOST_TEST(verdicts_of(of, "stage:fetch") == (Verdicts{Verdict::read_latency}), boost::test_tools::per_element());
    of.stages[1].name = "translate";   // waits, nobody knows for what
    for (const char* key : {"stage:translate", "waiting"})
        BOOST_TEST(verdicts_of(of, key).contains(Verdict::transform));
    of.consumer.burst_length = 2;
    BOOST_TEST(verdicts_of(of, "prefetch_depth").contains(Verdict::bursty_consumer));
}

BOOST_AUTO_TEST_CASE(the_interval_of_a_median_holds_it_with_90_percent) {
    const Interval ten = median_interval({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
    BOOST_TEST(ten.median == 5.5);
    BOOST_TEST(ten.low == 2);   // 1 + 10 of 1024 below the second: 2.1 % in both tails; below the third 10.9 %
    BOOST_TEST(ten.high == 9);
    const Interval three = median_interval({3, 1, 2});
    BOOST_TEST(three.median == 2);
    BOOST_TEST(three.low == 1);
    BOOST_TEST(three.high == 3);
}

BOOST_AUTO_TEST_CASE(a_truth_comes_back_from_its_file_as_it_went) {
    const test::TemporaryFolder folder;
    Truth truth = decided({gained("collate", 0.25)});
    truth.name = "c";
    truth.case_digest = 0xfedcba9876543210u;
    truth.date = "2026-01-02";
    truth.rounds = 7;
    truth.batches_per_s = {300, 290, 310};
    truth.gains[0].rounds = {0.2, 0.3};
    truth.grid.push_back({2, 4, {1, 2, 3}, 99});
    const std::filesystem::path file = folder.path() / "c.json";
    write_truth(file, truth);
    const Truth read = read_truth(file);
    BOOST_TEST(read.case_digest == truth.case_digest);
    BOOST_TEST(read.verdicts == truth.verdicts, boost::test_tools::per_element());
    BOOST_TEST(read.gains.at(0).rounds == truth.gains.at(0).rounds, boost::test_tools::per_element());
    BOOST_TEST((read.grid.at(0).batches_per_s == truth.grid[0].batches_per_s));
    BOOST_TEST(read.grid.at(0).peak_bytes == 99U);
    BOOST_TEST(read.rounds == 7U);
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);   // no part left
    test::put_bytes(folder / "bad.json", "{}");
    BOOST_CHECK_THROW((void)read_truth(folder / "bad.json"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_clock_step_stretches_what_it_falls_into_and_moves_what_comes_later) {
    Ledger ledger;
    ledger.spans = {{.begin_ns = 0, .ns = 10}, {.begin_ns = 10, .ns = 10}, {.begin_ns = 20, .ns = 5}};
    ledger.steps = {{.draw_begin_ns = 0, .draw_ns = 10, .batch_ns = 10},
                    {.draw_begin_ns = 20, .draw_ns = 2, .batch_ns = 3}};
    ledger.batches.resize(1);
    ledger.batches[0].taken_ns = 15;
    step_clock(ledger, 15, 100);
    BOOST_TEST(ledger.spans[0].ns == 10);
    BOOST_TEST(ledger.spans[1].begin_ns == 10);
    BOOST_TEST(ledger.spans[1].ns == 110);
    BOOST_TEST(ledger.spans[2].begin_ns == 120);
    BOOST_TEST(ledger.steps[0].draw_ns == 10);
    BOOST_TEST(ledger.steps[0].batch_ns == 110);
    BOOST_TEST(ledger.steps[1].draw_begin_ns == 120);
    BOOST_TEST(ledger.steps[1].batch_ns == 3);
    BOOST_TEST(ledger.batches[0].taken_ns == 115);
    BOOST_TEST(ledger.batches[0].offered_ns == no_stamp);
}

BOOST_AUTO_TEST_CASE(wilsons_interval_is_the_textbooks) {
    const auto [low, high] = Share{.of = 60, .hits = 57}.wilson();
    BOOST_TEST(std::abs(low - 0.8630) < 5e-4);
    BOOST_TEST(std::abs(high - 0.9829) < 5e-4);
    BOOST_TEST(Share{}.wilson().second == 1);
    const auto [none, some] = Share{.of = 6}.wilson();
    BOOST_TEST(std::abs(none) < 1e-12);
    BOOST_TEST(std::abs(some - 0.3903) < 5e-4);
}

BOOST_AUTO_TEST_CASE(a_score_counts_each_kind_of_case_by_its_own_measure) {
    const auto scored = [](std::string kind, Verdict verdict, std::optional<std::string> abstained = std::nullopt) {
        Scored one{
            .of = full_case(),
            .answers = {{.rule = "drawpoint", .verdict = verdict, .abstained = std::move(abstained), .regret = 0.1}}};
        one.of.kind = std::move(kind);
        if (one.of.kind != "adversarial")
            one.truth = decided({gained("collate", one.of.kind == "control" ? 0.0 : 0.3)});
        return one;
    };
    const Score score = score_of(
        {scored("single", Verdict::collate), scored("single", Verdict::decode),
         scored("single", Verdict::collate, "too short"), scored("control", Verdict::compute_bound),
         scored("control", Verdict::decode), scored("adversarial", Verdict::decode),
         scored("adversarial", Verdict::undecided, "foreign load"), scored("adversarial", Verdict::undecided)});
    const RuleScore& ours = score.rules.at(0);
    BOOST_TEST(ours.right.of == 5U);
    BOOST_TEST(ours.right.hits == 2U);   // an abstention is not right, whatever it would have said
    BOOST_TEST(ours.abstained_wrongly.hits == 1U);
    BOOST_TEST(ours.false_alarms.hits == 1U);
    BOOST_TEST(ours.false_alarms.of == 2U);
    BOOST_TEST(ours.abstained_correctly.hits == 2U);
    BOOST_TEST(ours.abstained_correctly.of == 3U);
    BOOST_TEST(ours.regrets.size() == 5U);
    Scored crashed = scored("adversarial", Verdict::undecided, "it threw"),
           untuned = scored("single", Verdict::collate);
    crashed.error = "it threw";
    untuned.tuning_failed = true;
    untuned.of.setting.memory_budget = 1;
    untuned.truth->batches_per_s.median = 80;
    untuned.truth->grid = {{.num_workers = 2, .prefetch_depth = 2, .batches_per_s = {100, 100, 100}}};
    const Score failed = score_of({crashed, untuned});
    BOOST_TEST(failed.rules.at(0).abstained_correctly.hits == 0U);   // a crash is no abstention
    BOOST_TEST(failed.tuner_in_time.of == 1U);
    BOOST_TEST(failed.tuner_in_time.hits == 0U);
    BOOST_TEST_REQUIRE(failed.tuner_regrets.size() == 1U);
    BOOST_TEST(std::abs(failed.tuner_regrets[0] - 0.2) < 1e-12);   // the setting stays as it was
    BOOST_TEST(failed.budgets_kept.of == 1U);
    BOOST_TEST(failed.budgets_kept.hits == 0U);

    Scored of_line = scored("single", Verdict::read_latency);
    of_line.truth->verdicts = {Verdict::read_bandwidth};
    of_line.answers.push_back({.rule = "another", .verdict = Verdict::read_latency});
    BOOST_TEST(!of_line.is_right(of_line.answers[0]));   // we have a word for it
    BOOST_TEST(of_line.is_right(of_line.answers[1]));

    BOOST_TEST((score.confusion.at({"collate", "decode"}) == 1U));
    BOOST_TEST((score.confusion.at({"collate", "abstained"}) == 1U));
    BOOST_TEST((score.confusion.at({"collate", "collate"}) == 1U));
}

BOOST_AUTO_TEST_CASE(a_host_that_is_faster_than_the_truths_was_is_no_error_of_a_ratio) {
    Scored one{.of = full_case(), .truth = decided({gained("collate", 0.3)}), .speed = 1.1};
    one.cells.push_back({.predicted = {.median = 110}, .real = 100});
    one.cells.push_back({.predicted = {.median = 121}, .real = 100});
    const Score score = score_of({one});
    BOOST_TEST(score.whatif_errors == (std::vector{0.1, 0.21}), boost::test_tools::per_element());
    BOOST_TEST_REQUIRE(score.ratio_errors.size() == 2U);
    BOOST_TEST(std::abs(score.ratio_errors[0]) < 1e-12);
    BOOST_TEST(std::abs(score.ratio_errors[1] - 0.1) < 1e-12);
    one.speed = 0;   // not known
    BOOST_TEST(score_of({one}).ratio_errors.empty());
}

BOOST_AUTO_TEST_CASE(a_tuner_has_400_steps_for_a_large_effect_and_1000_for_a_small_one_and_keeps_the_budget) {
    const auto tuned = [](double effect, std::size_t steps, std::uint64_t peak_bytes) {
        Scored one{.of = full_case(), .truth = decided({gained("collate", 0.3)})};
        one.tuned = TunedCase{.effect = effect, .regret = 0.01, .steps_used = steps, .peak_bytes = peak_bytes};
        return one;
    };
    const std::uint64_t budget = full_case().setting.memory_budget;
    const Score score = score_of(
        {tuned(0.06, 400, budget), tuned(0.06, 401, budget + 1), tuned(0.04, 1000, budget), tuned(0.04, 1001, budget)});
    BOOST_TEST(score.tuner_in_time.hits == 2U);
    BOOST_TEST(score.tuner_in_time.of == 4U);
    BOOST_TEST(score.budgets_kept.hits == 3U);
    BOOST_TEST(score.tuner_regrets.size() == 4U);
}

BOOST_AUTO_TEST_CASE(the_steps_that_count_draw_every_sample_equally_often) {
    const Case of = parse_case(R"({
      "about": "tiny", "kind": "single", "injected": "transform", "severity": "mild", "noise": "low",
      "batch_size": 2, "steps": 50, "setting": {"num_workers": 1, "prefetch_depth": 2},
      "stages": [{"name": "color", "work_us": 10}], "consumer": {"wait_us": 10}
    })",
                               "tiny");
    Rig rig;
    const CaseRun run = run_case(of, rig, {.passes = 2});
    const std::size_t warm_up = warm_up_steps(of);
    BOOST_TEST(run.begins_ns.size() == warm_up + 100U);
    std::vector<std::size_t> drawn(100);
    for (const SampleRow& row : run.ledger.samples)
        if (row.batch >= warm_up && row.batch < warm_up + 100)
            ++drawn[row.index % 100];
    BOOST_TEST(std::ranges::count(drawn, 2U) == 100);
}

BOOST_AUTO_TEST_CASE(a_case_is_tuned_on_its_live_loader_within_its_grid) {
    const Case of = parse_case(R"({
      "about": "two workers are enough", "kind": "single", "injected": "workers", "severity": "mild", "noise": "low",
      "batch_size": 2, "steps": 60, "setting": {"num_workers": 1, "prefetch_depth": 2},
      "stages": [{"name": "fetch", "wait_us": 300}], "consumer": {"wait_us": 300},
      "grid": {"num_workers": [1, 2, 3], "prefetch_depth": [1, 2, 4]}
    })",
                               "small");
    Rig rig;
    Truth truth = decided({gained("num_workers", 0.3)}, of);
    truth.batches_per_s = {1000, 1000, 1000};
    truth.grid = {{.num_workers = 2, .prefetch_depth = 2, .batches_per_s = {1500, 1500, 1500}, .peak_bytes = 1}};
    const TunedCase tuned = tune_case(of, truth, rig);
    BOOST_TEST(tuned.chosen.num_workers <= 3U);
    BOOST_TEST(tuned.chosen.prefetch_depth <= 4U);
    BOOST_TEST(tuned.chosen.batch_size == 2U);
    BOOST_TEST(tuned.best.num_workers == 2U);
    BOOST_TEST(tuned.effect == 0.5);
    BOOST_TEST(tuned.steps_used > 80U);
    BOOST_TEST(tuned.steps_used <= 1000U);
    BOOST_TEST(tuned.peak_bytes > 0U);
}

BOOST_AUTO_TEST_CASE(tf_datas_buffer_is_empty_as_often_as_its_formula_says) {
    BOOST_TEST(std::abs(share_empty(1, 1, 4) - 0.2) < 1e-12);
    BOOST_TEST(std::abs(share_empty(2, 1, 1) - 0.5 / 0.75) < 1e-12);
    BOOST_TEST(std::abs(share_empty(1, 2, 1) - 0.25 / 0.75) < 1e-12);
    BOOST_TEST(share_empty(0, 1, 4) == 0);
}

BOOST_AUTO_TEST_CASE(each_rule_says_what_its_thresholds_say) {
    const auto says = [](std::string_view name, const RunFigures& run) {
        return std::ranges::find(rules(), name, &Rule::name)->answer(run);
    };
    RunFigures run{.setting = {.num_workers = 1, .prefetch_depth = 2, .batch_size = 8},
                   .stages = {"decode", "augment"},
                   .stage_us = {100, 300},
                   .stage_cpu_us = {100, 300},
                   .draw_us = 40,
                   .compute_us = 960,
                   .empty_share = 0.05,
                   .cores = 2};
    BOOST_TEST(says("5 % (PyTorch)", run).verdict == Verdict::compute_bound);
    BOOST_TEST(says("occupancy walk (SPDL)", run).verdict == Verdict::compute_bound);
    BOOST_TEST(says("largest stage", run).verdict == Verdict::transform);
    run.draw_us = 150;
    run.compute_us = 850;
    run.empty_share = 0.6;
    BOOST_TEST(says("5 % (PyTorch)", run).verdict == Verdict::workers);
    BOOST_TEST(says("5 % (PyTorch)", run).advice->num_workers == 2U);
    BOOST_TEST(says("5 / 20 % (TensorFlow)", run).verdict == Verdict::balanced);
    BOOST_TEST(says("10 / 20 % (TraceML)", run).verdict == Verdict::workers);
    BOOST_TEST(says("occupancy walk (SPDL)", run).verdict == Verdict::transform);
    run.draw_us = 2350;
    BOOST_TEST(says("5 / 20 % (TensorFlow)", run).verdict == Verdict::transform);
    BOOST_TEST(says("M/M/1/K, hill climb (tf.data)", run).verdict == Verdict::workers);
    BOOST_TEST(says("linear programme (Plumber)", run).verdict ==
               Verdict::transform);   // 1600 us a batch on both cores, 850 wanted
    run.compute_us = 1700;
    BOOST_TEST(says("linear programme (Plumber)", run).verdict == Verdict::workers);
    BOOST_TEST(says("linear programme (Plumber)", run).advice->num_workers == 2U);
    BOOST_TEST(says("workers = cores, depth 2", run).advice->num_workers == 2U);
    run.collate_us = 9000;
    BOOST_TEST(says("largest stage", run).verdict == Verdict::collate);
    const char* const one_line = "one line: the longest of four";
    run.collate_us = 0;   // a worker makes a batch in 8 * 400 = 3200 us, the loop takes 1700
    BOOST_TEST(one_line_step_us(run) == 3200);
    BOOST_TEST(says(one_line, run).verdict == Verdict::workers);   // 1700; transform: 2000
    run.cpu_us = 6000;                                             // more than the loader's 3200: both cores are spent
    BOOST_TEST(one_line_step_us(run) == 3200);
    run.setting.num_workers = 4;
    BOOST_TEST(one_line_step_us(run) == 3000);
    BOOST_TEST(says(one_line, run).verdict == Verdict::compute_bound);   // 2300; transform: 2400
    run.cpu_us = 0;
    BOOST_TEST(says(one_line, run).verdict == Verdict::compute_bound);
    BOOST_TEST(one_line_step_us(run, {.num_workers = 1, .prefetch_depth = 9, .batch_size = 8}) == 3200);
}

BOOST_AUTO_TEST_SUITE_END()
