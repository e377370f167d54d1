#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include "golden/fastxtend_cases.hpp"
#include "golden/replays.hpp"

using namespace drawpoint;

namespace {

/// Compares the texts that exist.
void check_texts(const golden::Case& one, const FastxtendReport& report) {
    BOOST_TEST(to_plain(report) == one.plain.value_or(to_plain(report)));
    BOOST_TEST(to_markdown(report) == one.markdown.value_or(to_markdown(report)));
    BOOST_TEST(to_csv(report) == one.csv.value_or(to_csv(report)));
}

const FastxtendRow& row(const FastxtendReport& report, std::string_view phase, std::string_view action) {
    const auto found = std::ranges::find_if(report.rows, [&](const FastxtendRow& candidate) {
        return candidate.phase == phase && candidate.action == action;
    });
    BOOST_REQUIRE(found != report.rows.end());
    return *found;
}

/// Checks that the row has nothing to report.
void check_absent(const FastxtendRow& absent) {
    BOOST_TEST_CONTEXT(absent.phase << " " << absent.action) {
        BOOST_TEST(absent.calls == 0u);
        BOOST_TEST(!absent.mean_s);
        BOOST_TEST(!absent.std_dev_s);
        BOOST_TEST(!absent.total_s);
        BOOST_TEST(absent.samples_per_second == "-");
        BOOST_TEST(absent.percent_of_total == "-");
    }
}

void check_complete(const FastxtendReport& report) {
    for (const std::string& text : {to_plain(report), to_markdown(report), to_csv(report)})
        for (const char* word : {"nan", "NAN", "inf", "INF"})
            BOOST_TEST(text.find(word) == text.npos, text);
}

/// The ledger of a fit in which only the recorded costs of the stages take time.
class Replay {
public:
    explicit Replay(const golden::Json& input) : now_{input.value("clock_start_ns", std::int64_t{0})} {
        const auto epochs = input.at("epochs").get<std::uint32_t>();
        ledger_.start_ns = now_;
        const std::size_t fit = open(PassKind::fit, 0, Event::before_fit);
        for (std::uint32_t e = 0; e < epochs; ++e) {
            const std::size_t epoch = open(PassKind::epoch, e, Event::before_epoch);
            run(input.at("train").at(e), e, Phase::train);
            run(input.at("valid").at(e), e, Phase::valid);
            close(epoch, Event::after_epoch);
        }
        close(fit, Event::after_fit);
    }
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }

private:
    void add(Slice& slice, Span span, std::int64_t ns) {
        if (slice.count++ == 0)
            slice.first = static_cast<std::uint32_t>(ledger_.spans.size());
        ledger_.spans.push_back({span, now_, ns});
        now_ += ns;
    }
    std::size_t open(PassKind kind, std::uint32_t epoch, Event event) {
        ledger_.passes.push_back({.kind = kind, .epoch = epoch, .begin_ns = now_, .spans = {}});
        events_.push_back({span_of(event), now_, 0});
        return ledger_.passes.size() - 1;
    }
    void close(std::size_t pass, Event event) {
        Slice& slice = ledger_.passes[pass].spans;
        slice = {static_cast<std::uint32_t>(ledger_.spans.size()), 2};
        ledger_.spans.push_back(events_.back());
        ledger_.spans.push_back({span_of(event), now_, 0});
        events_.pop_back();
        ledger_.passes[pass].end_ns = now_;
    }
    void run(const golden::Json& batches, std::uint32_t epoch, Phase phase) {
        const bool train = phase == Phase::train;
        const std::size_t pass = open(train ? PassKind::train : PassKind::valid, epoch,
                                      train ? Event::before_train : Event::before_validate);
        for (std::uint32_t b = 0; b < batches.size(); ++b)
            step(batches[b], epoch, b, phase);
        close(pass, train ? Event::after_train : Event::after_validate);
    }
    void step(const golden::Json& cost, std::uint32_t epoch, std::uint32_t batch, Phase phase) {
        const auto ns = [&](const char* stage) { return cost.at(stage).get<std::int64_t>(); };
        StepRow row{.step = static_cast<std::uint32_t>(ledger_.steps.size()),
                    .epoch = epoch,
                    .batch = batch,
                    .phase = phase,
                    .size = cost.value("bs_x", cost.at("bs").get<std::uint32_t>()),
                    .loss = {},
                    .spans = {}};
        const auto happens = [&](Event event) { add(row.spans, span_of(event), 0); };
        row.draw_begin_ns = now_;
        happens(Event::before_draw);
        add(row.spans, Span::starved, ns("draw"));
        row.draw_ns = now_ - row.draw_begin_ns;
        happens(Event::before_batch);
        add(row.spans, Span::forward, ns(phase == Phase::train ? "forward" : "predict"));
        happens(Event::after_pred);
        add(row.spans, Span::loss, ns("loss"));
        happens(Event::after_loss);
        if (phase == Phase::train) {
            happens(Event::before_backward);
            add(row.spans, Span::backward, ns("backward"));
            happens(Event::before_step);
            add(row.spans, Span::opt_step, ns("opt_step"));
            happens(Event::after_step);
            add(row.spans, Span::zero_grad, ns("zero_grad"));
        }
        happens(Event::after_batch);
        row.batch_ns = now_ - row.draw_begin_ns - row.draw_ns;
        ledger_.steps.push_back(row);
    }

    std::int64_t now_;
    Ledger ledger_;
    std::vector<SpanRow> events_;   // opening events of the open passes
};

void check_equal(const std::vector<FastxtendBatch>& ours, const std::vector<FastxtendBatch>& theirs) {
    BOOST_REQUIRE(ours.size() == theirs.size());
    const auto same = [](std::optional<double> left, std::optional<double> right) {
        BOOST_REQUIRE(left.has_value() == right.has_value());
        if (left)
            BOOST_TEST(*left == *right);
    };
    for (std::size_t i = 0; i < ours.size(); ++i) {
        BOOST_TEST(ours[i].size == theirs[i].size);
        BOOST_TEST(ours[i].draw == theirs[i].draw);
        BOOST_TEST(ours[i].batch == theirs[i].batch);
        same(ours[i].forward, theirs[i].forward);
        same(ours[i].loss, theirs[i].loss);
        same(ours[i].backward, theirs[i].backward);
        same(ours[i].opt_step, theirs[i].opt_step);
        same(ours[i].zero_grad, theirs[i].zero_grad);
    }
}

/// A report of two training and two validation batches, each changed by `change`.
FastxtendReport report_of(ProfileMode mode, void (*change)(FastxtendValues&)) {
    const FastxtendBatch train{8, 0.5, 1.5, 0.5, 0.25, 0.25, 0.25, 0.125}, valid{8, 0.5, 1.5, 0.5, 0.25, {}, {}, {}};
    FastxtendValues values{8.0, {8.0}, {4.0}, {4.0}, {train, train}, {valid, valid}};
    change(values);
    return fastxtend_report(values, mode, false);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_fastxtend)

BOOST_AUTO_TEST_CASE(recorded_durations_give_the_originals_plain_markdown_and_csv_report) {
    golden::Replays replays{"golden_fastxtend"};
    for (const golden::Case& one : golden::cases("g2_fastxtend_direct")) {
        replays(one.path, [&] {
            golden::check_keys(one.input, {"id", "mode", "drop_first_batch", "recorded_seconds"});
            const auto report = fastxtend_report(golden::values_of(one.input.at("recorded_seconds")),
                                                 golden::mode_of(one), golden::drops_first_batch(one));
            if (one.failed())
                check_complete(report);
            else
                check_texts(one, report);
        });
        for (const std::string& text : one.missing())
            replays.missing(one.path, text);
    }
}

BOOST_AUTO_TEST_CASE(a_nan_duration_blanks_the_rows_it_is_part_of_and_no_other) {
    const auto one = golden::own_case("g2_fastxtend_direct", "direct_nan");
    const auto report =
        fastxtend_report(golden::values_of(one.input.at("recorded_seconds")), golden::mode_of(one), false);
    for (const char* action : {"step", "draw"}) {
        BOOST_TEST(!row(report, "train", action).mean_s);
        BOOST_TEST(row(report, "train", action).samples_per_second == "-");
        BOOST_TEST(row(report, "train", action).calls == 2u);
    }
    BOOST_TEST(row(report, "fit", "train").samples_per_second == "-");
    BOOST_TEST(row(report, "fit", "train").mean_s.value() == 3.0);
    BOOST_TEST(row(report, "train", "batch").samples_per_second == "2");
    BOOST_TEST(row(report, "valid", "draw").samples_per_second == "-4");
}

BOOST_AUTO_TEST_CASE(a_ledger_of_the_recorded_costs_gives_the_originals_durations_and_report) {
    golden::Replays replays{"golden_fastxtend"};
    for (const golden::Case& one : golden::cases("g2_fastxtend")) {
        if (!golden::is_plain_fit(one.input)) {
            replays.by_rule(one.path, "", "not a plain fit, golden_fit replays it");
            continue;
        }
        replays(one.path, [&] {
            const Replay replay{one.input};
            const FastxtendValues ours = fastxtend_values(replay.ledger());
            const auto report = fastxtend_report(ours, golden::mode_of(one), golden::drops_first_batch(one));
            if (one.failed())
                check_complete(report);
            else
                check_texts(one, report);

            const auto recorded = one.output.find("raw_values");
            if (recorded == one.output.end() || golden::mode_of(one) == ProfileMode::throughput)
                return;
            const FastxtendValues theirs = golden::values_of(*recorded);
            BOOST_TEST(ours.fit.value() == theirs.fit.value());
            BOOST_TEST(ours.epoch == theirs.epoch, boost::test_tools::per_element());
            BOOST_TEST(ours.train == theirs.train, boost::test_tools::per_element());
            BOOST_TEST(ours.valid == theirs.valid, boost::test_tools::per_element());
            check_equal(ours.train_batches, theirs.train_batches);
            check_equal(ours.valid_batches, theirs.valid_batches);
        });
    }
}

BOOST_AUTO_TEST_CASE(the_simple_profiler_of_0_0_19_has_a_step_column_and_never_drops_a_batch) {
    golden::Replays replays{"golden_fastxtend"};
    for (const golden::Case& one : golden::cases("g2_fastxtend_seed001_v0.0.19"))
        replays(one.path, [&] {
            check_texts(
                one, fastxtend_report(golden::values_of(one.output.at("raw_values")), ProfileMode::simple_old, true));
        });
}

BOOST_AUTO_TEST_CASE(a_fit_without_validation_batches_has_empty_validation_rows) {
    const auto one = golden::own_case("g2_fastxtend", "simple_no_valid_batches");
    const auto report = fastxtend_report(golden::values_of(one.output.at("raw_values")), ProfileMode::simple);
    BOOST_TEST(row(report, "fit", "valid").samples_per_second == "-");
    for (const char* action : {"step", "draw", "batch", "predict", "loss"})
        check_absent(row(report, "valid", action));
    BOOST_TEST(row(report, "train", "step").calls == 3u);
}

BOOST_AUTO_TEST_CASE(a_single_batch_that_is_dropped_leaves_empty_rows_but_its_pass) {
    const auto one = golden::own_case("g2_fastxtend", "simple_one_batch_drop");
    const auto report = fastxtend_report(golden::values_of(one.output.at("raw_values")), ProfileMode::simple);
    check_absent(row(report, "train", "zero_grad"));
    check_absent(row(report, "valid", "step"));
    BOOST_TEST(row(report, "fit", "train").samples_per_second == "447");
    BOOST_TEST(to_csv(report).find("train,step,-,-,0,-,-,-\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_stage_that_takes_no_time_has_no_rate) {
    const auto one = golden::own_case("g2_fastxtend", "simple_zero_time_loss");
    const auto report = fastxtend_report(golden::values_of(one.output.at("raw_values")), ProfileMode::simple);
    BOOST_TEST(row(report, "train", "loss").samples_per_second == "-");
    BOOST_TEST(row(report, "train", "loss").percent_of_total == "0%");
    BOOST_TEST(row(report, "train", "forward").samples_per_second == "4,155");
}

BOOST_AUTO_TEST_CASE(a_stage_that_happens_in_some_batches_only_is_counted_in_those) {
    const auto report = report_of(ProfileMode::simple, [](FastxtendValues& values) {
        values.train_batches[0].opt_step.reset();
        values.train_batches[0].zero_grad.reset();
    });
    BOOST_TEST(row(report, "train", "opt_step").calls == 1u);
    BOOST_TEST(row(report, "train", "opt_step").samples_per_second == "32");
    BOOST_TEST(row(report, "train", "backward").calls == 2u);
    BOOST_TEST(row(report, "train", "batch").calls == 2u);
}

BOOST_AUTO_TEST_CASE(a_report_without_a_fit_has_no_shares) {
    const auto report = report_of(ProfileMode::throughput, [](FastxtendValues& values) { values.fit.reset(); });
    for (const FastxtendRow& each : report.rows)
        BOOST_TEST(each.percent_of_total == "-");
    BOOST_TEST(row(report, "train", "draw").samples_per_second == "-1");
}

BOOST_AUTO_TEST_CASE(an_integer_column_stays_one_until_a_value_is_off_by_more_than_1e_8) {
    const auto whole = report_of(ProfileMode::throughput, [](FastxtendValues& values) {
        values.epoch = {4.00000001};
        for (auto* batches : {&values.train_batches, &values.valid_batches})
            for (FastxtendBatch& batch : *batches)
                batch.draw = 2, batch.batch = 3;
    });
    BOOST_TEST(to_csv(whole).find("fit,epoch,4,0,1,-,4.00000001,50%\n") != std::string::npos, to_csv(whole));
    const auto split = report_of(ProfileMode::throughput, [](FastxtendValues& values) { values.epoch = {4.00000001}; });
    BOOST_TEST(to_csv(split).find("fit,epoch,4.0,0,1,-,4.00000001,50%\n") != std::string::npos, to_csv(split));
}

BOOST_AUTO_TEST_CASE(seconds_in_the_csv_are_the_shortest_text_that_reads_back_exactly) {
    const auto text = [](double seconds) {
        FastxtendValues values;
        values.fit = seconds;
        const auto report = fastxtend_report(values, ProfileMode::throughput);
        return raw_cells(report).front().at(6);
    };
    BOOST_TEST(text(0.1) == "0.1");
    BOOST_TEST(text(3) == "3.0");
    BOOST_TEST(text(1e-4) == "0.0001");
    BOOST_TEST(text(1e-5) == "1e-05");
    BOOST_TEST(text(1234567890123456.0) == "1234567890123456.0");
    BOOST_TEST(text(1e16) == "1e+16");
    BOOST_TEST(text(5e-324) == "5e-324");
    BOOST_TEST(text(209525.99090260244) == "209525.99090260244");
}

BOOST_AUTO_TEST_CASE(a_cut_step_and_a_cut_pass_are_left_out) {
    const auto one = golden::own_case("g2_fastxtend", "simple_one_batch_nodrop");
    Ledger ledger = Replay{one.input}.ledger();
    const auto last_span_of = [&](const Slice& slice) -> SpanRow& {
        return ledger.spans[slice.first + slice.count - 1];
    };
    const FastxtendValues whole = fastxtend_values(ledger);
    BOOST_REQUIRE(whole.train_batches.size() == 1u);
    BOOST_REQUIRE(whole.train.size() == 1u);

    last_span_of(ledger.steps[0].spans).span = Span::other;   // its after_batch was not reached
    for (const PassRow& pass : ledger.passes)
        if (pass.kind != PassKind::valid)
            last_span_of(pass.spans).span = Span::between;
    const FastxtendValues cut = fastxtend_values(ledger);
    BOOST_TEST(cut.train_batches.empty());
    BOOST_TEST(cut.valid_batches.size() == 1u);
    BOOST_TEST(cut.train.empty());
    BOOST_TEST(cut.epoch.empty());
    BOOST_TEST(cut.valid.size() == 1u);
    BOOST_TEST(cut.fit.value() == whole.fit.value());
}

BOOST_AUTO_TEST_CASE(only_the_last_fit_of_a_ledger_is_reported) {
    const auto one = golden::own_case("g2_fastxtend", "simple_one_batch_nodrop");
    auto late_input = one.input;
    late_input["clock_start_ns"] = 5'000'000'000;
    Ledger both = Replay{one.input}.ledger();
    const Ledger late = Replay{late_input}.ledger();
    const auto offset = static_cast<std::uint32_t>(both.spans.size());
    const auto append = [offset](auto& rows, const auto& more) {
        for (auto one_more : more) {
            one_more.spans.first += offset;
            rows.push_back(one_more);
        }
    };
    append(both.passes, late.passes);
    append(both.steps, late.steps);
    both.spans.insert(both.spans.end(), late.spans.begin(), late.spans.end());

    const FastxtendValues of_both = fastxtend_values(both), of_late = fastxtend_values(late);
    BOOST_TEST(of_both.train == of_late.train, boost::test_tools::per_element());
    check_equal(of_both.train_batches, of_late.train_batches);
    check_equal(of_both.valid_batches, of_late.valid_batches);
}

BOOST_AUTO_TEST_SUITE_END()
