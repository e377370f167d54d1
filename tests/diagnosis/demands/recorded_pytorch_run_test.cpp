#include <drawpoint/diagnosis/demands/recorded_run.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/facts.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Of a replay in which nobody waits for a core.
Ledger ledger_of(const RecordedRun& run) {
    ReplayOptions options = exact(run.setting);
    options.keep_rows = options.ends = options.change.unlimited_cores = true;
    Ledger ledger = replay(run, options).ledger;
    ledger.set_fact(facts::machine_cores, std::to_string(run.cores));
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(recorded_pytorch_run)

BOOST_AUTO_TEST_CASE(what_brings_a_batch_from_its_workers_process_is_known_by_the_counters_of_three_threads) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 40});
    run.setting.num_workers = 2;
    run.setting.prefetch_depth = 4;
    run.setting.kind = LoaderKind::pytorch;
    run.collates = true;
    for (std::size_t i = 0; i < run.batches.size(); ++i) {
        const auto extra = static_cast<std::int64_t>(i) * 1'000;
        run.batches[i].collate = {2 * ms, 0};
        run.batches[i].transfer = {3 * ms + extra, 5 * ms};
        run.batches[i].send_cpu_ns = 6 * ms + extra;
        run.batches[i].rest_cpu_ns = 7 * ms + extra;
    }
    Ledger ledger = ledger_of(run);
    for (const BatchRow& row : ledger.batches)
        BOOST_TEST(row.collate_run_queue_ns + row.receive_run_queue_ns == 0);
    const auto check = [&](const BatchDemand& batch, const Demand& transfer, std::int64_t send_cpu_ns) {
        BOOST_TEST(std::abs(batch.transfer.cpu_ns - transfer.cpu_ns) <= 1);
        BOOST_TEST(std::abs(batch.transfer.wait_ns - transfer.wait_ns) <= 1);
        BOOST_TEST(std::abs(batch.send_cpu_ns - send_cpu_ns) <= 1);
    };
    const RecordedRun read = drawpoint::recorded_run(ledger, 0);
    BOOST_REQUIRE(read.batches.size() == run.batches.size());
    for (std::size_t i = 0; i < run.batches.size(); ++i) {
        check(read.batches[i], run.batches[i].transfer, run.batches[i].send_cpu_ns);
        BOOST_TEST(std::abs(read.batches[i].rest_cpu_ns - run.batches[i].rest_cpu_ns) <= 1);
    }
    // Threads that neither make samples nor pickle: the loop waits for them as it receives, at most that long.
    for (const auto& [beside_ns, awaited_ns] : {std::pair{4 * ms, 4 * ms}, std::pair{9 * ms, 5 * ms}}) {
        Ledger other = ledger;
        for (BatchRow& row : other.batches)
            row.process_cpu_ns += beside_ns;
        const RecordedRun again = drawpoint::recorded_run(other, 0);
        for (std::size_t i = 0; i < run.batches.size(); ++i)
            check(again.batches[i],
                  {run.batches[i].transfer.cpu_ns + awaited_ns, run.batches[i].transfer.wait_ns - awaited_ns},
                  run.batches[i].send_cpu_ns + beside_ns - awaited_ns);
    }
    for (BatchRow& row : ledger.batches)   // more than one thread can have computed
        row.process_cpu_ns += 1'000 * ms;
    for (const BatchDemand& batch : drawpoint::recorded_run(ledger, 0).batches)
        BOOST_TEST(batch.send_cpu_ns < 60 * ms);   // the time between two batches of a worker
    for (BatchRow& row : ledger.batches)
        row.process_cpu_ns -= 1'000 * ms;
    // Waiting for a core is no demand; what was not measured took as long as usual.
    for (BatchRow& row : ledger.batches) {
        row.receive_run_queue_ns = 2 * ms;
        if (row.batch % 2 != 0)
            row.receive_cpu_ns = row.receive_run_queue_ns = no_stamp;
    }
    for (const BatchDemand& batch : drawpoint::recorded_run(ledger, 0).batches) {
        BOOST_TEST(std::abs(batch.transfer.cpu_ns - 3 * ms) < ms / 10);
        BOOST_TEST(std::abs(batch.transfer.wait_ns - 3 * ms) < ms / 10);
    }
    // A recording without these counters: receiving counts as computing, as long as it took.
    for (BatchRow& row : ledger.batches)
        row.worker_cpu_ns = row.process_cpu_ns = row.receive_cpu_ns = row.receive_run_queue_ns = no_stamp;
    const RecordedRun older = drawpoint::recorded_run(ledger, 0);
    for (std::size_t i = 0; i < run.batches.size(); ++i) {
        check(older.batches[i], {run.batches[i].transfer.ns(), 0}, run.batches[i].send_cpu_ns);
        BOOST_TEST(older.batches[i].rest_cpu_ns == 0);
    }
}

BOOST_AUTO_TEST_CASE(what_no_pytorch_loader_can_be_is_refused) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 20});
    run.setting = with_prefetch({.num_workers = 2, .batch_size = 4, .kind = LoaderKind::pytorch}, 2);
    Ledger ledger = ledger_of(run);
    PipelineRow& row = ledger.pipelines[0];
    row.num_workers = std::numeric_limits<std::uint32_t>::max();
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable == "num_workers must be at most 256, got 4294967295");
    row.num_workers = 0;   // and so nothing is ahead
    row.prefetch_depth = 1'000;
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable ==
               "num_workers x prefetch_factor must be at most 55, got 1000");
    row.num_workers = 250;
    BOOST_TEST(drawpoint::recorded_run(ledger, 0).unusable == "");
    row.read_concurrency = 8;   // it reads nothing ahead, whatever its rows say
    for (SampleRow& sample : ledger.samples)
        sample.read_begin_ns = sample.read_end_ns = sample.begin_ns;
    BOOST_TEST(
        drawpoint::replay(drawpoint::recorded_run(ledger, 0), exact(drawpoint::setting_of(row))).draw_ns.size() == 20);
}

BOOST_AUTO_TEST_CASE(workers_that_start_with_each_pass_begin_it_one_after_the_other) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 40});
    run.setting = with_prefetch({.num_workers = 3, .batch_size = 4, .kind = LoaderKind::pytorch}, 2);
    run.pass_batches = 10;
    run.pass_samples = 40;
    run.order = {20 * ms, 0};
    run.worker_gap_ns = 8 * ms;
    run.collates = true;
    Ledger ledger = ledger_of(run);
    const auto first_whole_pass = static_cast<std::size_t>(
        std::ranges::find(ledger.steps, std::uint32_t{1}, &StepRow::epoch) - ledger.steps.begin());
    BOOST_TEST(std::abs(drawpoint::recorded_run(ledger, first_whole_pass).worker_gap_ns - 8 * ms) < ms / 10);
    ledger.set_fact(std::string{facts::persistent_workers_prefix} + ledger.pipelines[0].name, "true");
    BOOST_TEST(drawpoint::recorded_run(ledger, first_whole_pass).worker_gap_ns == 0);
}

BOOST_AUTO_TEST_SUITE_END()
