#include <algorithm>
#include <charconv>
#include <clocale>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/recorded_run.hpp"
#include "instrumentation/trace/trace_writer.hpp"

using namespace drawpoint;

namespace {

/// Reports which column of which row differs; a plain comparison would only report that something does.
template <class Row>
void check_equal(const std::vector<Row>& a, const std::vector<Row>& b, const std::string& rows) {
    BOOST_TEST(a.size() == b.size(), rows);
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (a[i] == b[i])
            continue;
        const auto check = [&](const auto& column) {
            BOOST_TEST((a[i].*column.member == b[i].*column.member), rows << "[" << i << "]." << column.name);
        };
        schema::walk<Row>([&](const auto&... columns) { (check(columns), ...); });
    }
}

void check_equal(const Ledger& a, const Ledger& b) {
    BOOST_TEST(a.start_ns == b.start_ns);
    BOOST_TEST((a.facts == b.facts), "facts");
    BOOST_TEST((a.names == b.names), "names");
    check_equal(a.pipelines, b.pipelines, "pipelines");
    check_equal(a.passes, b.passes, "passes");
    check_equal(a.steps, b.steps, "steps");
    check_equal(a.spans, b.spans, "spans");
    check_equal(a.ends_of_data, b.ends_of_data, "ends_of_data");
    check_equal(a.batches, b.batches, "batches");
    check_equal(a.samples, b.samples, "samples");
    check_equal(a.stages, b.stages, "stages");
    check_equal(a.failures, b.failures, "failures");
    check_equal(a.settings, b.settings, "settings");
    check_equal(a.orders, b.orders, "orders");
    check_equal(a.transfers, b.transfers, "transfers");
    check_equal(a.device_steps, b.device_steps, "device_steps");
    check_equal(a.host, b.host, "host");
    check_equal(a.dropped, b.dropped, "dropped");
    check_equal(a.thinnings, b.thinnings, "thinnings");
    check_equal(a.threads, b.threads, "threads");
    check_equal(a.operators, b.operators, "operators");
    check_equal(a.allocations, b.allocations, "allocations");
    check_equal(a.frames, b.frames, "frames");
    check_equal(a.stacks, b.stacks, "stacks");
    check_equal(a.stack_samples, b.stack_samples, "stack_samples");
    BOOST_TEST((a == b));
}

void check_run(std::int64_t start_ns, const RunShape& shape, std::uint64_t seed) {
    const TemporaryFile file;
    ManualClock clock{start_ns};
    Recorder recorder{file.path(), {}, AnyClock{clock}};
    const RecordedRun run = random_run(seed, start_ns, shape);
    play(run, recorder, &clock);
    recorder.finish();
    const Ledger live = recorder.ledger();
    BOOST_TEST(recorder.state().error == "");
    BOOST_TEST(recorder.state().dropped == 0u);
    if (shape.end_passes)
        check_equal(live, ledger_of(run, start_ns));
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST(read.warning == "");
    BOOST_TEST(!read.damaged);
    check_equal(read.ledger, live);
}

/// Another value.
struct Change {
    void operator()(bool& value) const { value = !value; }
    void operator()(std::string& value) const { value += 'x'; }
    void operator()(Slice& value) const { ++value.count; }
    void operator()(OrderRule& value) const { ++value.max_overtakes; }
    template <class T>
        requires std::is_arithmetic_v<T>
    void operator()(T& value) const {
        value += 1;
    }
    template <class T>
        requires std::is_enum_v<T>
    void operator()(T& value) const {
        value = static_cast<T>(static_cast<int>(value) + 1);
    }
    template <class T>
    void operator()(std::optional<T>& value) const {
        value = value ? std::nullopt : std::optional{T{}};
    }
    template <class T>
    void operator()(std::vector<T>& value) const {
        value.emplace_back();
    }
};

using Rows = std::tuple<SpanRow, StageRow, StepRow, PassRow, EndOfDataRow, BatchRow, SampleRow, PipelineRow, SettingRow,
                        OrderRow, TransferRow, DeviceStepRow, HostRow, FailureRow, DroppedRow, ThinningRow, ThreadRow,
                        OperatorRow, AllocationRow, FrameRow, StackRow, StackSampleRow, StageUsage, DrawSplit,
                        DeviceTotals, FoldedAction, FoldedStage, FoldedWorker>;

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_equality)

BOOST_AUTO_TEST_CASE_TEMPLATE(rows_that_differ_in_one_column_are_not_equal, Row, Rows) {
    const Row row{};
    BOOST_TEST((row == Row{}));
    const auto check = [&](const auto& column) {
        Row other{};
        Change{}(other.*column.member);
        BOOST_TEST(!(row == other), column.name);
    };
    schema::walk<Row>([&](const auto&... columns) { (check(columns), ...); });
}

BOOST_AUTO_TEST_CASE(ledgers_that_differ_in_one_member_are_not_equal) {
    const Ledger ledger;
    const auto check = [&](auto member) {
        Ledger other;
        Change{}(other.*member);
        BOOST_TEST(!(ledger == other));
    };
    check(&Ledger::start_ns);
    check(&Ledger::facts);
    check(&Ledger::names);
    check(&Ledger::pipelines);
    check(&Ledger::passes);
    check(&Ledger::steps);
    check(&Ledger::spans);
    check(&Ledger::ends_of_data);
    check(&Ledger::batches);
    check(&Ledger::samples);
    check(&Ledger::stages);
    check(&Ledger::failures);
    check(&Ledger::settings);
    check(&Ledger::orders);
    check(&Ledger::transfers);
    check(&Ledger::device_steps);
    check(&Ledger::host);
    check(&Ledger::dropped);
    check(&Ledger::thinnings);
    check(&Ledger::threads);
    check(&Ledger::operators);
    check(&Ledger::allocations);
    check(&Ledger::frames);
    check(&Ledger::stacks);
    check(&Ledger::stack_samples);
    const auto check_folded = [&](auto member) {
        Ledger other;
        Change{}(other.folded.*member);
        BOOST_TEST(!(ledger == other));
    };
    check_folded(&Folded::until_ns);
    check_folded(&Folded::steps);
    check_folded(&Folded::failed);
    check_folded(&Folded::not_drawn);
    check_folded(&Folded::samples);
    check_folded(&Folded::batch_samples);
    check_folded(&Folded::draws_ns);
    check_folded(&Folded::batches_ns);
    check_folded(&Folded::other_ns);
    check_folded(&Folded::actions);
    check_folded(&Folded::stages);
    check_folded(&Folded::workers);
}

BOOST_AUTO_TEST_CASE(a_step_of_a_device_is_read_back_with_all_its_columns) {
    const TemporaryFile file;
    DeviceStepRow row{.end_ns = 1'000'900};
    std::int64_t next = 1'000'000;
    const auto set = [&](const auto& column) {
        if constexpr (std::is_same_v<decltype(row.*column.member), std::int64_t&>)
            row.*column.member = row.*column.member != 0 ? row.*column.member : ++next;
        else
            Change{}(row.*column.member);
    };
    schema::walk<DeviceStepRow>([&](const auto&... columns) { (set(columns), ...); });
    Ledger ledger;
    ledger.folded.until_ns = 7;
    next = 0;
    const auto count = [&](const auto& column) {
        using T = std::remove_reference_t<decltype(ledger.folded.device.*column.member)>;
        ledger.folded.device.*column.member = static_cast<T>(++next);
    };
    schema::walk<DeviceTotals>([&](const auto&... columns) { (count(columns), ...); });
    {
        TraceWriter writer{file.path(), StartTimes{.start_ns = 1'000'000}};
        writer.folded(ledger.folded);
        writer.device_step(row);
        writer.close();
    }
    const Ledger read = read_trace(file.path()).ledger;
    check_equal(read.device_steps, {row}, "device_steps");
    BOOST_TEST((read.folded.device == ledger.folded.device));
}

BOOST_AUTO_TEST_CASE(what_is_recorded_is_what_is_live_is_what_is_read_back) {
    check_run(1'000'000'000'000, {.epochs = 3, .train_batches = 60, .batch_size = 16}, 1);
    for (std::uint64_t seed = 2; seed < 12; ++seed)
        check_run(123'456'789, {}, seed);
}

BOOST_AUTO_TEST_CASE(stamps_may_count_from_anywhere) {
    for (const std::int64_t start_ns : {std::int64_t{0}, std::int64_t{1'000'000'000'000'000'000}, std::int64_t{-77},
                                        std::numeric_limits<std::int64_t>::max() - 1'000'000'000'000})
        check_run(start_ns, {.train_batches = 10}, 7);
}

BOOST_AUTO_TEST_CASE(a_pass_that_did_not_end_is_the_same_live_and_read_back) {
    check_run(5, {.train_batches = 10, .end_passes = false}, 3);
}

BOOST_AUTO_TEST_CASE(a_recorder_without_a_file_has_the_same_ledger) {
    ManualClock clock{42};
    Recorder recorder{{}, AnyClock{clock}};
    const RecordedRun run = random_run(9, 42);
    play(run, recorder, &clock);
    check_equal(recorder.ledger(), ledger_of(run, 42));
    BOOST_TEST(recorder.state().file.empty());
    BOOST_TEST(recorder.state().bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_file_written_anew_reads_back_equal) {
    for (const std::uint64_t limit : {0u, 20'000u, 200'000u})
        for (const bool odd_stamps : {true, false}) {
            const TemporaryFile file;
            ManualClock clock{1000};
            Recorder recorder{
                file.path(), {.limit_bytes = limit, .ledger_bytes = 0, .drop_share = 0.25}, AnyClock{clock}};
            for (std::uint64_t seed = 0; seed < 10; ++seed) {
                play(random_run(seed, clock.now_ns(), {.odd_stamps = odd_stamps, .end_passes = seed != 9}), recorder,
                     &clock);
                (void)recorder.ledger();   // waits for the writer
            }
            recorder.finish();
            const Ledger live = recorder.ledger();
            BOOST_TEST(recorder.state().error == "");
            BOOST_TEST(live.folded.steps > 10u);
            BOOST_TEST(live.dropped_records() > 0u);
            BOOST_TEST(live.dropped_records() == recorder.state().dropped);
            BOOST_TEST(recorder.state().bytes == std::filesystem::file_size(file.path()));
            const ReadTrace read = read_trace(file.path());
            BOOST_TEST(read.warning == "");
            check_equal(read.ledger, live);
        }
}

BOOST_AUTO_TEST_CASE(what_a_failing_clock_could_say_is_kept_to_the_bit) {
    const TemporaryFile file;
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                           most = std::numeric_limits<std::int64_t>::max();
    const ManualClock clock{17};
    Recorder recorder{file.path(), {}, AnyClock{clock}};
    WorkerTrack track = recorder.add_worker();
    std::uint32_t slot = 0;
    const std::uint32_t name = recorder.add_name(""), frame = recorder.add_frame({.function = name, .line = ~0u}),
                        stack = recorder.add_stack({.frame = frame});
    recorder.add_this_thread("");
    std::vector<std::uint32_t> open;
    for (const std::int64_t stamp : {least + 1, std::int64_t{-1}, std::int64_t{0}, most}) {
        SampleRecord record;
        record.row.slot = slot++;
        record.row.begin_ns = stamp;
        record.row.cpu_ns = stamp;
        record.row.read_begin_ns = -stamp;
        record.row.read_end_ns = stamp;
        record.row.read_cpu_ns = record.row.read_run_queue_ns = stamp;
        record.row.samples = std::max(static_cast<std::uint32_t>(stamp), 1u);   // 0 would be damage
        record.stage_count = 2;
        record.stages = {StageRow{most, stamp, stamp == most ? 0 : stamp},
                         StageRow{stamp, least, slot % 2 == 0 ? no_stamp : 7}};
        track.push(record);
        recorder.push(BatchRow{.batch = slot, .admitted_ns = -stamp, .offered_ns = stamp, .taken_ns = 3});
        const std::array spans{SpanRow{Span::between, stamp, most}};
        recorder.push(StepRow{.step = slot,
                              .draw_begin_ns = stamp,
                              .draw_ns = least,
                              .batch_ns = stamp,
                              .loss = {},
                              .cpu_ns = stamp,
                              .run_queue_ns = -stamp,
                              .between_run_queue_ns = stamp,
                              .spans = {}},
                      spans);
        recorder.add_setting({stamp, static_cast<std::uint8_t>(slot), ~0u, ~0u, {~0u}, ~0u, ~std::uint64_t{0}});
        recorder.push(EndOfDataRow{0, Phase::valid, stamp, stamp});
        recorder.push(PassRow{.kind = PassKind::train, .begin_ns = -stamp, .end_ns = stamp, .spans = {}}, {});
        recorder.push(AllocationRow{stamp, 0, static_cast<std::int32_t>(stamp), stamp,
                                    static_cast<std::uint64_t>(stamp), -stamp});
        recorder.push(StackSampleRow{stamp, 0, stack, stamp});
        open.push_back(recorder.begin_operator({.name = name,
                                                .sequence = stamp,
                                                .forward_thread = static_cast<std::uint64_t>(stamp),
                                                .flops = static_cast<std::uint64_t>(stamp)}));
    }
    recorder.end_operator(open[2]);
    recorder.finish();
    const Ledger live = recorder.ledger();
    BOOST_TEST(live.samples.size() == 4u);
    BOOST_TEST(live.stages_of(live.samples[3])[1].begin_ns == most);
    BOOST_TEST(live.stages_of(live.samples[1])[0].cpu_ns == -1);
    BOOST_TEST(live.settings.size() == 4u);
    BOOST_TEST(live.operators.size() == 4u);
    BOOST_TEST(live.operators[3].sequence == most);
    BOOST_TEST(live.allocations.size() == 4u);
    BOOST_TEST(live.stack_samples.size() == 4u);
    check_equal(read_trace(file.path()).ledger, live);
}

BOOST_AUTO_TEST_CASE(what_the_host_counts_is_read_back_and_what_it_does_not_know_stays_unknown) {
    const TemporaryFile file;
    Ledger written;
    written.start_ns = 100;
    written.host = {{.at_ns = 90, .own_cpu_ns = 0},   // before the start
                    {.at_ns = 200'000'000,
                     .own_cpu_ns = 1,
                     .busy_ns = 2,
                     .steal_ns = 0,
                     .throttled_ns = 4,
                     .cpu_pressure_ns = 5,
                     .io_pressure_ns = 6,
                     .memory_pressure_ns = 7,
                     .major_faults = 8,
                     .involuntary_switches = 9,
                     .resident_bytes = std::int64_t{1} << 40},
                    {.at_ns = 400'000'000, .busy_ns = std::numeric_limits<std::int64_t>::max(), .major_faults = -1}};
    TraceWriter writer{file.path(), {.start_ns = 100}};
    for (const HostRow& row : written.host)
        writer.host(row);
    writer.close();
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST(read.warning == "");
    check_equal(read.ledger, written);
}

BOOST_AUTO_TEST_CASE(a_recorder_looks_at_the_host_when_it_begins_and_when_it_ends) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.host_period = std::chrono::hours{1}}};
    recorder.finish();
    const Ledger live = recorder.ledger();
    BOOST_TEST_REQUIRE(live.host.size() == 2u);
    BOOST_TEST(live.start_ns <= live.host[0].at_ns);
    BOOST_TEST(live.host[0].at_ns < live.host[1].at_ns);
    BOOST_TEST(live.host[0].own_cpu_ns <= live.host[1].own_cpu_ns);
    BOOST_TEST(live.host[1].resident_bytes > 0);
    check_equal(read_trace(file.path()).ledger, live);
}

BOOST_AUTO_TEST_CASE(a_recorder_that_is_told_not_to_or_whose_clock_is_moved_by_hand_never_looks_at_the_host) {
    Recorder unasked{{.host_period = std::chrono::milliseconds{0}}};
    (void)unasked.ledger();
    unasked.finish();
    BOOST_TEST(unasked.ledger().host.empty());
    const ManualClock clock;
    Recorder manual{{.host_period = std::chrono::milliseconds{1}}, AnyClock{clock}};
    (void)manual.ledger();
    manual.finish();
    BOOST_TEST(manual.ledger().host.empty());
}

BOOST_AUTO_TEST_CASE(a_ledger_asked_for_often_is_not_filled_with_the_host) {
    Recorder recorder{{.host_period = std::chrono::hours{1}}};
    for (int i = 0; i < 20; ++i)
        (void)recorder.ledger();
    BOOST_TEST(recorder.ledger().host.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_longest_period_looks_at_the_host_when_the_recording_begins_and_no_more) {
    Recorder recorder{{.host_period = std::chrono::milliseconds::max()}};
    for (int i = 0; i < 20; ++i)
        (void)recorder.ledger();
    BOOST_TEST(recorder.ledger().host.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_number_of_cores_is_the_shortest_text_for_it_in_every_locale) {
    for (const char* const locale : {"C", "de_DE.UTF-8", "de_DE"}) {
        const std::string before = std::setlocale(LC_NUMERIC, nullptr);
        std::setlocale(LC_NUMERIC, locale);   // if the system has this locale
        Recorder recorder;
        std::setlocale(LC_NUMERIC, before.c_str());
        char text[32];
        const std::string expected{text, std::to_chars(std::begin(text), std::end(text), usable_cores()).ptr};
        BOOST_TEST(recorder.ledger().fact(facts::host_cores).value_or("") == expected, locale);
    }
}

BOOST_AUTO_TEST_CASE(a_recording_says_what_a_sleep_takes_of_a_core) {
    Recorder recorder;
    const std::string ns{recorder.ledger().fact(facts::host_sleep_cpu_ns).value_or("")};
    BOOST_TEST_REQUIRE(!ns.empty());
    BOOST_TEST(std::stoll(ns) > 0);
    BOOST_TEST(recorder.ledger().fact(facts::host_tick_ns).value_or("") == std::to_string(kernel_tick_ns()));
    BOOST_TEST(std::stoll(std::string{recorder.ledger().fact(facts::host_online_cores).value_or("0")}) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
