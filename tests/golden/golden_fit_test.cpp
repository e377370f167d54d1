// The recorded inputs of the original, replayed through fit on a clock that moves by exactly the recorded costs.

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/terminate_on_nan.hpp>
#include <drawpoint/loop/fit.hpp>

#include <boost/test/unit_test.hpp>

#include <deque>
#include <map>

#include "golden/fastxtend_cases.hpp"
#include "golden/replay.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

/// Costs what the case says at each event.
class Gap final : public Callback {
public:
    Gap(ManualClock& clock, const Json& json) : clock_{&clock}, order_{json.at("order").get<int>()} {
        for (const auto& [event, ns] : json.at("ns").items())
            costs_[event_named(event)] = ns.get<std::int64_t>();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "Gap"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] EventSet events() const noexcept override {
        EventSet events;
        for (const auto& [event, ns] : costs_)
            events |= EventSet{event};
        return events;
    }
    void on(Event event, LoopState&) override { clock_->advance(std::chrono::nanoseconds{costs_.at(event)}); }

private:
    ManualClock* clock_;
    int order_;
    std::map<Event, std::int64_t> costs_;
};

/// Cancels at the n-th calls of an event, from 1.
class Thrower final : public Callback {
public:
    explicit Thrower(const Json& json)
        : event_{event_named(json.at("event").get<std::string>())},
          cancel_{json.at("exception").get<std::string>()},
          occurrences_{json.at("occurrences").get<std::vector<std::size_t>>()} {}
    [[nodiscard]] std::string_view name() const noexcept override { return "Thrower"; }
    [[nodiscard]] EventSet events() const noexcept override { return {event_}; }
    void on(Event, LoopState&) override {
        if (std::ranges::find(occurrences_, ++calls_) == occurrences_.end())
            return;
        if (cancel_ == "CancelStepException")
            throw CancelStep{};
        if (cancel_ == "CancelBackwardException")
            throw CancelBackward{};
        if (cancel_ == "CancelFitException")
            throw CancelFit{};
        throw std::logic_error{"no such cancel: " + cancel_};
    }

private:
    Event event_;
    std::string cancel_;
    std::vector<std::size_t> occurrences_;
    std::size_t calls_ = 0;
};

Ledger replay(const Json& input) {
    golden::Replay fit{input};
    std::deque<Gap> gaps;
    for (const Json& gap : input.at("gaps"))
        fit.callbacks.add(gaps.emplace_back(fit.clock, gap));
    std::optional<Thrower> thrower;
    if (input.contains("throw"))
        fit.callbacks.add(thrower.emplace(input.at("throw")));
    std::optional<GradientAccumulation<golden::ReplayLearner>> accumulation;
    if (input.contains("grad_accum"))
        fit.callbacks.add(accumulation.emplace(fit.learner, input.at("grad_accum").get<std::size_t>()));
    TerminateOnNaN terminate_on_nan;
    if (input.contains("nan_loss_at"))
        fit.callbacks.add(terminate_on_nan);
    fit.run();
    return fit.recorder.ledger();
}

/// The recorded fits of `group` in all folders; each folder has at least one. The printed texts are not there where the fit
/// shows and saves nothing, or the project carries its figures alone.
std::vector<golden::Case> fits(const char* group) {
    std::vector<golden::Case> all;
    for (const golden::Path& path : golden::files(group)) {
        if (std::filesystem::exists(golden::Path{path}.replace_extension(".plain.txt"))) {
            all.push_back(golden::read_case(path));
            continue;
        }
        const Json json = golden::read_json(path);
        all.push_back({.path = path,
                       .input = json.at("input"),
                       .output = json.at("output"),
                       .plain = {},
                       .markdown = {},
                       .csv = {}});
    }
    return all;
}

FastxtendReport report_of(const golden::Case& one, ProfileMode mode) {
    return fastxtend_report(fastxtend_values(replay(one.input)), mode, golden::drops_first_batch(one));
}

/// Cells of a recorded frame as text.
std::vector<std::vector<std::string>> cells_of(const Json& frame) {
    std::vector<std::vector<std::string>> table;
    for (const Json& row : frame.at("rows")) {
        auto& cells = table.emplace_back();
        for (const Json& cell : row)
            cells.push_back(cell.is_string() ? cell.get<std::string>() : cell.dump());
    }
    return table;
}

/// Whether the report has the cells of the recorded one, which a fit may have without showing it.
void check_cells(const FastxtendReport& report, const golden::Case& one) {
    if (!one.output.contains("profile_report"))
        return;
    const auto ours = formatted_cells(report), theirs = cells_of(one.output.at("profile_report"));
    BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
    for (std::size_t row = 0; row < theirs.size(); ++row)
        BOOST_TEST(ours[row] == theirs[row], boost::test_tools::per_element());
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_fit)

BOOST_AUTO_TEST_CASE(a_replayed_fit_reports_what_the_original_reported_byte_for_byte) {
    int texts = 0;
    for (const golden::Case& one : fits("g2_fastxtend"))
        BOOST_TEST_CONTEXT(one.path.string()) {
            const FastxtendReport report = report_of(one, golden::mode_of(one));
            check_cells(report, one);
            if (!one.plain)
                continue;
            ++texts;
            BOOST_TEST(to_plain(report) == *one.plain);
            BOOST_TEST(to_markdown(report) == *one.markdown);
            BOOST_TEST(to_csv(report) == *one.csv);
        }
    BOOST_TEST(texts >= 12);   // as many as the project carries
}

BOOST_AUTO_TEST_CASE(where_the_original_fails_the_report_has_every_row_and_a_dash_for_what_is_not_there) {
    for (const char* group : {"g2_fastxtend", "g2_fastxtend_seed000_v0.1"})
        for (const golden::Case& one : fits(group))
            if (one.failed())
                BOOST_TEST_CONTEXT(one.path.string()) {
                    const ProfileMode mode = golden::mode_of(one);
                    const FastxtendReport report = report_of(one, mode);
                    BOOST_TEST(report.rows.size() == (mode == ProfileMode::simple ? 4u + 8 + 5 : 4u + 3 + 3));
                    for (const std::string& text : {to_plain(report), to_markdown(report), to_csv(report)})
                        for (const char* word : {"nan", "NAN", "inf", "INF"})
                            BOOST_TEST(text.find(word) == text.npos, text);
                }
}

BOOST_AUTO_TEST_CASE(a_fit_of_an_older_version_is_reported_in_its_words) {
    for (const golden::Case& one : fits("g2_fastxtend_seed001_v0.0.19"))
        BOOST_TEST_CONTEXT(one.path.string()) {
            const FastxtendReport report = report_of(one, ProfileMode::simple_old);
            if (!one.plain)
                continue;
            BOOST_TEST(to_plain(report) == *one.plain);
            BOOST_TEST(to_markdown(report) == *one.markdown);
            BOOST_TEST(to_csv(report) == *one.csv);
        }
    for (const golden::Case& one : fits("g2_fastxtend_seed000_v0.1"))
        BOOST_TEST_CONTEXT(one.path.string()) {
            const FastxtendReport report = report_of(one, golden::mode_of(one));
            check_cells(report, one);
            if (!one.plain)
                continue;
            const std::string title = "\nProfiling Results:\n";   // of the version that we print
            BOOST_TEST("Profiling Results\n" + to_plain(report).substr(title.size()) == *one.plain);
            BOOST_TEST(to_markdown(report) == *one.markdown);
            BOOST_TEST(to_csv(report) == *one.csv);
        }
}

BOOST_AUTO_TEST_CASE(a_replayed_fit_accounts_for_every_nanosecond) {
    for (const golden::Case& one : fits("g2_fastxtend"))
        BOOST_TEST_CONTEXT(one.path.string())
    BOOST_TEST(max_residual_ns(replay(one.input)) == 0);
}

BOOST_AUTO_TEST_CASE(the_recorded_durations_are_the_ones_the_original_recorded) {
    using Stage = std::optional<double> FastxtendBatch::*;
    for (const golden::Case& one : fits("g2_fastxtend"))
        if (!one.failed() && one.output.contains("raw_values"))
            BOOST_TEST_CONTEXT(one.path.string()) {
                const FastxtendValues ours = fastxtend_values(replay(one.input));
                const FastxtendValues theirs = golden::values_of(one.output.at("raw_values"));
                BOOST_TEST(*ours.fit == *theirs.fit);
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
                        for (const Stage stage :
                             {&FastxtendBatch::forward, &FastxtendBatch::loss, &FastxtendBatch::backward,
                              &FastxtendBatch::opt_step, &FastxtendBatch::zero_grad})
                            if (golden::mode_of(one) == ProfileMode::simple)   // else the original measured no stages
                                BOOST_TEST((our_batches[i].*stage == their_batches[i].*stage));
                    }
                }
            }
}

BOOST_AUTO_TEST_CASE(accumulated_gradients_leave_stages_out_and_their_means_are_over_those_present) {
    for (const golden::Case& one : fits("g2_fastxtend"))
        if (one.input.contains("grad_accum"))
            BOOST_TEST_CONTEXT(one.path.string()) {
                const Ledger ledger = replay(one.input);
                const FastxtendValues values = fastxtend_values(ledger);
                std::vector<double> present;
                for (std::size_t i = 0; i < values.train_batches.size(); ++i) {
                    const FastxtendBatch& batch = values.train_batches[i];
                    const bool steps = i % 2 == 1;   // every second batch of 8 fills the 16
                    BOOST_TEST(batch.opt_step.has_value() == steps);
                    BOOST_TEST(batch.zero_grad.has_value() == steps);
                    BOOST_TEST(batch.backward.has_value());
                    BOOST_TEST((ledger.steps[i].status == (steps ? StepStatus::complete : StepStatus::cancelled)));
                    if (batch.opt_step)
                        present.push_back(*batch.opt_step);
                }
                const auto report = fastxtend_report(values, ProfileMode::simple, false);
                const auto row = std::ranges::find(report.rows, "opt_step", &FastxtendRow::action);
                BOOST_REQUIRE(row != report.rows.end());
                BOOST_TEST(row->calls == present.size());
                BOOST_TEST(row->calls == values.train_batches.size() / 2);
                BOOST_TEST(*row->mean_s == (present[0] + present[1] + present[2]) / 3,
                           boost::test_tools::tolerance(1e-12));
            }
}

BOOST_AUTO_TEST_CASE(a_cancelled_optimizer_step_is_still_timed_and_marked_cancelled) {
    for (const golden::Case& one : fits("g2_fastxtend"))
        if (one.id() == "simple_cancel_step_every_2nd")   // whose steps of 0 s make the original fail
            BOOST_TEST_CONTEXT(one.path.string()) {
                const Ledger ledger = replay(one.input);
                const FastxtendValues values = fastxtend_values(ledger);
                const FastxtendValues theirs = golden::values_of(one.output.at("raw_values"));
                BOOST_REQUIRE_EQUAL(values.train_batches.size(), theirs.train_batches.size());
                for (std::size_t i = 0; i < values.train_batches.size(); ++i) {
                    BOOST_TEST((values.train_batches[i].opt_step == theirs.train_batches[i].opt_step));
                    BOOST_TEST((values.train_batches[i].zero_grad == theirs.train_batches[i].zero_grad));
                    BOOST_TEST((ledger.steps[i].status == (i % 2 == 1 ? StepStatus::cancelled : StepStatus::complete)));
                }
                const auto report = fastxtend_report(values, ProfileMode::simple, true);
                const auto row = std::ranges::find(report.rows, "opt_step", &FastxtendRow::action);
                BOOST_TEST(row->calls == 3u);
                BOOST_TEST(row->samples_per_second == "-");   // 8 samples in 0 s
            }
}

BOOST_AUTO_TEST_CASE(a_fit_cancelled_in_the_middle_of_a_batch_reports_the_batches_that_ended) {
    for (const golden::Case& one : fits("g2_fastxtend"))
        if (one.id() == "simple_cancel_fit_mid_batch" || one.id() == "simple_real_terminate_on_nan")
            BOOST_TEST_CONTEXT(one.path.string()) {
                const Ledger ledger = replay(one.input);
                BOOST_REQUIRE_EQUAL(ledger.steps.size(), 3u);   // after_batch of the third threw
                BOOST_TEST((ledger.steps[2].status == StepStatus::cancelled));
                const FastxtendValues values = fastxtend_values(ledger);
                const Json& theirs = one.output.at("raw_values");
                const auto draws = golden::numbers(theirs, "train_draw"),
                           batches = golden::numbers(theirs, "train_batch");
                BOOST_REQUIRE_EQUAL(values.train_batches.size(), 2u);
                for (std::size_t i = 0; i < 2; ++i) {
                    BOOST_TEST(values.train_batches[i].draw == draws[i]);
                    BOOST_TEST(values.train_batches[i].batch == batches[i]);
                }
                BOOST_TEST(*values.fit == golden::numbers(theirs, "fit")[0]);
                BOOST_TEST(values.epoch.empty());
                const std::string text = to_plain(fastxtend_report(values, ProfileMode::simple, true));
                BOOST_TEST(text.find(" - ") != std::string::npos);
                for (const char* word : {"nan", "NAN", "inf", "INF"})
                    BOOST_TEST(text.find(word) == text.npos);
            }
}

BOOST_AUTO_TEST_SUITE_END()
