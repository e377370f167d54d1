#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/threads/sample_usage.hpp"
#include "support/burn_cpu.hpp"
#include "support/coro_test.hpp"
#include "support/temporary_folder.hpp"
#include "instrumentation/trace/drawn_slices.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

BOOST_AUTO_TEST_SUITE(data_loader_record)

BOOST_AUTO_TEST_CASE(a_recorded_pass_has_a_row_for_each_batch_and_sample_with_stamps_in_order) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench{true};
        const NumberedSource source{30};
        const RandomSampler sampler{30, 2};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}, "valid"};
        for (auto& batch : blocking(loader, 6)) {
            const DrawStamps stamps = batch.draw_stamps();
            BOOST_TEST(stamps.offered_ns <= stamps.taken_ns);
            BOOST_TEST(stamps.transferred_ns == stamps.taken_ns);
        }
        const Ledger ledger = bench.recorder->ledger();
        BOOST_REQUIRE(ledger.pipelines.size() == 1u);
        BOOST_TEST(ledger.pipelines[0].name == "valid");
        BOOST_TEST(ledger.pipelines[0].stages == (std::vector<std::string>{"count", "write"}),
                   boost::test_tools::per_element());
        BOOST_TEST(ledger.pipelines[0].num_workers == workers);
        BOOST_REQUIRE(ledger.batches.size() == 8u);
        for (std::uint32_t number = 0; number < 8; ++number) {
            const BatchRow& row = ledger.batches[number];
            BOOST_TEST(row.batch == number);
            BOOST_TEST(row.epoch == 6u);
            BOOST_TEST(row.size == (number < 7 ? 4u : 2u));
            BOOST_TEST(row.bytes == row.size * 40u);
            BOOST_CHECK(row.status == BatchStatus::taken);
            BOOST_TEST(row.admitted_ns <= row.first_claim_ns);
            BOOST_TEST(row.first_claim_ns <= row.last_done_ns);
            BOOST_TEST(row.last_done_ns <= row.offered_ns);
            BOOST_TEST(row.offered_ns <= row.taken_ns);
            BOOST_TEST(row.ready_batches <= 2u);
        }
        std::vector<std::uint64_t> order(30);
        sampler.order(6, order);
        BOOST_REQUIRE(ledger.samples.size() == 30u);
        for (const SampleRow& row : ledger.samples) {
            BOOST_TEST(row.index == order[row.batch * 4 + row.slot]);
            BOOST_TEST(row.bytes == 32u);
            BOOST_TEST(row.stages.count == 2u);
            BOOST_TEST(row.begin_ns >= ledger.batches[row.batch].first_claim_ns);
            BOOST_TEST(row.begin_ns <= ledger.batches[row.batch].last_done_ns);
            const auto of_worker = [&](const ThreadRow& thread) {
                return thread.name == "worker " + std::to_string(row.worker);
            };
            BOOST_TEST(std::any_of(ledger.threads.begin(), ledger.threads.end(), of_worker) == (workers != 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(of_two_loaders_of_one_name_each_has_its_own_facts) {
    Bench bench{true};
    const NumberedSource source{64, 1024};
    const SequentialSampler sampler{64};
    LoaderOptions options{.batch_size = 4, .num_workers = 1, .prefetch_depth = 8};
    const DataLoader unlimited{bench.runtime, source, sampler, options, "unlimited"};
    options.memory_budget = unlimited.memory_plan().planned_bytes - 1;
    const DataLoader first{bench.runtime, source, sampler, options};
    options.prefetch_depth = 12;
    const DataLoader second{bench.runtime, source, sampler, options};
    const Ledger ledger = bench.recorder->ledger();
    BOOST_TEST_REQUIRE(ledger.pipelines.size() == 3u);
    const auto asked_of = [&](std::size_t pipeline) {
        return ledger.fact(std::string{facts::asked_depth_prefix} + ledger.pipelines[pipeline].name).value_or("");
    };
    BOOST_TEST(asked_of(0) == "");
    BOOST_TEST(asked_of(1) == "8");
    BOOST_TEST(asked_of(2) == "12");
}

BOOST_AUTO_TEST_CASE(a_sample_that_is_long_enough_says_what_it_computed_and_how_long_it_waited_for_a_core) {
    for (const std::size_t workers : {0u, 2u})
        for (const bool runs : {false, true}) {
            Bench bench{true};
            NumberedSource source{12};
            source.runs = runs;
            source.before_fill = [](std::uint64_t) { test::burn_cpu(std::chrono::milliseconds{3}); };
            const SequentialSampler sampler{12};
            DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
            for (auto& batch : blocking(loader))
                BOOST_TEST(batch.size() == 4u);
            const Ledger ledger = bench.recorder->ledger();
            BOOST_TEST(!ledger.samples.empty());
            for (const SampleRow& row : ledger.samples) {
                const StageRow& last = ledger.stages_of(row).back();
                const std::int64_t ns = last.begin_ns + last.ns - row.begin_ns;
                BOOST_REQUIRE(row.cpu_ns.has_value());
                BOOST_TEST(*row.cpu_ns >= row.samples * 3'000'000);
                BOOST_TEST(*row.cpu_ns <= ns);
                BOOST_TEST(row.run_queue_ns.has_value() == test::counts_run_queue());
                BOOST_TEST(row.run_queue_ns.value_or(0) <= ns);
                BOOST_TEST(last.cpu_ns == (runs ? *row.cpu_ns : no_stamp));   // this source stamps its stages itself
            }
        }
}

BOOST_AUTO_TEST_CASE(a_straggler_among_short_samples_says_what_it_computed) {
    Recorder recorder{{.ring_records = 1u << 16}};   // large enough for all samples
    Runtime runtime{{}, recorder};
    NumberedSource source{4000};
    source.before_fill = [](std::uint64_t index) {
        if (index % 1000 == 999)
            test::burn_cpu(std::chrono::milliseconds{20});
    };
    const SequentialSampler sampler{4000};
    DataLoader loader{runtime, source, sampler, {.batch_size = 100, .num_workers = 0}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(batch.size() == 100u);
    const Ledger ledger = recorder.ledger();
    BOOST_REQUIRE(ledger.samples.size() == 4000u);
    std::size_t measured = 0;
    for (const SampleRow& row : ledger.samples) {
        measured += row.cpu_ns.has_value();
        if (row.index % 1000 != 999)
            continue;
        // It computed 20 ms. A few short samples since the previous reading may have waited, which is subtracted.
        BOOST_TEST((!row.cpu_ns || *row.cpu_ns >= 10'000'000));
    }
    BOOST_TEST(measured > 0u);
    BOOST_TEST(measured < 400u);   // samples take some microseconds each, and a reading would cost as much
}

BOOST_AUTO_TEST_CASE(samples_are_measured_as_often_as_a_reading_a_stage_and_four_more_may_cost) {
    SampleUsage usage;
    double measured = 0;
    constexpr int made = 20'000;
    for (int i = 0; i < made; ++i) {
        const std::int64_t cpu_ns = usage.begin(i != 0);
        measured += cpu_ns != no_stamp;
        SampleRecord record;
        record.row.begin_ns = std::int64_t{i} * 400'000;
        record.stage_count = 2;
        record.stages = {StageRow{record.row.begin_ns, 100'000}, StageRow{record.row.begin_ns + 100'000, 300'000}};
        usage.end(record, cpu_ns);
    }
    const double every = (2 + 4) * ReadingBudget::reading_ns / (ReadingBudget::share * 400'000);
    BOOST_TEST(measured == made / every, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(nothing_is_measured_where_the_clock_is_moved_by_hand) {
    const ManualClock clock;
    Recorder recorder{{}, AnyClock{clock}};
    Runtime runtime{{}, recorder};
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{runtime, source, sampler, {.batch_size = 4, .read_concurrency = 3, .memory_budget = 1u << 26}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(batch.size() == 4u);
    const Ledger ledger = recorder.ledger();
    BOOST_REQUIRE(ledger.samples.size() == 8u);
    for (const SampleRow& row : ledger.samples)
        BOOST_TEST((!row.cpu_ns && !row.run_queue_ns));
    BOOST_TEST(ledger.pipelines.at(0).memory_budget == 1u << 26);
    BOOST_TEST(ledger.pipelines.at(0).read_concurrency == 0u);   // the source does not read
}

BOOST_AUTO_TEST_CASE(an_unrecorded_runtime_leaves_no_rows_and_no_stamps) {
    Bench bench;
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(batch.draw_stamps().taken_ns == no_stamp);
    const Ledger ledger = bench.recorder->ledger();
    BOOST_TEST(ledger.batches.empty());
    BOOST_TEST(ledger.samples.empty());
    BOOST_TEST(ledger.pipelines.empty());
}

BOOST_AUTO_TEST_CASE(the_file_shows_each_batch_once_as_its_worker_collated_it) {
    for (const std::size_t workers : {0u, 1u, 3u}) {
        const test::TemporaryFolder folder;
        Recorder recorder{folder / "run.pftrace"};
        const FunctionCollate first_target{"first target", [](const FinishedSamples& samples, CollatedBatch& batch) {
                                               constexpr std::array<std::int64_t, 1> one{1};
                                               batch.add("data", ScalarType::uint8, one)[0] =
                                                   static_cast<std::byte>(samples.targets[0]);
                                           }};
        {
            const NumberedSource source{30};
            const SequentialSampler sampler{30};
            Runtime runtime{{}, recorder};
            DataLoader loader{
                runtime, source, sampler, {.batch_size = 4, .num_workers = workers, .collate = &first_target}};
            for (std::size_t epoch = 0; epoch < 3; ++epoch)
                for (auto& batch : blocking(loader, epoch))
                    BOOST_TEST(batch.size() > 0u);
        }
        recorder.finish();
        const Ledger ledger = recorder.ledger();
        BOOST_TEST(ledger.dropped.empty());
        using Shown = std::tuple<std::string, std::int64_t, std::int64_t>;
        std::vector<Shown> rows, slices;
        for (const BatchRow& row : ledger.batches) {
            BOOST_TEST_REQUIRE(row.collate_worker.has_value());
            rows.emplace_back("worker " + std::to_string(*row.collate_worker), row.collate_begin_ns - ledger.start_ns,
                              row.collate_end_ns - ledger.start_ns);
        }
        for (const test::DrawnSlice& slice : test::slices_of(test::bytes_in(folder / "run.pftrace"), "worker "))
            if (slice.name == "collate") {
                BOOST_TEST(slice.depth == 0u);
                slices.emplace_back(slice.track, slice.begin_ns, slice.end_ns);
            }
        std::ranges::sort(rows);
        std::ranges::sort(slices);
        BOOST_TEST(rows.size() == 24u);
        BOOST_TEST((rows == slices));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
