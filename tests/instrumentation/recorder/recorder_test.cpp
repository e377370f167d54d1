#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/allocations.hpp"
#include "instrumentation/trace/drawn_slices.hpp"
#include "support/burn_cpu.hpp"
#include "instrumentation/trace/recorded_run.hpp"
#include "support/sanitized.hpp"

using namespace drawpoint;

namespace {

SampleRecord sample_of(std::uint32_t batch, std::uint32_t slot) {
    SampleRecord record;
    record.row.batch = batch;
    record.row.slot = slot;
    record.row.begin_ns = 1'000'000 * (static_cast<std::int64_t>(batch) * 64 + slot);
    record.stage_count = 2;
    record.stages = {StageRow{record.row.begin_ns, 1000}, StageRow{record.row.begin_ns + 1000, 900'000}};
    return record;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(recorder)

BOOST_AUTO_TEST_CASE(a_ledger_taken_while_it_runs_holds_all_that_was_pushed_before) {
    Recorder recorder;
    WorkerTrack track = recorder.add_worker();
    for (std::uint32_t i = 0; i < 100; ++i) {
        SampleRecord record = sample_of(0, i);
        track.push(record);
        recorder.set_fact("last", std::to_string(i));
        const Ledger ledger = recorder.ledger();
        BOOST_TEST_REQUIRE(ledger.samples.size() == i + 1);
        BOOST_TEST_REQUIRE(ledger.fact("last").value() == std::to_string(i));
    }
}

BOOST_AUTO_TEST_CASE(samples_that_another_process_packed_are_recorded_as_if_a_worker_had_pushed_them) {
    const std::string file = (std::filesystem::temp_directory_path() / "packed.pftrace").string();
    Ledger live;
    {
        Recorder recorder{file, {.host_period = std::chrono::milliseconds{0}}};
        const std::uint16_t pipeline = recorder.add_pipeline({.name = "train", .stages = {"a", "b"}});
        PackedSamples packed{.pipeline = pipeline, .worker = 3, .epoch = 1, .batch = 7, .bytes = {}};
        for (std::uint32_t slot = 0; slot < 3; ++slot) {
            SampleRecord record = sample_of(7, slot);
            record.row.index = 10 * slot;
            record.row.samples = 1 + slot;
            if (slot == 1)
                record.row.cpu_ns = 5;
            pack(packed.bytes, record);
        }
        packed.bytes.push_back(std::byte{1});   // the beginning of another one
        recorder.add_samples(packed);
        recorder.push(BatchRow{.epoch = 1,
                               .batch = 7,
                               .size = 6,
                               .admitted_ns = 1,
                               .taken_ns = 9,
                               .delivery_begin_ns = 4,
                               .delivery_end_ns = 5,
                               .delivery_cpu_ns = 1});
        live = recorder.ledger();
    }
    BOOST_TEST_REQUIRE(live.samples.size() == 3u);
    for (std::uint32_t i = 0; i < 3; ++i) {
        const SampleRow& row = live.samples[i];
        BOOST_TEST(row.index == 10 * i);
        BOOST_TEST(row.slot == (i == 2 ? 3u : i));
        BOOST_TEST((row.worker == 3 && row.epoch == 1 && row.batch == 7 && row.stages.count == 2));
        BOOST_TEST(row.cpu_ns.has_value() == (i == 1));
    }
    BOOST_TEST(live.batches[0].delivery_cpu_ns == 1);
    BOOST_TEST((read_trace(file).ledger == live));
    std::filesystem::remove(file);
}

BOOST_AUTO_TEST_CASE(packed_samples_that_no_writer_takes_are_counted) {
    Recorder recorder;
    recorder.finish();
    PackedSamples packed;
    for (std::uint32_t slot = 0; slot < 4; ++slot)
        pack(packed.bytes, sample_of(0, slot));
    recorder.add_samples(packed);
    BOOST_TEST(recorder.state().dropped == 4u);
}

BOOST_AUTO_TEST_CASE(whatever_the_rings_did_not_take_is_counted) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.ring_records = 64}};
    constexpr std::uint32_t samples = 50'000, steps = 5'000;
    {
        std::jthread worker{[track = recorder.add_worker()]() mutable {
            for (std::uint32_t i = 0; i < samples; ++i) {
                SampleRecord record = sample_of(i / 64, i % 64);
                track.push(record);
            }
        }};
        const std::array spans{SpanRow{Span::starved, 0, 5}, SpanRow{Span::forward, 5, 7}};
        for (std::uint32_t i = 0; i < steps; ++i)
            recorder.push(StepRow{.step = i, .draw_ns = 5, .batch_ns = 7, .loss = {}, .spans = {}}, spans);
    }
    recorder.finish();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.samples.size() + ledger.steps.size() + ledger.dropped_records() == samples + steps);
    BOOST_TEST(ledger.dropped_records() == recorder.state().dropped);
    std::uint64_t of_loop = 0, of_worker = 0;
    for (const DroppedRow& row : ledger.dropped) {
        BOOST_TEST((row.ring == 0 || row.ring == 1));
        BOOST_TEST(row.from_ns <= row.to_ns);
        (row.ring == 0 ? of_loop : of_worker) += row.records;
    }
    BOOST_TEST(of_loop == steps - ledger.steps.size());
    BOOST_TEST(of_worker == samples - ledger.samples.size());
    BOOST_TEST(of_worker > 0u);   // the ring of 64 records cannot hold 50,000 during one pause of the writer
    BOOST_TEST((read_trace(file.path()).ledger == ledger));
}

BOOST_AUTO_TEST_CASE(a_loop_faster_than_the_writer_loses_no_step) {
    Recorder recorder;
    LoopTrack track{recorder};
    constexpr std::uint32_t steps = 60'000;   // fills the ring many times
    track.begin_pass(PassKind::train, 0);
    for (std::uint32_t i = 0; i < steps; ++i) {
        track.begin_step(Phase::train, 0, i);
        track.mark(Span::starved);
        track.end_draw(1);
        for (const Span span : {Span::forward, Span::loss, Span::backward, Span::opt_step, Span::zero_grad})
            track.mark(span);
        track.end_step(StepStatus::complete, std::nullopt);
        track.mark(Span::between);
    }
    track.end_pass();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.steps.size() == steps);
    BOOST_TEST(ledger.dropped_records() == 0u);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(a_step_says_what_the_loop_computed_with_its_batch_unless_the_clock_is_moved_by_hand) {
    using namespace std::chrono_literals;
    const auto run = [](Recorder& recorder) {
        LoopTrack track{recorder};
        track.begin_pass(PassKind::train, 0);
        for (std::uint32_t i = 0; i < 3; ++i) {
            track.begin_step(Phase::train, 0, i);
            test::burn_cpu(5ms);   // within the draw: not counted
            track.mark(Span::starved);
            track.end_draw(1);
            test::burn_cpu(2ms);
            track.mark(Span::forward);
            track.end_step(StepStatus::complete, std::nullopt);
            test::burn_cpu(1ms);   // between steps: not counted
            track.mark(Span::between);
        }
        track.end_pass();
        return recorder.ledger();
    };
    Recorder recorder;
    const Ledger ledger = run(recorder);
    BOOST_TEST_REQUIRE(ledger.steps.size() == 3u);
    for (const StepRow& step : ledger.steps) {
        BOOST_TEST_REQUIRE(step.cpu_ns.has_value());
        BOOST_TEST(*step.cpu_ns >= 2'000'000 - 100'000);   // the draw's end is stamped before the CPU time is read
        BOOST_TEST(*step.cpu_ns <= step.batch_ns);
        BOOST_TEST(step.run_queue_ns.has_value() == test::counts_run_queue());
        BOOST_TEST(step.between_run_queue_ns.has_value() == test::counts_run_queue());
        BOOST_TEST(step.between_run_queue_ns.value_or(0) >= 0);
    }
    const ManualClock clock;
    Recorder manual{{}, AnyClock{clock}};
    for (const StepRow& step : run(manual).steps)
        BOOST_TEST((!step.cpu_ns && !step.run_queue_ns && !step.between_run_queue_ns));
}

BOOST_AUTO_TEST_CASE(steps_are_measured_as_often_as_their_readings_may_cost) {
    Recorder recorder{{.ring_records = 1u << 14}, AnyClock{SteadyClock{}}};
    LoopTrack track{recorder};
    track.begin_pass(PassKind::train, 0);
    std::int64_t at_ns = recorder.now_ns();
    constexpr std::uint32_t steps = 4000;
    for (std::uint32_t i = 0; i < steps; ++i) {
        track.begin_step(Phase::train, 0, i);
        at_ns += 200'000;
        while (recorder.now_ns() < at_ns) {
        }
        track.mark_until(Span::starved, at_ns - 100'000);
        track.end_draw(1);
        track.mark_until(Span::forward, at_ns);
        track.end_step(StepStatus::complete, std::nullopt);
    }
    track.end_pass();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST_REQUIRE(ledger.steps.size() == steps);
    const auto measured =
        std::ranges::count_if(ledger.steps, [](const StepRow& row) { return row.cpu_ns.has_value(); });
    const double every = 7 * ReadingBudget::reading_ns / (ReadingBudget::share * 200'000);
    BOOST_TEST(static_cast<double>(measured) == steps / every, boost::test_tools::tolerance(0.1));
}

BOOST_AUTO_TEST_CASE(a_share_of_samples_thrown_away_is_exact_and_counted) {
    for (const double share : {0.0, 0.25, 0.5, 1.0}) {
        Recorder recorder{{.drop_share = share}};
        WorkerTrack track = recorder.add_worker();
        for (std::uint32_t i = 0; i < 1000; ++i) {
            SampleRecord record = sample_of(0, i);
            track.push(record);
        }
        const Ledger ledger = recorder.ledger();
        BOOST_TEST(static_cast<double>(ledger.dropped_records()) == share * 1000);
        BOOST_TEST(ledger.samples.size() + ledger.dropped_records() == 1000u);
    }
    BOOST_CHECK_THROW((Recorder{{.drop_share = 1.5}}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_push_never_allocates) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.ring_records = 256}};
    WorkerTrack track = recorder.add_worker();
    LoopTrack loop{recorder};
    SampleRecord record = sample_of(0, 0);
    const BatchRow batch{.admitted_ns = 1, .taken_ns = 2};
    const std::array spans{SpanRow{Span::starved, 0, 5}, SpanRow{Span::forward, 5, 7}};
    const std::size_t before = allocations();
    for (std::uint32_t i = 0; i < 2000; ++i) {   // more than the ring holds, since drops must not allocate, either
        track.push(record);
        recorder.push(batch);
        loop.begin_pass(PassKind::train, 0);
        loop.begin_step(Phase::train, 0, i);
        loop.mark(Span::starved);
        loop.end_draw(8);
        loop.mark(Span::forward);
        loop.end_step(StepStatus::complete, 0.5);
        loop.mark(Span::between);
        loop.end_pass();
        recorder.push(EndOfDataRow{});
        recorder.push(StepRow{}, spans);
    }
    BOOST_TEST(allocations() - before == 0u);
    const std::size_t counted = allocations();
    std::string* made = new std::string(100, 'x');
    BOOST_TEST(allocations() > counted);   // checks that allocations are counted at all
    delete made;
}

BOOST_AUTO_TEST_CASE(tracks_given_back_are_reused_and_others_are_new) {
    Recorder recorder;
    WorkerTrack first = recorder.add_worker(), second = recorder.add_worker();
    BOOST_TEST(first.worker() == 0);
    BOOST_TEST(second.worker() == 1);
    first = WorkerTrack{};
    BOOST_TEST(!first);
    WorkerTrack third = recorder.add_worker(), fourth = recorder.add_worker();
    BOOST_TEST(third.worker() == 0);
    BOOST_TEST(fourth.worker() == 2);
    const WorkerTrack moved = std::move(fourth);
    BOOST_TEST(moved.worker() == 2);
    BOOST_TEST(!fourth);
    SampleRecord record = sample_of(0, 0);
    fourth.push(record);   // an empty track accepts nothing
    BOOST_TEST(recorder.ledger().samples.empty());
}

BOOST_AUTO_TEST_CASE(after_finish_nothing_is_recorded_and_what_comes_is_counted) {
    const TemporaryFile file;
    Recorder recorder{file.path()};
    WorkerTrack track = recorder.add_worker();
    SampleRecord record = sample_of(0, 0);
    track.push(record);
    recorder.finish();
    const Ledger finished = recorder.ledger();
    BOOST_TEST(finished.samples.size() == 1u);
    track.push(record);
    recorder.push(EndOfDataRow{});
    recorder.set_fact("late", "yes");
    recorder.finish();
    WorkerTrack late = recorder.add_worker();
    late.push(record);
    BOOST_TEST((recorder.ledger() == finished));
    BOOST_TEST(recorder.state().dropped == 4u);
    BOOST_TEST((read_trace(file.path()).ledger == finished));
}

BOOST_AUTO_TEST_CASE(a_recording_stays_within_its_limit_and_keeps_all_totals) {
    constexpr std::uint32_t batches = 1500;
    for (const std::uint32_t stepped : {batches, 100u, 0u})   // of the rest, batches are drawn without steps
        for (const std::uint64_t limit : {40'000u, 100'000u, 400'000u}) {
            const TemporaryFile file;
            ManualClock clock{0};   // so no rows of the host, of which a slow run would have more
            Recorder recorder{file.path(), {.limit_bytes = limit, .ledger_bytes = 0}, AnyClock{clock}};
            recorder.add_pipeline({"train", {"read", "decode"}, 16, 1, 2});
            WorkerTrack track = recorder.add_worker();
            std::uint64_t most_bytes = 0;
            for (std::uint32_t b = 0; b < batches; ++b) {
                for (std::uint32_t slot = 0; slot < 16; ++slot) {
                    SampleRecord record = sample_of(b, slot);
                    track.push(record);
                }
                const std::int64_t begin_ns = sample_of(b, 0).row.begin_ns, end_ns = sample_of(b + 1, 0).row.begin_ns;
                recorder.push(BatchRow{
                    .batch = b, .size = 16, .admitted_ns = begin_ns, .offered_ns = end_ns, .taken_ns = end_ns});
                if (b < stepped)
                    recorder.push(StepRow{.step = b,
                                          .batch = b,
                                          .size = 16,
                                          .draw_begin_ns = begin_ns,
                                          .draw_ns = end_ns - begin_ns,
                                          .batch_ns = 100,
                                          .loss = {},
                                          .spans = {}},
                                  {});
                clock.advance(std::chrono::nanoseconds{end_ns - begin_ns});
                if (b % 8 != 0)
                    continue;
                (void)recorder.ledger();   // lets the writer keep up
                most_bytes = std::max(most_bytes, std::filesystem::file_size(file.path()));
            }
            recorder.finish();
            const Ledger ledger = recorder.ledger();
            const auto kept = std::ssize(ledger.steps);
            BOOST_TEST(ledger.dropped_records() == 0u);
            BOOST_TEST(most_bytes <= limit);
            BOOST_TEST(most_bytes > limit / 2);
            BOOST_TEST(recorder.state().bytes <= limit);
            BOOST_TEST(ledger.folded.steps + static_cast<std::uint64_t>(kept) == stepped);
            BOOST_TEST(ledger.batches.back().batch == batches - 1);
            BOOST_TEST(ledger.batches.size() < batches);
            BOOST_TEST(ledger.folded.batch_samples + 16 * ledger.batches.size() == 16 * batches);
            BOOST_TEST(ledger.folded.workers.at(0).samples + ledger.samples.size() == 16 * batches);
            BOOST_TEST((read_trace(file.path()).ledger == ledger));
        }
}

BOOST_AUTO_TEST_CASE(a_pipe_has_no_limit) {
    const TemporaryFile pipe, file;
    BOOST_TEST_REQUIRE(::mkfifo(pipe.path().c_str(), 0600) == 0);
    const int from = ::open(pipe.path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ManualClock clock{100};
    Recorder recorder{pipe.path(), {.limit_bytes = 10'000}, AnyClock{clock}};
    std::jthread reader{[&] {
        ::fcntl(from, F_SETFL, 0);   // from here on it waits for the writer
        std::ofstream to{file.path(), std::ios::binary};
        std::array<char, 4096> bytes;
        for (ssize_t got = 0; (got = ::read(from, bytes.data(), bytes.size())) > 0;)
            to.write(bytes.data(), got);
    }};
    const RecordedRun run = random_run(4, 100);
    play(run, recorder, &clock);
    recorder.finish();
    reader.join();
    ::close(from);
    BOOST_TEST(recorder.state().error == "");
    BOOST_TEST((read_trace(file.path()).ledger == ledger_of(run, 100)));
}

BOOST_AUTO_TEST_CASE(a_file_that_was_moved_is_not_replaced_and_has_no_limit) {
    const test::TemporaryFolder folder;
    const std::filesystem::path file = folder / "run.pftrace";
    ManualClock clock{100};
    Recorder recorder{file, {.limit_bytes = 20'000}, AnyClock{clock}};
    std::filesystem::rename(file, folder / "moved.pftrace");
    test::put_bytes(file, "somebody else's");
    const RecordedRun run = random_run(4, 100);
    play(run, recorder, &clock);
    recorder.finish();
    BOOST_TEST(test::bytes_in(file) == "somebody else's");
    BOOST_TEST((read_trace(folder / "moved.pftrace").ledger == ledger_of(run, 100)));
}

/// Pushes a hundred steps, the first one with this number, and waits until they are written.
void push_steps(Recorder& recorder, std::uint32_t first) {
    for (std::uint32_t i = first; i < first + 100; ++i)
        recorder.push(StepRow{.step = i,
                              .batch = i,
                              .size = 1,
                              .draw_begin_ns = 10 * std::int64_t{i},
                              .draw_ns = 5,
                              .batch_ns = 5,
                              .loss = {},
                              .spans = {}},
                      {});
    (void)recorder.ledger();
}

BOOST_AUTO_TEST_CASE(a_recording_named_from_here_stays_within_its_limit_wherever_the_program_goes) {
    const test::TemporaryFolder folder;
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    ManualClock clock{100};
    {
        Recorder recorder{"run.pftrace", {.limit_bytes = 20'000}, AnyClock{clock}};
        std::filesystem::current_path(before);
        for (std::uint32_t i = 0; i < 3000; i += 100)
            push_steps(recorder, i);
        BOOST_TEST(recorder.state().bytes <= 20'000u);
        BOOST_TEST(recorder.state().error == "");
    }
    const Ledger ledger = read_trace(folder / "run.pftrace").ledger;
    BOOST_TEST(ledger.steps.size() + ledger.folded.steps == 3000u);
    BOOST_TEST(!std::filesystem::exists(before / "run.pftrace"));
}

BOOST_AUTO_TEST_CASE(each_failure_to_write_a_file_anew_is_tried_once_more) {
    if (test::sanitized)
        return;   // UBSan needs descriptors to check a virtual call
    const TemporaryFile file;
    constexpr std::uint64_t limit = 60'000;
    ManualClock clock{100};
    rlimit before{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    Recorder recorder{file.path(), {.limit_bytes = limit}, AnyClock{clock}};
    std::uint32_t step = 0;
    for (int failures = 0; failures < 3; ++failures) {
        rlimit none = before;
        none.rlim_cur = 0;   // no further file
        BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
        for (; recorder.state().bytes <= limit && recorder.state().error.empty(); step += 100)
            push_steps(recorder, step);
        BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
        BOOST_TEST_REQUIRE(recorder.state().error == "");
        for (; recorder.state().bytes > limit; step += 100)
            push_steps(recorder, step);
    }
    recorder.finish();
    const Ledger ledger = read_trace(file.path()).ledger;
    BOOST_TEST(ledger.steps.size() + ledger.folded.steps == step);
}

BOOST_AUTO_TEST_CASE(names_that_never_end_are_kept_up_to_the_limit_of_operators) {
    constexpr std::uint64_t limit = 100'000;
    const TemporaryFile file;
    ManualClock clock{100};
    Recorder recorder{file.path(), {.operator_limit_bytes = limit}, AnyClock{clock}};
    for (int i = 0; i < 20'000; ++i) {
        {
            const Region region = profile_region(recorder, "region " + std::to_string(i));
        }
        if (i % 100 == 0)
            (void)recorder.ledger();
    }
    recorder.finish();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.operators.size() > 100u);
    BOOST_TEST(ledger.names.size() < limit / 30);
    BOOST_TEST(ledger.operators.size() + ledger.dropped_records() >= 20'000u);
    BOOST_TEST(std::filesystem::file_size(file.path()) < 3 * limit);
    BOOST_TEST((read_trace(file.path()).ledger == ledger));
}

BOOST_AUTO_TEST_CASE(slices_of_passes_nest_in_a_file_written_anew) {
    const TemporaryFile file;
    ManualClock clock{1'000'000};
    Recorder recorder{file.path(), {.limit_bytes = 20'000, .ledger_bytes = 0}, AnyClock{clock}};
    LoopTrack track{recorder};
    track.begin_pass(PassKind::fit, 0);
    for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
        track.begin_pass(PassKind::epoch, epoch);
        for (const PassKind kind : {PassKind::train, PassKind::valid}) {
            track.begin_pass(kind, epoch);
            for (std::uint32_t batch = 0; batch < 12; ++batch) {
                track.begin_step(kind == PassKind::train ? Phase::train : Phase::valid, epoch, batch);
                clock.advance(std::chrono::nanoseconds{1000});
                track.mark(Span::starved);
                track.end_draw(1);
                clock.advance(std::chrono::nanoseconds{1000});
                track.mark(Span::forward);
                track.end_step(StepStatus::complete, std::nullopt);
                track.mark(Span::between);
            }
            track.end_steps();
            track.end_pass();
        }
        track.end_pass();
        (void)recorder.ledger();
    }
    track.end_pass();
    recorder.finish();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.folded.steps > 50u);
    std::multiset<std::tuple<std::string, std::int64_t, std::int64_t>> rows, slices;
    for (const PassRow& row : ledger.passes)
        rows.emplace(name_of(row.kind), row.begin_ns, row.end_ns);
    for (const test::DrawnSlice& slice : test::slices_of(test::bytes_in(file.path()), "loop"))
        for (const PassKind kind : {PassKind::fit, PassKind::epoch, PassKind::train, PassKind::valid})
            if (slice.name == name_of(kind))
                slices.emplace(slice.name, slice.begin_ns + ledger.start_ns, slice.end_ns + ledger.start_ns);
    BOOST_TEST((rows == slices));
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_anew_ends_and_stays_as_it_is) {
    if (test::sanitized)
        return;   // UBSan needs descriptors to check a virtual call
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder / "inner");
    const std::filesystem::path file = folder / "inner/run.pftrace";
    ManualClock clock{100};
    rlimit before{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    Recorder recorder{file, {.limit_bytes = 60'000, .operator_limit_bytes = 0}, AnyClock{clock}};
    rlimit none = before;
    none.rlim_cur = 0;   // no further file
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const RecordedRun run = random_run(4, 100, {.epochs = 4, .train_batches = 100});
    play(run, recorder, &clock);
    recorder.finish();
    BOOST_TEST(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    BOOST_TEST(recorder.state().error == file.string() + ": Too many open files");
    const ReadTrace read = read_trace(file);
    BOOST_TEST(read.warning == "");
    BOOST_TEST(read.ledger.steps.size() + read.ledger.samples.size() > 20u);
    BOOST_TEST(recorder.ledger().steps.size() + recorder.ledger().folded.steps == ledger_of(run, 100).steps.size());
}

BOOST_AUTO_TEST_CASE(a_full_disk_ends_the_file_and_not_the_ledger) {
    ManualClock clock{100};
    Recorder recorder{"/dev/full", {}, AnyClock{clock}};
    const RecordedRun run = random_run(4, 100);
    play(run, recorder, &clock);
    recorder.finish();
    BOOST_TEST((recorder.ledger() == ledger_of(run, 100)));
    BOOST_TEST(recorder.state().error == "/dev/full: No space left on device");
    BOOST_TEST(recorder.state().dropped == 0u);
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_leaves_a_file_that_can_be_read_up_to_there) {
    const TemporaryFile file;
    ManualClock clock{100};
    Recorder recorder{file.path(), {}, AnyClock{clock}};
    rlimit before{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = 100'000;
    // the signal that comes with the error must not end the test
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const RecordedRun run = random_run(4, 100, {.train_batches = 100});
    play(run, recorder, &clock);
    recorder.finish();
    BOOST_TEST(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    const Ledger live = recorder.ledger();
    BOOST_TEST((live == ledger_of(run, 100)));
    BOOST_TEST(recorder.state().error == file.path().string() + ": File too large");
    BOOST_TEST(recorder.state().bytes == 100'000u);
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST(read.warning == file.path().string() + ": cut at byte 100000");
    BOOST_TEST(read.ledger.samples.size() > 100u);
    BOOST_TEST(is_part_of(read.ledger, live));
}

BOOST_AUTO_TEST_CASE(a_file_that_can_not_be_made_is_an_error_that_names_it) {
    const TemporaryFile file;
    const auto absent = file.path() / "no" / "run.pftrace";
    BOOST_CHECK_EXCEPTION(Recorder{absent}, std::system_error, [&](const std::system_error& error) {
        return std::string{error.what()}.find(absent.string()) != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(a_second_recording_to_a_file_is_refused_until_the_first_has_ended) {
    const TemporaryFile file;
    ManualClock clock{100};
    const RecordedRun run = random_run(4, 100);
    {
        Recorder first{file.path(), {}, AnyClock{clock}};
        const auto names_both = [&](const std::system_error& error) {
            const std::string text = error.what();
            return text.find(file.path().string()) != std::string::npos && text.find("another") != std::string::npos;
        };
        BOOST_CHECK_EXCEPTION(Recorder{file.path()}, std::system_error, names_both);
        play(run, first, &clock);
        BOOST_CHECK_EXCEPTION(Recorder{file.path()}, std::system_error, names_both);
        first.finish();
    }
    BOOST_TEST((read_trace(file.path()).ledger == ledger_of(run, 100)));
    const Recorder second{file.path()};
    BOOST_TEST(rows_of(read_trace(file.path()).ledger) == 0u);
}

BOOST_AUTO_TEST_CASE(a_recording_that_cannot_begin_leaves_the_one_before) {
    const TemporaryFile file;
    ManualClock clock{100};
    const RecordedRun run = random_run(4, 100);
    {
        Recorder recorder{file.path(), {}, AnyClock{clock}};
        play(run, recorder, &clock);
    }
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = 100;
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::string error;
    {
        Recorder recorder{file.path()};
        recorder.finish();
        error = recorder.state().error;
    }
    BOOST_TEST(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    BOOST_TEST(error == file.path().string() + ": File too large");
    BOOST_TEST((read_trace(file.path()).ledger == ledger_of(run, 100)));
}

BOOST_AUTO_TEST_CASE(a_pipe_that_nobody_reads_is_refused_and_one_that_is_read_no_more_ends_the_recording) {
    const TemporaryFile file;
    const std::string pipe = file.path().string() + ".pipe";
    BOOST_TEST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    BOOST_CHECK_THROW(Recorder{pipe}, std::system_error);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ManualClock clock{100};
    Recorder recorder{pipe, {}, AnyClock{clock}};
    const RecordedRun run = random_run(4, 100, {.train_batches = 100});   // more than a pipe holds
    play(run, recorder, &clock);
    recorder.finish();
    BOOST_TEST(recorder.state().error == pipe + ": Connection timed out");
    BOOST_TEST((recorder.ledger() == ledger_of(run, 100)));
    ::close(reader);
    std::filesystem::remove(pipe);
}

BOOST_AUTO_TEST_CASE(a_recording_can_be_read_from_the_moment_it_is_made) {
    const TemporaryFile file;
    const Recorder recorder{file.path()};
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST(read.warning == "");
    BOOST_TEST(rows_of(read.ledger) == 0u);
}

BOOST_AUTO_TEST_CASE(a_recording_names_65536_loaders_and_no_more) {
    Recorder recorder;
    for (unsigned i = 0; i < 65'536; ++i)
        BOOST_REQUIRE_EQUAL(recorder.add_pipeline({"loader", {}, 1, 1, 1}), i);
    BOOST_CHECK_THROW(recorder.add_pipeline({"loader", {}, 1, 1, 1}), std::length_error);
    const Ledger ledger = recorder.ledger();
    BOOST_TEST_REQUIRE(ledger.pipelines.size() == 65'536u);
    BOOST_TEST(ledger.pipelines.back().name == "loader (65536)");
}

BOOST_AUTO_TEST_CASE(no_two_loaders_of_a_recording_have_one_name) {
    const TemporaryFile file;
    Recorder recorder{file.path()};
    std::vector<std::string> names;
    for (const char* const name : {"train", "valid", "train", "train", "train (2)", "valid"}) {
        const std::uint16_t number = recorder.add_pipeline({name, {}, 1, 1, 1});
        names.push_back(recorder.pipeline_name(number));
    }
    const std::vector<std::string> expected{"train", "valid", "train (2)", "train (3)", "train (2) (2)", "valid (2)"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
    recorder.finish();
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST_REQUIRE(read.ledger.pipelines.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        BOOST_TEST(read.ledger.pipelines[i].name == expected[i]);
    BOOST_CHECK_THROW((void)recorder.pipeline_name(6), std::out_of_range);
}

BOOST_AUTO_TEST_SUITE_END()
