#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

std::atomic<int> hooked{0};

BOOST_AUTO_TEST_SUITE(fill_run)

BOOST_AUTO_TEST_CASE(a_source_that_fills_runs_is_asked_once_a_claim_and_each_call_is_one_row_of_the_samples_it_made) {
    for (const std::size_t workers : {0u, 1u, 3u}) {
        const auto recorder = test::small_recorder();
        Runtime runtime{{}, *recorder};
        NumberedSource source{600};
        source.runs = true;
        const RandomSampler sampler{600, 9};
        DataLoader loader{runtime, source, sampler, {.batch_size = 20, .num_workers = workers, .seed = 3}};
        for (auto& batch : blocking(loader, 4))
            BOOST_TEST(source.fault(batch, 3) == "");
        BOOST_TEST(source.fills == 0u);
        const Ledger ledger = recorder->ledger();
        BOOST_TEST(ledger.samples.size() == source.run_calls);
        BOOST_TEST(source.run_calls < 600u);   // rows are tiny, so claims grow
        std::vector<std::uint64_t> order(600);
        sampler.order(4, order);
        std::uint64_t samples = 0;
        std::uint32_t next_slot = 0;
        for (const SampleRow& row : ledger.samples) {
            const BatchRow& batch = ledger.batches.at(row.batch);
            next_slot = row.slot == 0 ? 0 : next_slot;
            BOOST_TEST(row.slot == next_slot);   // the runs of a batch cover it without gaps
            next_slot += row.samples;
            BOOST_TEST(row.index == order[row.batch * 20 + row.slot]);
            BOOST_TEST(row.bytes == row.samples * 32u);
            BOOST_REQUIRE(row.stages.count == 1u);
            const StageRow& stage = ledger.stages_of(row)[0];
            BOOST_TEST(stage.begin_ns == row.begin_ns);
            BOOST_TEST(row.begin_ns >= batch.first_claim_ns);
            BOOST_TEST(stage.begin_ns + stage.ns <= batch.last_done_ns);
            samples += row.samples;
        }
        BOOST_TEST(samples == 600u);
    }
}

BOOST_AUTO_TEST_CASE(the_sample_at_which_a_run_throws_fails_its_batch_by_index_and_path_and_the_next_batches_come) {
    for (const std::size_t workers : {0u, 2u})
        for (std::uint64_t wrong = 0; wrong < 12; ++wrong) {
            const auto recorder = test::small_recorder();
            Runtime runtime{{}, *recorder};
            NumberedSource source{12};
            source.runs = true;
            source.fails = [wrong](std::uint64_t index) { return index == wrong; };
            const SequentialSampler sampler{12};
            DataLoader loader{runtime, source, sampler, {.batch_size = 3, .num_workers = workers}};
            for (std::size_t epoch = 0; epoch < 3; ++epoch) {   // in the later epochs a claim is a whole batch
                auto pass = loader.epoch(epoch);
                for (std::uint64_t number = 0; number < 4; ++number) {
                    if (number != wrong / 3) {
                        BOOST_TEST(pass.next_blocking()->number() == number);
                        continue;
                    }
                    const std::string name = std::to_string(wrong);
                    BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, [&](const SampleError& error) {
                        return error.index() == wrong && error.stage() == "rows" &&
                               error.what() == "sample " + name + " (numbers/" + name + "): rows: no sample " + name;
                    });
                }
                BOOST_TEST(!pass.next_blocking().has_value());
            }
            const Ledger ledger = recorder->ledger();
            BOOST_TEST(ledger.failures.size() == 3u);
            const auto failed = std::ranges::count(ledger.samples, SampleStatus::failed, &SampleRow::status);
            BOOST_TEST(failed == 3);
        }
}

BOOST_AUTO_TEST_CASE(an_index_outside_the_data_set_fails_a_run_before_the_source_is_asked) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    NumberedSource source{4};
    source.runs = true;
    const FixedSampler sampler{{0, 3, 4, 1}};
    DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = 0}};
    auto pass = loader.epoch(0);
    BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, [](const SampleError& error) {
        return error.what() == std::string{"sample 4: sampler: index 4 of a data set of 4"};
    });
}

BOOST_AUTO_TEST_CASE(each_worker_calls_the_hook_before_its_first_sample_and_the_loop_s_own_thread_does_not) {
    for (const std::size_t workers : {0u, 1u, 3u}) {
        hooked = 0;
        const auto recorder = test::small_recorder();
        Runtime runtime{{.record = false, .on_worker_start = []() noexcept { hooked.fetch_add(1); }}, *recorder};
        NumberedSource source{40};
        std::atomic<bool> early{false};
        source.before_fill = [&](std::uint64_t) { early = early || (workers > 0 && hooked == 0); };
        const SequentialSampler sampler{40};
        {
            DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
            for (auto& batch : blocking(loader))
                BOOST_TEST(batch.size() == 4u);
        }
        BOOST_TEST(!early);
        BOOST_TEST(hooked <= static_cast<int>(workers));
        BOOST_TEST((hooked > 0) == (workers > 0));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
