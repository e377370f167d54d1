#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <tuple>

#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"
#include "instrumentation/trace/allocations.hpp"
#include "instrumentation/trace/recorded_run.hpp"

using namespace drawpoint;

namespace {

bool close(double a, double b, double share) { return std::abs(a - b) <= share * std::abs(b) + 1e-18; }

bool close(std::optional<double> a, std::optional<double> b, double share) {
    return a.has_value() == b.has_value() && (!a || close(*a, *b, share));
}

template <class Row>
void check_row(const Row& folded, const Row& exact, const std::string& what) {
    BOOST_TEST(folded.calls == exact.calls, what);
    BOOST_TEST(folded.total_s == exact.total_s, what);
    BOOST_TEST(folded.mean_s == exact.mean_s, what);
    BOOST_TEST(close(folded.median_s, exact.median_s, 0.01), what);
    BOOST_TEST(close(folded.p90_s, exact.p90_s, 0.01), what);
    BOOST_TEST(close(folded.p99_s, exact.p99_s, 0.01), what);
}

/// Checks equality, except for quantiles, rounding of deviations and rates, and the queue.
void check_alike(Summary folded, Summary exact) {
    BOOST_TEST_REQUIRE(folded.rows.size() == exact.rows.size());
    for (std::size_t i = 0; i < exact.rows.size(); ++i) {
        const SummaryRow &row = folded.rows[i], &other = exact.rows[i];
        const std::string what = std::string{other.phase} + " " + std::string{name_of(other.action)};
        BOOST_TEST((row.phase == other.phase && row.action == other.action), what);
        check_row(row, other, what);
        BOOST_TEST(close(row.std_s, other.std_s, 1e-9), what);
        BOOST_TEST((row.share_of_total == other.share_of_total), what);
        BOOST_TEST(close(row.samples_per_s, other.samples_per_s, 1e-9), what);
    }
    BOOST_TEST_REQUIRE(folded.stages.size() == exact.stages.size());
    for (std::size_t i = 0; i < exact.stages.size(); ++i) {
        StageSummary &stage = folded.stages[i], &other = exact.stages[i];
        check_row(stage, other, other.stage);
        stage.median_s = other.median_s;
        stage.p90_s = other.p90_s;
        stage.p99_s = other.p99_s;
        BOOST_TEST((stage == other), other.stage);
    }
    BOOST_TEST((folded.run == exact.run));
    BOOST_TEST((folded.draw == exact.draw));
    BOOST_TEST((folded.workers == exact.workers));
    // Of folded pieces only the sum is known: where some are missing or overlap, the figure is another, but never 0.
    BOOST_TEST((folded.conservation.untiled_ns == 0) == (exact.conservation.untiled_ns == 0));
    folded.conservation.untiled_ns = exact.conservation.untiled_ns;
    BOOST_TEST((folded.conservation == exact.conservation));
    BOOST_TEST((folded.headroom == exact.headroom));
    BOOST_TEST((folded.model == exact.model));
    BOOST_TEST((folded.errors == exact.errors));
    BOOST_TEST((folded.left_out == exact.left_out));
    BOOST_TEST(!exact.recording.percentile_error_share.has_value());
    BOOST_TEST((folded.recording.percentile_error_share == std::optional{0.01}));
}

struct Recorded {
    Ledger live, file;
};

Recorded record(std::uint64_t seed, std::size_t ledger_steps, const RunShape& shape) {
    constexpr std::int64_t start_ns = 1'000'000'000;
    const TemporaryFile file;
    ManualClock clock{start_ns};
    Recorder recorder{file.path(), {.ledger_steps = ledger_steps}, AnyClock{clock}};
    play(random_run(seed, start_ns, shape), recorder, &clock);
    recorder.finish();
    BOOST_TEST_REQUIRE(recorder.state().dropped == 0u);
    return {recorder.ledger(), read_trace(file.path()).ledger};
}

/// Checks all totals of a run of `check_bounded`.
void check_totals(const Summary& summary, std::int64_t steps) {
    BOOST_TEST(summary.run.steps == static_cast<std::size_t>(steps));
    BOOST_TEST(summary.run.samples == static_cast<std::uint64_t>(2 * steps));
    BOOST_TEST(summary.recording.dropped == 0u);
    BOOST_TEST(summary.conservation.steps == static_cast<std::size_t>(steps));
    BOOST_TEST(summary.conservation.max_residual_ns == 0);
    BOOST_TEST((summary.model.loss_first == 0.0 && summary.model.loss_last == 9.0));
    BOOST_TEST(summary.queue.value().occupancy == 0.2, boost::test_tools::tolerance(1e-2));
    BOOST_TEST(summary.workers.at(0).samples == static_cast<std::uint64_t>(2 * steps));
    BOOST_TEST(summary.stages.at(0).bytes == static_cast<std::uint64_t>(6 * steps));
    for (const SummaryRow& row : summary.rows)
        if (row.action == Action::draw || row.action == Action::batch) {
            BOOST_TEST(row.calls == static_cast<std::size_t>(steps - 1));
            BOOST_TEST(std::llround(row.total_s * 1e9) ==
                       (row.action == Action::draw ? 30 * (steps - 1) : 101 * steps / 2 - 50));
            BOOST_TEST((row.median_s == (row.action == Action::draw ? 30e-9 : 51e-9)));
        }
}

/// Records epochs of 2000 steps of which everything is known, and checks at times what the ledger keeps, what memory is
/// taken and how large the file is, and in the end all totals, live and read back.
void check_bounded(const RecorderOptions& options, std::uint32_t epochs, std::size_t limit, std::size_t most_bytes) {
    using std::chrono::nanoseconds;
    constexpr std::uint32_t batches = 2000;
    ManualClock clock{1'000'000};
    const std::size_t bytes_before = allocated_bytes();
    const TemporaryFile file;
    Recorder recorder{file.path(), options, AnyClock{clock}};
    recorder.add_pipeline({"train", {"read", "decode"}, 2, 1, 1});
    WorkerTrack worker = recorder.add_worker();
    LoopTrack track{recorder};
    track.begin_pass(PassKind::fit, 0);
    std::size_t most = 0;
    const std::uint32_t every = std::max(epochs / 100, 1u);
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        track.begin_pass(PassKind::train, epoch);
        for (std::uint32_t batch = 0; batch < batches; ++batch) {
            const std::int64_t now_ns = clock.now_ns();
            for (std::uint32_t slot = 0; slot < 2; ++slot) {
                SampleRecord sample;
                sample.row = {
                    .epoch = epoch, .batch = batch, .slot = slot, .bytes = 3, .begin_ns = now_ns, .stages = {}};
                sample.stage_count = 2;
                sample.stages = {StageRow{now_ns, 5}, StageRow{now_ns + 5, 5}};
                worker.push(sample);
            }
            track.begin_step(Phase::train, epoch, batch);
            clock.advance(nanoseconds{30});
            track.mark(Span::starved);
            recorder.push(BatchRow{.epoch = epoch,
                                   .batch = batch,
                                   .size = 2,
                                   .admitted_ns = now_ns,
                                   .offered_ns = now_ns + 10,
                                   .taken_ns = now_ns + 30});
            track.end_draw(2);
            clock.advance(nanoseconds{50 + batch % 2});
            track.mark(Span::forward);
            const bool has_loss = epoch == 0 && batch < 10;
            track.end_step(StepStatus::complete, has_loss ? std::optional<double>{batch} : std::nullopt);
            clock.advance(nanoseconds{20 - batch % 2});
            track.mark(Span::between);
            most = std::max(most, allocated_bytes() - bytes_before);
            if (batch % 1000 != 999 || epoch % every != 0)
                continue;
            BOOST_TEST_REQUIRE(std::filesystem::file_size(file.path()) <= options.limit_bytes);
            const Ledger ledger = recorder.ledger();
            BOOST_TEST_REQUIRE(ledger.steps.size() <= limit);
            BOOST_TEST_REQUIRE(ledger.batches.size() <= limit + 1);
            // including those that wait for their batch's step
            BOOST_TEST_REQUIRE(ledger.samples.size() <= 4 * limit);
            BOOST_TEST_REQUIRE(ledger.stages.size() == 2 * ledger.samples.size());
            BOOST_TEST_REQUIRE(ledger.spans.size() == 3 * ledger.steps.size());
            BOOST_TEST_REQUIRE(ledger.folded.actions.size() <= action_count);
            BOOST_TEST_REQUIRE(ledger.folded.stages.size() <= 2u);
            BOOST_TEST_REQUIRE(ledger.folded.workers.size() <= 1u);
        }
        track.end_steps();
        track.end_pass();
    }
    track.end_pass();
    recorder.finish();
    BOOST_TEST(most < most_bytes);
    const std::int64_t steps = std::int64_t{epochs} * batches;
    check_totals(summarize(recorder.ledger()), steps);
    BOOST_TEST(recorder.state().bytes == std::filesystem::file_size(file.path()));
    BOOST_TEST(recorder.state().bytes <= options.limit_bytes);
    check_totals(summarize(read_trace(file.path(), 16u << 20).ledger), steps);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(folding)

BOOST_AUTO_TEST_CASE(the_report_of_a_folded_run_is_that_of_its_file_but_for_the_stated_error_of_percentiles) {
    std::uint64_t seed = 0;
    for (const std::size_t ledger_steps : {1u, 2u, 7u, 30u, 100u, 200u})
        for (const bool end_passes : {true, false}) {
            const RunShape shape{
                .epochs = 4, .train_batches = 50, .valid_batches = 13, .odd_stamps = false, .end_passes = end_passes};
            const Recorded run = record(++seed, ledger_steps, shape);
            BOOST_TEST(run.file.steps.size() == 4u * 63);
            BOOST_TEST(run.live.steps.size() <= std::max<std::size_t>(ledger_steps, 6));
            BOOST_TEST(run.live.steps.size() + run.live.folded.steps == run.file.steps.size());
            for (const bool drop_first_batch : {true, false})
                check_alike(summarize(run.live, {drop_first_batch}), summarize(run.file, {drop_first_batch}));
        }
}

BOOST_AUTO_TEST_CASE(the_report_of_a_file_of_limited_size_is_that_of_the_whole_run) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        constexpr std::int64_t start_ns = 1'000'000'000;
        const RecordedRun run =
            random_run(seed, start_ns, {.epochs = 6, .train_batches = 50, .odd_stamps = seed % 2 == 0});
        const auto record_with = [&](Recorder& recorder, ManualClock& clock) {
            play(run, recorder, &clock);
            recorder.finish();
            return recorder.ledger();
        };
        ManualClock clock{start_ns}, same{start_ns};
        Recorder unbounded{{.ledger_bytes = 0}, AnyClock{clock}};
        const Ledger whole = record_with(unbounded, clock);
        const TemporaryFile file;
        Recorder limited{file.path(), {.limit_bytes = 40'000}, AnyClock{same}};
        const Ledger live = record_with(limited, same), read = read_trace(file.path()).ledger;
        BOOST_TEST((read == live));
        BOOST_TEST(read.folded.steps > 10u);
        check_alike(summarize(read), summarize(whole));
    }
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_kept_has_all_its_samples) {
    const auto samples_of = [](const Ledger& ledger, const BatchRow& batch) {
        return std::ranges::count_if(ledger.samples, [&](const SampleRow& sample) {
            return std::tie(sample.pipeline, sample.epoch, sample.batch) ==
                   std::tie(batch.pipeline, batch.epoch, batch.batch);
        });
    };
    for (std::uint64_t seed = 50; seed < 60; ++seed) {
        const auto [live, file] = record(seed, 30, {.epochs = 3, .odd_stamps = false});
        BOOST_TEST(live.batches.size() >= 15u);
        BOOST_TEST(live.samples.size() < file.samples.size());
        for (const BatchRow& batch : live.batches)
            BOOST_TEST(samples_of(live, batch) == samples_of(file, batch));
    }
}

BOOST_AUTO_TEST_CASE(gaps_between_pieces_and_missing_stamps_fold_like_all_else) {
    for (std::uint64_t seed = 100; seed < 104; ++seed) {
        const Recorded run = record(seed, 20, {.epochs = 3});
        BOOST_TEST(max_residual_ns(run.file) > 0);
        check_alike(summarize(run.live), summarize(run.file));
    }
}

BOOST_AUTO_TEST_CASE(a_run_that_fits_is_kept_whole) {
    const Recorded run = record(200, 72, {.epochs = 3});   // exactly its number of steps
    BOOST_TEST(run.live.folded.steps == 0u);
    BOOST_TEST((run.live == run.file));
}

BOOST_AUTO_TEST_CASE(a_folded_ledger_is_another_one_and_sorts_its_folded_rows) {
    const Recorded run = record(300, 20, {.epochs = 3});
    Ledger ledger = run.live;
    std::ranges::reverse(ledger.folded.actions);
    std::ranges::reverse(ledger.folded.stages);
    std::ranges::reverse(ledger.folded.workers);
    BOOST_TEST((ledger != run.live));
    ledger.sort();
    BOOST_TEST((ledger == run.live));
    ledger.folded = {};
    BOOST_TEST((ledger != run.live));
}

BOOST_AUTO_TEST_CASE(a_window_may_begin_where_folding_ended_and_no_earlier) {
    const auto [live, file] = record(400, 20, {.epochs = 3, .odd_stamps = false});
    const std::int64_t from_ns = live.folded.until_ns, to_ns = live.passes.front().end_ns;
    const Ledger part = window(live, from_ns, to_ns);
    BOOST_TEST(part.steps.size() >= 10u);
    BOOST_TEST((part == window(file, from_ns, to_ns)));
    BOOST_CHECK_THROW((void)window(live, from_ns - 1, to_ns), std::invalid_argument);
    BOOST_CHECK_NO_THROW((void)window(file, from_ns - 1, to_ns));
}

BOOST_AUTO_TEST_CASE(cpu_time_lost_samples_and_a_wall_without_passes_are_those_of_the_whole_run) {
    const auto ledger_of = [](std::size_t ledger_steps) {
        LedgerBuilder builder{0, ledger_steps};
        for (const PipelineRow& row : {PipelineRow{"train", {"whole"}, 2, 1, 1},
                                       {"valid", {"read", "whole"}, 2, 1, 1},
                                       {"test", {"lone"}, 2, 1, 1}})
            builder.pipeline(row);
        for (std::int64_t i = 0; i < 100; ++i) {
            const auto number = static_cast<std::uint32_t>(i);
            const std::array spans{SpanRow{Span::starved, 10 * i, 3}, SpanRow{Span::other, 10 * i + 3, 7}};
            const std::array stages{StageRow{10 * i, 8}, StageRow{10 * i + 8, 1}};
            SampleRow sample{.batch = number, .pipeline = 0, .bytes = 5, .begin_ns = 10 * i, .stages = {}};
            sample.cpu_ns = i;
            sample.run_queue_ns = 2 * i;
            builder.sample(sample, std::span{stages}.first(1));
            if (i < 20) {
                sample.pipeline = 1;
                builder.sample(sample, stages);
                sample.pipeline = 2;
                if (i == 7)
                    sample.run_queue_ns.reset();
                builder.sample(sample, std::span{stages}.first(1));
            }
            builder.batch({.batch = number, .size = 2, .admitted_ns = 10 * i, .taken_ns = 10 * i + 3});
            if (i > 0)
                builder.dropped({.records = 1, .from_ns = 10 * i, .to_ns = 10 * i, .ring = 1});
            StepRow step{.step = number, .batch = number, .draw_begin_ns = 10 * i, .loss = {}, .spans = {}};
            step.status = i % 50 == 0 ? StepStatus::failed : StepStatus::complete;
            step.size = i % 7 == 3 ? 0 : 2;
            step.draw_ns = 3;
            step.batch_ns = 7;
            builder.step(step, spans);
        }
        return builder.ledger();
    };
    const Summary exact = summarize(ledger_of(0));
    // 4950 ns over 800 measured samples, scaled to all 820, which include 20 of another loader with 1 ns each.
    BOOST_TEST(close(exact.stages.at(0).cpu_s, 4950e-9 / 800 * 820, 1e-12));
    BOOST_TEST(!exact.stages.at(0).run_queue_s);   // one of its loaders has other stages
    // one measured sample was a straggler
    BOOST_TEST(close(exact.stages.at(2).cpu_s, (190e-9 - 7e-9) / 152 * 160, 1e-12));
    BOOST_TEST(close(exact.stages.at(2).run_queue_s, (380e-9 - 14e-9) / 152 * 160, 1e-12));
    BOOST_TEST(exact.workers.at(0).busy_share > 1.0);   // lost samples are assumed to be like the others
    for (const std::size_t ledger_steps : {1u, 10u})
        check_alike(summarize(ledger_of(ledger_steps)), exact);
}

BOOST_AUTO_TEST_CASE(steps_after_a_pass_are_none_of_its_steps) {
    LedgerBuilder builder{0, 10};
    builder.pass_begin({.kind = PassKind::train, .begin_ns = 0, .spans = {}});
    const auto step = [&](std::uint32_t number) {
        const std::int64_t at_ns = 10 * std::int64_t{number} + (number < 20 ? 0 : 5);
        builder.step(
            {.step = number, .size = 1, .draw_begin_ns = at_ns, .draw_ns = 3, .batch_ns = 7, .loss = {}, .spans = {}},
            std::array{SpanRow{Span::starved, at_ns, 3}, SpanRow{Span::other, at_ns + 3, 7}});
    };
    for (std::uint32_t i = 0; i < 20; ++i)
        step(i);
    builder.pass({.kind = PassKind::train, .begin_ns = 0, .end_ns = 200, .spans = {}}, {});
    for (std::uint32_t i = 20; i < 100; ++i)
        step(i);
    const Ledger ledger = builder.ledger();
    BOOST_TEST_REQUIRE(ledger.passes.size() == 1u);
    BOOST_TEST(ledger.folded.steps >= 80u);
    BOOST_TEST(ledger.passes[0].folded_ns == 190);   // a run's first step is never folded
}

BOOST_AUTO_TEST_CASE(what_is_folded_to_few_bytes_keeps_few_rows_of_the_host) {
    LedgerBuilder builder{0, 0};
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const std::int64_t at_ns = 10 * std::int64_t{i};
        builder.host({.at_ns = at_ns});
        builder.step(
            {.step = i, .size = 1, .draw_begin_ns = at_ns, .draw_ns = 3, .batch_ns = 7, .loss = {}, .spans = {}}, {});
    }
    builder.fold_to(200'000);
    BOOST_TEST(builder.ledger().host.size() > 500u);
    builder.fold_to(4'000);
    const Ledger ledger = builder.ledger();
    const std::size_t kept = ledger.steps.size();
    BOOST_TEST(kept < 100u);
    BOOST_TEST(ledger.host.size() <= 16 + kept);
    BOOST_TEST(ledger.host.front().at_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_few_batches_of_many_samples_are_folded_too) {
    constexpr std::uint32_t samples = 1u << 14, batches = 15;   // 30 MB
    LedgerBuilder builder{0, 0, 1u << 20};
    std::size_t most = 0;
    for (std::uint32_t batch = 0; batch < batches; ++batch) {
        const std::int64_t at_ns = 1'000'000 * std::int64_t{batch};
        for (std::uint32_t slot = 0; slot < samples; ++slot)
            builder.sample({.index = slot, .batch = batch, .slot = slot, .begin_ns = at_ns + slot}, {});
        builder.batch({.batch = batch,
                       .size = samples,
                       .admitted_ns = at_ns,
                       .offered_ns = at_ns + samples,
                       .taken_ns = at_ns + samples});
        most = std::max(most, builder.rows().samples.size());
    }
    BOOST_TEST(most <= 2 * samples);
    const Ledger ledger = builder.ledger();
    BOOST_TEST(ledger.folded.batch_samples + samples * ledger.batches.size() == samples * batches);
}

BOOST_AUTO_TEST_CASE(an_end_without_a_begin_is_wrong_unless_something_was_lost) {
    LedgerBuilder builder{0, 0};
    BOOST_TEST(!builder.operator_end(3, 10, false));
    builder.gap(100);
    BOOST_TEST(builder.operator_end(3, 10, false));
}

BOOST_AUTO_TEST_CASE(totals_of_a_device_stay_exact_when_its_rows_are_folded) {
    LedgerBuilder folding{0, 10}, whole{0, 0};
    for (std::int64_t i = 0; i < 2'000; ++i) {
        const std::int64_t at_ns = 1'000 * i;
        const StepRow step{.step = static_cast<std::uint32_t>(i),
                           .draw_begin_ns = at_ns,
                           .draw_ns = 300,
                           .batch_ns = 700,
                           .loss = {},
                           .spans = {}};
        const DeviceStepRow row{.step = step.step,
                                .free_ns = at_ns,
                                .queued_ns = at_ns + 310 + i % 7,
                                .begin_ns = at_ns + 350,
                                .end_ns = at_ns + 1'000,
                                .host_queued_ns = at_ns + 299,
                                .host_end_ns = at_ns + 900,
                                .uncertainty_ns = i % 13,
                                .dry_starved_ns = 250 + i % 5,
                                .dry_launch_ns = 11 + i % 7,
                                .draw_ns = 300};
        const TransferRow copy{.bytes = static_cast<std::uint64_t>(i), .begin_ns = at_ns, .end_ns = at_ns + i % 90};
        for (LedgerBuilder* const builder : {&folding, &whole}) {
            builder->transfer(copy);
            builder->device_step(row);
            builder->step(step, {});
        }
    }
    const Ledger folded = folding.ledger();
    BOOST_TEST(folded.device_steps.size() <= 20u);
    BOOST_TEST(folded.transfers.size() <= 20u);
    BOOST_TEST(device_totals(folded).steps == 2'000u);
    BOOST_TEST((device_totals(folded) == device_totals(whole.ledger())));
}

BOOST_AUTO_TEST_CASE(folding_keeps_the_setting_in_force_and_a_bounded_part_of_the_host) {
    LedgerBuilder builder{0, 10};
    for (std::int64_t i = 0; i < 20'000; ++i) {
        if (i % 1000 == 0)
            builder.setting({.at_ns = 10 * i,
                             .pipeline = static_cast<std::uint16_t>(i / 1000 % 2),
                             .num_workers = static_cast<std::uint32_t>(i)});
        builder.order({.begin_ns = 10 * i, .ns = 5});
        builder.host({.at_ns = 10 * i + 1, .own_cpu_ns = i});
        builder.step({.step = static_cast<std::uint32_t>(i),
                      .draw_begin_ns = 10 * i,
                      .draw_ns = 3,
                      .batch_ns = 7,
                      .loss = {},
                      .spans = {}},
                     {});
    }
    const Ledger ledger = builder.ledger();
    BOOST_TEST_REQUIRE(ledger.settings.size() == 2u);
    BOOST_TEST(ledger.settings[0].num_workers == 18'000u);
    BOOST_TEST(ledger.settings[1].num_workers == 19'000u);
    BOOST_TEST_REQUIRE(!ledger.orders.empty());
    BOOST_TEST(ledger.orders.size() <= ledger.steps.size());
    BOOST_TEST(ledger.orders.front().begin_ns + 5 >= ledger.folded.until_ns);   // of the steps kept
    BOOST_TEST(ledger.host.size() > 512u);
    BOOST_TEST(ledger.host.size() <= 1024u + 10u);
    BOOST_TEST(ledger.host.front().own_cpu_ns == 0);   // so differences cover the whole run
    BOOST_TEST(ledger.host.back().own_cpu_ns == 19'999);
}

BOOST_AUTO_TEST_CASE(stragglers_say_nothing_of_what_the_others_computed) {
    // One in ten samples is measured and waits half of its time. Every straggler's CPU time is known, and stragglers
    // only compute.
    const auto ledger_of = [](std::size_t ledger_steps) {
        LedgerBuilder builder{0, ledger_steps};
        builder.pipeline({"train", {"whole"}, 1, 1, 1});
        for (std::int64_t i = 0; i < 1000; ++i) {
            const auto number = static_cast<std::uint32_t>(i);
            const std::int64_t ns = i % 20 == 19 ? 80 : 8;
            SampleRow sample{.batch = number, .pipeline = 0, .begin_ns = 100 * i, .stages = {}};
            if (ns == 80) {
                sample.cpu_ns = 80;
            } else if (i % 10 == 0) {
                sample.cpu_ns = 4;
                sample.run_queue_ns = 1;
            }
            builder.sample(sample, std::array{StageRow{100 * i, ns}});
            builder.batch({.batch = number, .size = 1, .admitted_ns = 100 * i, .taken_ns = 100 * i + 90});
            builder.step({.step = number,
                          .batch = number,
                          .size = 1,
                          .draw_begin_ns = 100 * i,
                          .draw_ns = 90,
                          .batch_ns = 10,
                          .loss = {},
                          .spans = {}},
                         std::array{SpanRow{Span::starved, 100 * i, 90}, SpanRow{Span::other, 100 * i + 90, 10}});
        }
        return builder.ledger();
    };
    const Summary exact = summarize(ledger_of(0));
    BOOST_TEST(close(exact.stages.at(0).cpu_s, (950 * 8 + 50 * 80) * 1e-9 / 2, 1e-12));
    check_alike(summarize(ledger_of(10)), exact);
}

BOOST_AUTO_TEST_CASE(the_host_of_a_run_without_steps_is_bounded_and_reaches_back_to_its_begin) {
    for (const std::size_t ledger_steps : {0u, 10u}) {
        LedgerBuilder builder{0, ledger_steps};
        for (std::int64_t i = 0; i < 30'000; ++i)
            builder.host({.at_ns = 10 * i, .own_cpu_ns = i});
        const std::vector<HostRow> host = builder.ledger().host;
        BOOST_TEST(host.front().own_cpu_ns == 0);
        if (ledger_steps == 0) {
            BOOST_TEST(host.size() == 30'000u);
            continue;
        }
        BOOST_TEST(host.size() > 3000u);
        BOOST_TEST(host.size() <= 4096u);
        for (std::size_t i = 0; i < 2000; ++i)   // the newest half is kept unfolded
            BOOST_TEST_REQUIRE(host[host.size() - 1 - i].own_cpu_ns == 29'999 - static_cast<std::int64_t>(i));
    }
}

BOOST_AUTO_TEST_CASE(a_step_of_no_length_has_no_rate_folded_or_not) {
    const auto ledger_of = [](std::size_t ledger_steps) {
        LedgerBuilder builder{0, ledger_steps};
        for (std::uint32_t i = 0; i < 9; ++i) {
            StepRow step{.step = i, .size = i == 8 ? 0u : 1u, .draw_begin_ns = 10 * i, .loss = {}, .spans = {}};
            step.draw_ns = i == 2 ? 0 : 10;
            builder.step(step, {});
        }
        return builder.ledger();
    };
    for (const std::size_t ledger_steps : {1u, 4u}) {
        const Ledger folded = ledger_of(ledger_steps);
        BOOST_TEST((folded == ledger_of(ledger_steps)));   // whatever 1 / 0 - 1 / 0 gives
        check_alike(summarize(folded), summarize(ledger_of(0)));
    }
}

BOOST_AUTO_TEST_CASE(a_batch_that_was_never_taken_is_kept_where_a_step_of_its_time_is) {
    LedgerBuilder builder{0, 4};
    for (std::int64_t i = 0; i < 11; ++i) {
        const auto number = static_cast<std::uint32_t>(i);
        builder.batch({.batch = number, .status = BatchStatus::abandoned, .size = 2, .admitted_ns = 10 * i});
        builder.step({.step = number, .size = 2, .draw_begin_ns = 10 * i, .draw_ns = 10, .loss = {}, .spans = {}}, {});
    }
    const Ledger ledger = builder.ledger();
    const std::int64_t until_ns = ledger.folded.until_ns;
    const auto kept = [&](const StepRow& step) { return step.draw_begin_ns >= until_ns; };
    BOOST_TEST(std::ranges::all_of(ledger.batches, [&](const auto& row) { return row.admitted_ns >= until_ns; }));
    BOOST_TEST(std::ranges::ssize(ledger.batches) == std::ranges::count_if(ledger.steps, kept));
    BOOST_TEST(ledger.folded.batch_samples + 2 * ledger.batches.size() == 22u);
}

BOOST_AUTO_TEST_CASE(drops_before_the_steps_kept_are_one_row_a_ring) {
    LedgerBuilder builder{0, 10};
    for (std::int64_t i = 0; i < 100; ++i) {
        const std::array spans{SpanRow{Span::starved, 10 * i, 10}};
        for (const std::uint32_t ring : {0u, 7u})
            builder.dropped({.records = 1 + ring, .from_ns = 10 * i, .to_ns = 10 * i + 1, .ring = ring});
        builder.step(
            {.step = static_cast<std::uint32_t>(i), .size = 1, .draw_begin_ns = 10 * i, .draw_ns = 10, .loss = {}},
            spans);
    }
    const Ledger ledger = builder.ledger();
    BOOST_TEST(ledger.dropped_records() == 900u);
    const std::int64_t until_ns = ledger.folded.until_ns;
    BOOST_TEST(std::ranges::count_if(ledger.dropped, [&](const auto& row) { return row.to_ns < until_ns; }) == 2);
    for (std::size_t ring = 0; ring < 2; ++ring)
        BOOST_TEST(
            (ledger.dropped[ring] == DroppedRow{(ring == 0 ? 1u : 8u) * static_cast<std::uint64_t>(until_ns / 10), 0,
                                                until_ns - 9, ring == 0 ? 0u : 7u}));
    BOOST_TEST(std::ranges::all_of(
        ledger.dropped, [&](const auto& row) { return row.to_ns < until_ns || row.to_ns == row.from_ns + 1; }));
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_bounded_over_200000_steps_and_no_step_is_lost_to_the_report) {
    check_bounded({.ledger_steps = 1000}, 100, 1000, 4u << 20);
    constexpr std::size_t bytes = 512u << 10;
    // As many steps as there is room for: their samples and batches may still be in the workers' ring.
    check_bounded({.limit_bytes = 2u << 20, .ledger_bytes = bytes}, 100,
                  bytes / (sizeof(StepRow) + 3 * sizeof(SpanRow)), 4u << 20);
}

BOOST_AUTO_TEST_CASE(a_file_can_be_read_into_few_bytes_with_the_same_totals) {
    for (std::uint64_t seed = 300; seed < 304; ++seed) {
        const TemporaryFile file;
        constexpr std::int64_t start_ns = 1'000'000;
        ManualClock clock{start_ns};
        Recorder recorder{file.path(), {}, AnyClock{clock}};
        play(random_run(seed, start_ns, {.epochs = 4, .train_batches = 50, .odd_stamps = false}), recorder, &clock);
        recorder.finish();
        const Ledger whole = read_trace(file.path()).ledger, few = read_trace(file.path(), 64u << 10).ledger;
        BOOST_TEST(few.steps.size() < whole.steps.size() / 2);
        BOOST_TEST(few.steps.size() + few.folded.steps == whole.steps.size());
        check_alike(summarize(few), summarize(whole));
    }
}

BOOST_AUTO_TEST_SUITE_END()

// On demand: --run_test=folding_of_a_week. The suite's name is no file's, so ctest does not run it.
BOOST_AUTO_TEST_SUITE(folding_of_a_week, *boost::unit_test::disabled())

// A step every 25 ms for a week, with the recorder's usual options. Takes minutes.
BOOST_AUTO_TEST_CASE(a_week_of_24_million_steps_takes_64_mib_and_its_file_256) {
    check_bounded({}, 12'000, 200'000, 64u << 20);
}

BOOST_AUTO_TEST_SUITE_END()
