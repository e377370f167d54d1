// Recorded inputs of the original, replayed through fit on a clock that moves by exactly the recorded costs.

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/loop/fit.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "golden/exceptions.hpp"
#include "golden/fastxtend_cases.hpp"
#include "golden/replay.hpp"
#include "golden/replays.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

Ledger replay(const golden::Case& one) {
    golden::Replay fit{one.input};
    fit.run();
    if (fit.escaped && !one.failed())
        std::rethrow_exception(fit.escaped);
    return fit.recorder.ledger();
}

FastxtendReport report_of(const golden::Case& one, ProfileMode mode) {
    return fastxtend_report(fastxtend_values(replay(one)), mode, golden::drops_first_batch(one));
}

/// The cells of a recorded frame as text.
std::vector<std::vector<std::string>> cells_of(const Json& frame) {
    std::vector<std::vector<std::string>> table;
    for (const Json& row : frame.at("rows")) {
        auto& cells = table.emplace_back();
        for (const Json& cell : row)
            cells.push_back(cell.is_string() ? cell.get<std::string>() : cell.dump());
    }
    return table;
}

/// Checks the report's cells against the recorded ones, which exist even if the fit did not show its report.
void check_cells(const FastxtendReport& report, const golden::Case& one) {
    if (!one.output.contains("profile_report"))
        return;
    const auto ours = formatted_cells(report), theirs = cells_of(one.output.at("profile_report"));
    BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
    for (std::size_t row = 0; row < theirs.size(); ++row)
        BOOST_TEST(ours[row] == theirs[row], boost::test_tools::per_element());
}

/// Compares the printed texts that exist.
void check_texts(const FastxtendReport& report, const golden::Case& one,
                 const std::string& title = "\nProfiling Results:\n") {
    const std::string ours = "\nProfiling Results:\n";   // the title that ours prints
    if (one.plain)
        BOOST_TEST((title == ours ? to_plain(report) : title + to_plain(report).substr(ours.size())) == *one.plain);
    if (one.markdown)
        BOOST_TEST(to_markdown(report) == *one.markdown);
    if (one.csv)
        BOOST_TEST(to_csv(report) == *one.csv);
}

/// Checks that the durations that the original recorded before it failed are the beginnings of ours.
void check_beginnings(const FastxtendValues& ours, const Json& theirs, bool with_stages) {
    const auto begins = [&](const std::string& name, const std::vector<double>& all) {
        const auto recorded = golden::numbers(theirs, name);
        const std::size_t both = std::min(all.size(), recorded.size());
        BOOST_TEST_CONTEXT(name)
        BOOST_TEST(std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(both)) ==
                       std::vector(recorded.begin(), recorded.begin() + static_cast<std::ptrdiff_t>(both)),
                   boost::test_tools::per_element());
    };
    begins("fit", ours.fit ? std::vector{*ours.fit} : std::vector<double>{});
    begins("epoch", ours.epoch), begins("train", ours.train), begins("valid", ours.valid);
    for (const bool train : {true, false}) {
        const std::string phase = train ? "train" : "valid";
        const auto& batches = train ? ours.train_batches : ours.valid_batches;
        std::vector<double> draws, whole;
        for (const FastxtendBatch& batch : batches)
            draws.push_back(batch.draw), whole.push_back(batch.batch);
        begins(phase + "_draw", draws), begins(phase + "_batch", whole);
        using Stage = std::optional<double> FastxtendBatch::*;
        for (const auto& [stage, value] :
             std::vector<std::pair<std::string, Stage>>{{train ? "_forward" : "_predict", &FastxtendBatch::forward},
                                                        {"_loss", &FastxtendBatch::loss},
                                                        {"_backward", &FastxtendBatch::backward},
                                                        {"_opt_step", &FastxtendBatch::opt_step},
                                                        {"_zero_grad", &FastxtendBatch::zero_grad}}) {
            std::vector<double> present;
            for (const FastxtendBatch& batch : batches)
                if (batch.*value)
                    present.push_back(*(batch.*value));
            if (with_stages)
                begins(phase + stage, present);
        }
    }
}

/// The training steps in the order in which they ran.
std::vector<StepRow> training_steps(const Ledger& ledger) {
    std::vector<StepRow> all;
    std::ranges::copy_if(ledger.steps, std::back_inserter(all),
                         [](const StepRow& step) { return step.phase == Phase::train; });
    return all;
}

void check_no_word_is_a_number(const FastxtendReport& report) {
    for (const std::string& text : {to_plain(report), to_markdown(report), to_csv(report)})
        for (const char* word : {"nan", "NAN", "inf", "INF"})
            BOOST_TEST(text.find(word) == text.npos, text);
}

/// Replays the fits of `group` that satisfy `is_meant`; the test that replays all reports the others.
template <class Predicate, class Function>
void replay_fits(const char* group, Predicate is_meant, Function check) {
    golden::Replays replays{std::string{"golden_fit of "} + group};
    for (const golden::Case& one : golden::cases(group))
        if (std::invoke(is_meant, one))
            replays(one.path, [&] { check(one); });
}
constexpr auto every = [](const golden::Case&) { return true; };

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_fit)

BOOST_AUTO_TEST_CASE(a_replayed_fit_reports_what_the_original_reported_byte_for_byte) {
    golden::Replays replays{"golden_fit of g2_fastxtend"};
    for (const golden::Case& one : golden::cases("g2_fastxtend")) {
        replays(one.path, [&] {
            const FastxtendReport report = report_of(one, golden::mode_of(one));
            check_cells(report, one);
            check_texts(report, one);
        });
        for (const std::string& text : one.missing())
            replays.missing(one.path, text);
    }
}

BOOST_AUTO_TEST_CASE(where_the_original_fails_the_report_has_every_row_and_a_dash_for_what_is_not_there) {
    for (const char* group : {"g2_fastxtend", "g2_fastxtend_seed000_v0.1"})
        replay_fits(group, &golden::Case::failed, [](const golden::Case& one) {
            const ProfileMode mode = golden::mode_of(one);
            const FastxtendReport report = report_of(one, mode);
            BOOST_TEST(report.rows.size() == (mode == ProfileMode::simple ? 4u + 8 + 5 : 4u + 3 + 3));
            check_no_word_is_a_number(report);
        });
}

BOOST_AUTO_TEST_CASE(until_the_original_fails_its_durations_are_ours) {
    for (const char* group : {"g2_fastxtend", "g2_fastxtend_seed000_v0.1"})
        replay_fits(group, &golden::Case::failed, [](const golden::Case& one) {
            check_beginnings(fastxtend_values(replay(one)), one.output.at("raw_values"),
                             golden::mode_of(one) == ProfileMode::simple);
        });
}

BOOST_AUTO_TEST_CASE(a_fit_of_an_older_version_is_reported_in_its_words) {
    replay_fits("g2_fastxtend_seed001_v0.0.19", every,
                [](const golden::Case& one) { check_texts(report_of(one, ProfileMode::simple_old), one); });
    replay_fits("g2_fastxtend_seed000_v0.1", every, [](const golden::Case& one) {
        const FastxtendReport report = report_of(one, golden::mode_of(one));
        check_cells(report, one);
        check_texts(report, one, "Profiling Results\n");
    });
}

BOOST_AUTO_TEST_CASE(a_replayed_fit_accounts_for_every_nanosecond) {
    for (const char* group : {"g2_fastxtend", "g2_fastxtend_seed000_v0.1", "g2_fastxtend_seed001_v0.0.19"})
        replay_fits(group, every, [](const golden::Case& one) { BOOST_TEST(max_residual_ns(replay(one)) == 0); });
}

BOOST_AUTO_TEST_CASE(the_recorded_durations_are_the_ones_the_original_recorded) {
    using Stage = std::optional<double> FastxtendBatch::*;
    const auto is_whole = [](const golden::Case& one) { return !one.failed() && one.output.contains("raw_values"); };
    replay_fits("g2_fastxtend", is_whole, [](const golden::Case& one) {
        const FastxtendValues ours = fastxtend_values(replay(one));
        const FastxtendValues theirs = golden::values_of(one.output.at("raw_values"));
        BOOST_TEST(ours.fit.value() == theirs.fit.value());
        BOOST_TEST(ours.epoch == theirs.epoch, boost::test_tools::per_element());
        BOOST_TEST(ours.train == theirs.train, boost::test_tools::per_element());
        BOOST_TEST(ours.valid == theirs.valid, boost::test_tools::per_element());
        for (const auto phase : {&FastxtendValues::train_batches, &FastxtendValues::valid_batches}) {
            const auto &our_batches = ours.*phase, &their_batches = theirs.*phase;
            BOOST_REQUIRE_EQUAL(our_batches.size(), their_batches.size());
            for (std::size_t i = 0; i < our_batches.size(); ++i) {
                BOOST_TEST(our_batches[i].size == their_batches[i].size);
                BOOST_TEST(our_batches[i].draw == their_batches[i].draw);
                BOOST_TEST(our_batches[i].batch == their_batches[i].batch);
                for (const Stage stage : {&FastxtendBatch::forward, &FastxtendBatch::loss, &FastxtendBatch::backward,
                                          &FastxtendBatch::opt_step, &FastxtendBatch::zero_grad})
                    if (golden::mode_of(one) == ProfileMode::simple)   // otherwise the original measured no stages
                        BOOST_TEST((our_batches[i].*stage == their_batches[i].*stage));
            }
        }
    });
}

BOOST_AUTO_TEST_CASE(accumulated_gradients_leave_stages_out_and_their_means_are_over_those_present) {
    const auto accumulates = [](const golden::Case& one) { return one.input.contains("grad_accum"); };
    replay_fits("g2_fastxtend", accumulates, [](const golden::Case& one) {
        const Ledger ledger = replay(one);
        const FastxtendValues values = fastxtend_values(ledger);
        const auto steps = training_steps(ledger);
        BOOST_REQUIRE_EQUAL(steps.size(), values.train_batches.size());
        const auto enough = one.input.at("grad_accum").get<std::int64_t>();
        std::vector<double> present;
        std::int64_t gathered = 0;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const FastxtendBatch& batch = values.train_batches[i];
            gathered += batch.size;
            const bool is_stepped = gathered >= enough;
            if (is_stepped)
                gathered = 0;
            BOOST_TEST(batch.opt_step.has_value() == is_stepped);
            BOOST_TEST(batch.zero_grad.has_value() == is_stepped);
            BOOST_TEST(batch.backward.has_value());
            BOOST_TEST((steps[i].status == (is_stepped ? StepStatus::complete : StepStatus::cancelled)));
            if (batch.opt_step)
                present.push_back(*batch.opt_step);
        }
        const auto report = fastxtend_report(values, ProfileMode::simple, false);
        const auto row = std::ranges::find(report.rows, "opt_step", &FastxtendRow::action);
        BOOST_REQUIRE(row != report.rows.end());
        BOOST_TEST(row->calls == present.size());
        if (!present.empty())
            BOOST_TEST(*row->mean_s ==
                           std::accumulate(present.begin(), present.end(), 0.0) / static_cast<double>(present.size()),
                       boost::test_tools::tolerance(1e-12));
    });
}

BOOST_AUTO_TEST_CASE(a_cancelled_optimizer_step_is_still_timed_and_marked_cancelled) {
    const auto only_steps_are_cancelled = [](const golden::Case& one) {
        const auto throws = golden::throws_in(one.input);
        return throws.size() == 1 && throws[0].at("event") == "before_step" &&
               golden::thrown_in(throws[0].at("exception")).name == "CancelStepException" &&
               !one.input.contains("grad_accum");
    };
    replay_fits("g2_fastxtend", only_steps_are_cancelled, [](const golden::Case& one) {
        const Ledger ledger = replay(one);
        const FastxtendValues values = fastxtend_values(ledger);
        const FastxtendValues theirs = golden::values_of(one.output.at("raw_values"));
        BOOST_REQUIRE_EQUAL(values.train_batches.size(), theirs.train_batches.size());
        const auto cancelled = golden::throws_in(one.input)[0].at("occurrences").get<std::vector<std::size_t>>();
        const auto steps = training_steps(ledger);
        double stepping_s = 0;
        for (std::size_t i = 0; i < values.train_batches.size(); ++i) {
            const FastxtendBatch& batch = values.train_batches[i];
            BOOST_TEST((batch.opt_step == theirs.train_batches[i].opt_step));
            BOOST_TEST((batch.zero_grad == theirs.train_batches[i].zero_grad));
            const bool is_cancelled = std::ranges::find(cancelled, i + 1) != cancelled.end();
            BOOST_TEST((steps.at(i).status == (is_cancelled ? StepStatus::cancelled : StepStatus::complete)));
            stepping_s += batch.opt_step.value_or(0);
        }
        const auto report = fastxtend_report(values, ProfileMode::simple, false);
        const auto row = std::ranges::find(report.rows, "opt_step", &FastxtendRow::action);
        BOOST_TEST(row->calls == values.train_batches.size());
        if (stepping_s == 0)
            BOOST_TEST(row->samples_per_second == "-");
    });
}

BOOST_AUTO_TEST_CASE(a_fit_cancelled_in_the_middle_of_a_batch_reports_the_batches_that_ended) {
    const auto ends_in_a_batch = [](const golden::Case& one) {
        const auto throws = golden::throws_in(one.input);
        return one.input.contains("nan_loss_at") ||
               (throws.size() == 1 && golden::thrown_in(throws[0].at("exception")).name == "CancelFitException" &&
                throws[0].at("event") != "before_draw" &&
                inner_loop_events.contains(event_named(throws[0].at("event").get<std::string>())));
    };
    replay_fits("g2_fastxtend", ends_in_a_batch, [](const golden::Case& one) {
        const Ledger ledger = replay(one);
        BOOST_REQUIRE(!ledger.steps.empty());
        BOOST_TEST((ledger.steps.back().status == StepStatus::cancelled));
        const FastxtendValues values = fastxtend_values(ledger);
        BOOST_TEST(values.train_batches.size() + values.valid_batches.size() == ledger.steps.size() - 1);
        BOOST_TEST(values.fit.value() == golden::numbers(one.output.at("raw_values"), "fit").at(0));
        BOOST_TEST(values.epoch.size() == ledger.steps.back().epoch);   // the epochs before it
        const FastxtendReport report = fastxtend_report(values, ProfileMode::simple, true);
        BOOST_TEST(to_plain(report).find(" - ") != std::string::npos);
        check_no_word_is_a_number(report);
    });
}

BOOST_AUTO_TEST_SUITE_END()
