#include <drawpoint/pipeline/stages/inject.hpp>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include "pipeline/stages/made_sample.hpp"
#include "support/burn_cpu.hpp"

BOOST_AUTO_TEST_SUITE(inject)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::MadeSample;
using Times = std::vector<std::int64_t>;

namespace {

/// A source whose stages read, decode and augment take 10, 20 and 40 ns on a clock that only they and injected waits
/// move.
struct Bench {
    ManualClock manual{1000};
    AnyClock clock{manual};
    std::int64_t slept = 0, spun = 0;

    [[nodiscard]] Recipe source() {
        const auto takes = [this](std::chrono::nanoseconds time) {
            return [this, time](SampleView&) { manual.advance(time); };
        };
        return from_function(1000, {ScalarType::float32, 1, {2}}, "read", takes(10ns)) |
               stage("decode+crop", takes(20ns)) | stage("augment", takes(40ns));
    }
    [[nodiscard]] InjectedWaits waits() {
        return {[this](std::chrono::nanoseconds time) {
                    manual.advance(time);
                    slept += time.count();
                },
                [this](std::chrono::nanoseconds time) {
                    manual.advance(time);
                    spun += time.count();
                }};
    }
    /// The times of sample `index`'s stages under these faults.
    [[nodiscard]] Times times(std::vector<std::string> faults, std::uint64_t index = 0) {
        std::vector<Injection> injections;
        for (const std::string& fault : faults)
            injections.push_back(parse_injection(fault));
        const auto injected = drawpoint::inject(source(), injections, 0, waits());
        MadeSample sample{*injected};
        sample.fill({.index = index}, &clock);
        BOOST_TEST(sample.tiled());
        BOOST_TEST(sample.task.stage_count == injected->stages().size());
        const StageRow& last = sample.stages().back();
        BOOST_TEST(last.begin_ns + last.ns == manual.now_ns());
        return sample.times();
    }
};

std::string refusal(std::string_view text) {
    try {
        (void)parse_injection(text);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "parsed";
}

}   // namespace

BOOST_AUTO_TEST_CASE(every_kind_is_read_with_its_value) {
    BOOST_TEST((parse_injection("read-latency=5ms") == Injection{.kind = InjectionKind::read_latency, .delay = 5ms}));
    BOOST_TEST((parse_injection("read-bandwidth=20MB/s") ==
                Injection{.kind = InjectionKind::read_bandwidth, .bytes_per_s = 20e6}));
    BOOST_TEST((parse_injection("decode=x3") == Injection{.kind = InjectionKind::decode, .factor = 3}));
    BOOST_TEST((parse_injection("transform=x1.5") == Injection{.kind = InjectionKind::transform, .factor = 1.5}));
    BOOST_TEST((parse_injection("straggler=1%:30ms") ==
                Injection{.kind = InjectionKind::straggler, .share = 0.01, .delay = 30ms}));
    BOOST_TEST((parse_injection("collate=x5") == Injection{.kind = InjectionKind::collate, .factor = 5}));
    BOOST_TEST((parse_injection("compute=250us") == Injection{.kind = InjectionKind::compute, .delay = 250us}));
    BOOST_TEST(
        (parse_injection("compute-jitter=50%") == Injection{.kind = InjectionKind::compute_jitter, .share = 0.5}));
    BOOST_TEST((parse_injection("drop-events=100%") == Injection{.kind = InjectionKind::drop_events, .share = 1}));
    BOOST_TEST((parse_injection("compute=1.5s").delay == 1500ms));
    BOOST_TEST((parse_injection("compute=7ns").delay == 7ns));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_named_with_what_was_expected) {
    BOOST_TEST(refusal("slow-disk=3") ==
               "--inject slow-disk=3: unknown kind 'slow-disk'; known are read-latency, read-bandwidth, "
               "decode, transform, straggler, collate, compute, compute-jitter, drop-events");
    BOOST_TEST(refusal("decode") == "--inject decode: expected decode=VALUE");
    BOOST_TEST(refusal("decode=3") == "--inject decode=3: expected xN with N at least 1, e.g. x3");
    BOOST_TEST(refusal("decode=x0.5") == "--inject decode=x0.5: expected xN with N at least 1, e.g. x3");
    BOOST_TEST(refusal("decode=xnan") == "--inject decode=xnan: expected xN with N at least 1, e.g. x3");
    BOOST_TEST(refusal("straggler=1%") == "--inject straggler=1%: expected SHARE%:DURATION, e.g. 1%:30ms");
    BOOST_TEST(refusal("straggler=101%:1ms") == "--inject straggler=101%:1ms: expected SHARE%:DURATION, e.g. 1%:30ms");
    BOOST_TEST(refusal("read-latency=5") ==
               "--inject read-latency=5: expected a duration in ns, us, ms or s, e.g. 5ms");
    BOOST_TEST(refusal("read-latency=-5ms") ==
               "--inject read-latency=-5ms: expected a duration in ns, us, ms or s, e.g. 5ms");
    BOOST_TEST(refusal("read-latency=2000000ms5") ==
               "--inject read-latency=2000000ms5: expected a duration in ns, us, ms or s, e.g. 5ms");
    BOOST_TEST(refusal("compute=5000s") == "--inject compute=5000s: at most one hour");
    BOOST_TEST(refusal("read-bandwidth=0MB/s") == "--inject read-bandwidth=0MB/s: the bandwidth must be above 0");
    BOOST_TEST(refusal("drop-events=") == "--inject drop-events=: expected a share of 0% to 100%, e.g. 1%");
}

BOOST_AUTO_TEST_CASE(without_faults_a_source_is_unchanged) {
    BOOST_TEST(Bench{}.times({}) == (Times{10, 20, 40}), boost::test_tools::per_element());
    BOOST_TEST(Bench{}.times({"compute=5ms", "drop-events=1%"}) == (Times{10, 20, 40}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(read_latency_is_added_to_the_first_stage) {
    Bench bench;
    BOOST_TEST(bench.times({"read-latency=500ns"}) == (Times{510, 20, 40}), boost::test_tools::per_element());
    BOOST_TEST(bench.slept == 500);
}

BOOST_AUTO_TEST_CASE(a_decode_takes_its_factor_times_what_was_measured) {
    Bench bench;
    BOOST_TEST(bench.times({"decode=x3"}) == (Times{10, 60, 40}), boost::test_tools::per_element());
    BOOST_TEST(bench.spun == 40);
}

BOOST_AUTO_TEST_CASE(a_transform_is_a_stage_of_its_own) {
    BOOST_TEST(Bench{}.times({"transform=x3"}) == (Times{10, 20, 40, 40}), boost::test_tools::per_element());
    Bench bench;
    BOOST_TEST(drawpoint::inject(bench.source(), {parse_injection("transform=x3")})->stages().back() == "transform");
}

BOOST_AUTO_TEST_CASE(factors_refer_to_the_time_before_any_fault) {
    BOOST_TEST(Bench{}.times({"transform=x2", "decode=x4", "read-latency=1us"}) == (Times{1010, 80, 40, 20}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stragglers_are_the_share_asked_for_and_only_they_are_late) {
    Bench bench;
    const auto injected = drawpoint::inject(bench.source(), {parse_injection("straggler=10%:1us")}, 0, bench.waits());
    std::size_t stragglers = 0;
    for (std::uint64_t index = 0; index < 1000; ++index)
        stragglers += injected->is_straggler(index);
    BOOST_TEST(stragglers >= 70u);
    BOOST_TEST(stragglers <= 130u);
    MadeSample sample{*injected};
    for (std::uint64_t index = 0; index < 1000; ++index) {
        sample.fill({.index = index, .epoch = index}, &bench.clock);
        BOOST_REQUIRE(sample.task.stages[1].ns == (injected->is_straggler(index) ? 1020 : 20));
        BOOST_REQUIRE(sample.tiled());
    }
    BOOST_TEST(bench.slept == static_cast<std::int64_t>(1000 * stragglers));
}

BOOST_AUTO_TEST_CASE(bandwidth_is_shared_by_all_reads) {
    class Files final : public SampleSource {
    public:
        [[nodiscard]] std::size_t size() const noexcept override { return 3; }
        [[nodiscard]] SampleLayout layout() const noexcept override { return {ScalarType::uint8, 1, {1}}; }
        [[nodiscard]] std::vector<std::string> stages() const override { return {"read"}; }
        [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
        [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override {
            return std::make_unique<WorkerScratch>();
        }
        void fill(SampleTask& task, WorkerScratch&) const override {
            task.stages[task.stage_count++] = {.begin_ns = task.clock->now_ns(), .ns = 0};
            task.bytes_read = 2000;
        }
    };
    // Nobody moves the clock, as if all three were read at once: each waits for those before it.
    ManualClock manual;
    const AnyClock clock{manual};
    Times asked;
    const auto injected =
        drawpoint::inject(Files{}, {parse_injection("read-bandwidth=1GB/s")}, 0,
                          {[&](std::chrono::nanoseconds time) { asked.push_back(time.count()); }, {}});
    MadeSample sample{*injected};
    for (std::uint64_t index = 0; index < 3; ++index)
        sample.fill({.index = index}, &clock);
    BOOST_TEST(asked == (Times{2000, 4000, 6000}), boost::test_tools::per_element());
    manual.advance(1s);
    sample.fill({}, &clock);
    BOOST_TEST(asked.back() == 2000);
}

BOOST_AUTO_TEST_CASE(the_faults_of_reading_are_made_where_the_reading_is) {
    class Files final : public SampleSource, public SampleReads {
    public:
        [[nodiscard]] std::size_t size() const noexcept override { return 3; }
        [[nodiscard]] SampleLayout layout() const noexcept override { return {ScalarType::uint8, 1, {1}}; }
        [[nodiscard]] std::vector<std::string> stages() const override { return {"read"}; }
        [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
        [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override {
            return std::make_unique<WorkerScratch>();
        }
        [[nodiscard]] const SampleReads* reads() const noexcept override { return this; }
        void read(std::uint64_t, std::vector<std::byte>& contents) const override { contents.resize(2000); }
        [[nodiscard]] std::optional<FileRange> location(std::uint64_t) const noexcept override {
            return FileRange{.path = "x"};
        }
        [[nodiscard]] bool wants(std::uint64_t index) const noexcept override { return index != 2; }
        void fill(SampleTask& task, WorkerScratch&) const override {
            task.stages[task.stage_count++] = {.begin_ns = task.clock->now_ns(), .ns = 0};
            task.bytes_read = wants(task.index) ? 2000 : 0;
        }
    };
    Times asked;
    const InjectedWaits waits{[&](std::chrono::nanoseconds time) { asked.push_back(time.count()); }, {}};
    const auto injected = drawpoint::inject(
        Files{}, {parse_injection("read-latency=7us"), parse_injection("read-bandwidth=1GB/s")}, 0, waits);
    BOOST_TEST_REQUIRE(injected->reads() != nullptr);
    BOOST_TEST(!injected->reads()->location(0));   // the kernel alone cannot read it
    BOOST_TEST(injected->reads()->wants(0));
    BOOST_TEST(!injected->reads()->wants(2));

    std::vector<std::byte> contents;
    injected->reads()->read(0, contents);
    BOOST_TEST(contents.size() == 2000u);
    BOOST_TEST(asked == (Times{7000, 2000}), boost::test_tools::per_element());

    asked.clear();
    const AnyClock clock{SteadyClock{}};
    SampleTask task;
    task.clock = &clock;
    task.contents = &contents;
    const auto scratch = injected->make_scratch();
    injected->fill(task, *scratch);   // was read ahead: no wait
    task.contents = nullptr;
    task.index = 2;
    task.stage_count = 0;
    injected->fill(task, *scratch);   // was in a cache
    BOOST_TEST(asked.empty());
    task.index = 1;
    task.stage_count = 0;
    injected->fill(task, *scratch);   // reads by itself
    BOOST_TEST(asked.size() == 2u);

    const auto unhurried = drawpoint::inject(Files{}, {parse_injection("straggler=1%:1us")}, 0, waits);
    BOOST_TEST(unhurried->reads()->location(0).has_value());
}

BOOST_AUTO_TEST_CASE(a_failure_in_the_source_keeps_its_stage_and_the_wait_before_it) {
    Bench bench;
    const auto failing = bench.source() | stage("breaks", [](SampleView&) { throw std::runtime_error{"no"}; });
    const auto injected = drawpoint::inject(
        failing, {parse_injection("read-latency=500ns"), parse_injection("transform=x2")}, 0, bench.waits());
    MadeSample sample{*injected};
    BOOST_CHECK_THROW(sample.fill({}, &bench.clock), std::runtime_error);
    BOOST_TEST(sample.times() == (Times{510, 20, 40, 0}), boost::test_tools::per_element());
    BOOST_TEST(sample.tiled());
}

BOOST_AUTO_TEST_CASE(times_are_measured_even_when_nobody_records) {
    Bench bench;
    bool spun = false;
    const auto busy = from_function(1, {ScalarType::uint8, 1, {1}}, "decode", [](SampleView&) {
        const std::int64_t begin = SteadyClock{}.now_ns();
        while (SteadyClock{}.now_ns() == begin) {
        }
    });
    const auto injected = drawpoint::inject(busy, {parse_injection("decode=x2")}, 0,
                                            {{}, [&](std::chrono::nanoseconds time) { spun = time.count() > 0; }});
    MadeSample sample{*injected};
    sample.fill();
    BOOST_TEST(spun);
    BOOST_TEST((sample.task.clock == nullptr));
}

BOOST_AUTO_TEST_CASE(faults_that_cannot_be_made_are_refused) {
    const auto rows = from_function(1, {ScalarType::uint8, 1, {1}}, "make", [](SampleView&) {});
    BOOST_CHECK_EXCEPTION(
        (void)drawpoint::inject(rows, {parse_injection("decode=x2")}), std::invalid_argument, [](const auto& error) {
            return std::string{error.what()} == "--inject decode: no stage decodes; the stages are make";
        });
    const std::vector<Injection> twice(2, parse_injection("read-latency=5ms"));
    BOOST_CHECK_EXCEPTION((void)drawpoint::inject(rows, twice), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()} == "--inject read-latency: given twice";
    });
}

BOOST_AUTO_TEST_CASE(collating_takes_as_many_times_its_own_time_as_asked_for_and_makes_the_same_batch) {
    Bench bench;
    const auto pad = collate_with("count", [&](const FinishedSamples& samples, CollatedBatch& batch) {
        bench.manual.advance(30ns);
        batch.add_values<std::int64_t>("count", ScalarType::int64, {{1}})[0] = samples.targets[0];
    });
    const std::int64_t target = 7;
    const std::array<SampleBuffer, 1> buffers{};
    for (const auto& [faults, spun] : std::vector<std::pair<std::vector<Injection>, std::int64_t>>{
             {{parse_injection("collate=x5")}, 120},
             {{parse_injection("collate=x1.5"), parse_injection("decode=x3")}, 15},
             {{parse_injection("collate=x1")}, 0},
             {{parse_injection("transform=x3")}, 0}}) {
        bench.spun = bench.slept = 0;
        const auto slow = drawpoint::inject(pad, faults, bench.waits(), bench.clock);
        CollatedBatch batch;
        slow->collate({.samples = buffers, .targets = {&target, 1}, .indices = {}}, batch);
        BOOST_TEST(bench.spun == spun);
        BOOST_TEST(bench.slept == 0);
        BOOST_TEST(slow->name() == "count");
        BOOST_REQUIRE(batch.find("count") != nullptr);
        BOOST_TEST(std::to_integer<int>(batch.find("count")->data()[0]) == 7);
    }
    const std::vector<Injection> twice(2, parse_injection("collate=x5"));
    BOOST_CHECK_EXCEPTION((void)drawpoint::inject(pad, twice), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()} == "--inject collate: given twice";
    });
}

BOOST_AUTO_TEST_CASE(the_stages_cpu_time_adds_up_to_that_of_a_measured_sample_and_a_fault_that_computes_is_in_it) {
    const auto computes = [](SampleView&) { test::burn_cpu(1ms); };
    const auto source = from_function(1000, {ScalarType::float32, 1, {2}}, "read", computes) |
                        stage("decode+crop", computes) | stage("augment", computes);
    std::vector<Injection> injections;
    for (const char* fault : {"read-latency=1ms", "decode=x3", "transform=x2", "straggler=100%:1ms"})
        injections.push_back(parse_injection(fault));
    const AnyClock clock{SteadyClock{}};
    const InjectedWaits waits{[](auto) {}, [](auto) { test::burn_cpu(3ms); }};
    const auto injected = drawpoint::inject(source, injections, 0, waits);
    MadeSample sample{*injected};
    const std::int64_t begin_ns = test::thread_cpu_ns();
    sample.fill({}, &clock, begin_ns);
    BOOST_REQUIRE(sample.task.stage_count == 4u);
    std::int64_t sum_ns = 0;
    for (const StageRow& stage : sample.stages())
        sum_ns += stage.cpu_ns;
    BOOST_TEST(sum_ns == sample.task.cpu_ns - begin_ns);
    BOOST_TEST(sample.stages()[0].cpu_ns >= 1'000'000);
    BOOST_TEST(sample.stages()[1].cpu_ns >= 4'000'000);   // includes the fault's time
    BOOST_TEST(sample.stages()[2].cpu_ns >= 1'000'000);
    BOOST_TEST(sample.stages()[3].cpu_ns >= 3'000'000);
    sample.fill({}, &clock);
    for (const StageRow& stage : sample.stages())
        BOOST_TEST(stage.cpu_ns == no_stamp);
    BOOST_TEST(sample.task.cpu_ns == no_stamp);
}

BOOST_AUTO_TEST_SUITE_END()
