#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t samples = 600, in_a_batch = 6;

/// Samples with a size in KiB that is a function of the index.
class Blobs final : public SampleSource {
public:
    explicit Blobs(std::function<std::uint64_t(std::uint64_t)> kib_of) : kib_of_{std::move(kib_of)} {}
    std::size_t size() const noexcept override { return samples; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::uint8, .rank = 1, .shape = {0}}; }
    std::vector<std::string> stages() const override { return {"fill"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        task.stage_count = 1;
        SampleLayout layout = this->layout();
        layout.shape[0] = static_cast<std::int64_t>(kib_of_(task.index) * KiB);
        const auto data = task.buffer->reshape(layout);
        std::ranges::fill(data, static_cast<std::byte>(task.index));
        *task.target = static_cast<std::int64_t>(task.index);
    }

private:
    std::function<std::uint64_t(std::uint64_t)> kib_of_;
};

struct Loaded {
    explicit Loaded(std::function<std::uint64_t(std::uint64_t)> kib_of, std::uint64_t budget,
                    LoaderOptions options = {})
        : source{std::move(kib_of)} {
        options.batch_size = in_a_batch;
        options.prefetch_depth = std::max<std::size_t>(options.prefetch_depth, 12);
        options.memory_budget = budget;
        options.collate = &pad;
        loader.emplace(runtime, source, sampler, options);
    }
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    Blobs source;
    SequentialSampler sampler{samples};
    PadCollate pad{{.type = ScalarType::uint8, .rank = 1, .shape = {0}}};
    std::optional<DataLoader> loader;

    /// Draws a pass, holding the last `held` batches.
    std::size_t draw_pass(std::size_t epoch, std::size_t held) {
        auto pass = loader->epoch(epoch);
        std::vector<Batch> holds;
        std::size_t drawn = 0;
        while (auto batch = pass.next_blocking()) {
            BOOST_TEST(std::ranges::all_of(batch->targets(), [&](std::int64_t target) {
                return target / static_cast<std::int64_t>(in_a_batch) ==
                       batch->targets()[0] / static_cast<std::int64_t>(in_a_batch);
            }));
            if (holds.size() == held)
                holds.erase(holds.begin());
            holds.push_back(std::move(*batch));
            ++drawn;
        }
        return drawn;
    }
    [[nodiscard]] std::uint64_t beside_batches() const {
        const MemoryPlan& plan = loader->memory_plan();
        return plan.workers_bytes + plan.order_bytes;
    }
};

BOOST_AUTO_TEST_SUITE(memory_budget)

BOOST_AUTO_TEST_CASE(batches_of_all_sizes_stay_within_the_budget_and_one_batch) {
    for (const std::size_t workers : {0u, 1u, 3u})
        for (const std::uint64_t budget : {12 * MiB, 24 * MiB, 48 * MiB})
            for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order()}) {
                Loaded loaded{[](std::uint64_t i) { return 1 + i * 7919 % 300; },
                              budget,
                              {.num_workers = workers, .order = order}};
                BOOST_TEST(loaded.loader->options().prefetch_depth == 12u);   // the bytes are the limit
                for (std::size_t epoch = 0; epoch < 3; ++epoch)
                    BOOST_TEST(loaded.draw_pass(epoch, 1) == samples / in_a_batch);
                const LoaderCounters counters = loaded.loader->counters();
                BOOST_TEST(counters.largest_batch_bytes > MiB);
                BOOST_TEST(counters.peak_bytes <= budget + counters.largest_batch_bytes);
                BOOST_TEST(counters.peak_bytes > loaded.beside_batches() + counters.largest_batch_bytes);
                BOOST_TEST(counters.slots_bytes <= budget);
            }
}

BOOST_AUTO_TEST_CASE(a_worker_alone_keeps_to_it_also_when_every_batch_is_larger_than_all_before) {
    Loaded loaded{[](std::uint64_t i) { return 1 + i; }, 16 * MiB};
    BOOST_TEST(loaded.draw_pass(0, 1) == samples / in_a_batch);
    const LoaderCounters counters = loaded.loader->counters();
    BOOST_TEST(counters.largest_batch_bytes > 6 * MiB);
    BOOST_TEST(counters.peak_bytes <= 16 * MiB + counters.largest_batch_bytes);
    BOOST_TEST(counters.peak_bytes > 12 * MiB);
}

BOOST_AUTO_TEST_CASE(where_calm_sizes_jump_each_worker_goes_beyond_it_by_one_batch_at_most) {
    constexpr std::size_t workers = 4;
    constexpr std::uint64_t budget = 28 * MiB;
    for (int round = 0; round < 5; ++round) {
        Loaded loaded{[](std::uint64_t i) { return i < samples / 2 ? 1 : 500; }, budget, {.num_workers = workers}};
        BOOST_TEST(loaded.draw_pass(0, 1) == samples / in_a_batch);
        const LoaderCounters counters = loaded.loader->counters();
        BOOST_TEST(counters.largest_batch_bytes > 6 * MiB);
        BOOST_TEST(counters.peak_bytes <= budget + workers * counters.largest_batch_bytes);
    }
}

BOOST_AUTO_TEST_CASE(a_large_sample_now_and_then_does_not_make_every_place_of_a_batch_large) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const Blobs source{[](std::uint64_t i) { return i % 61 == 0 ? 1024 : 1; }};   // at most one large sample per batch
    const SequentialSampler sampler{samples};
    const auto total = collate_with("total", [](const FinishedSamples& finished, CollatedBatch& batch) {
        std::int64_t sum = 0;
        for (const SampleBuffer& sample : finished.samples)
            sum += static_cast<std::int64_t>(sample.data().size());
        const std::array<std::int64_t, 1> one{1};
        batch.add_values<std::int64_t>("total", ScalarType::int64, one)[0] = sum;
    });
    for (const std::size_t workers : {0u, 2u}) {
        DataLoader loader{
            runtime,
            source,
            sampler,
            {.batch_size = in_a_batch, .num_workers = workers, .prefetch_depth = 3, .collate = total.get()}};
        for (std::size_t epoch = 0; epoch < 20; ++epoch) {
            auto pass = loader.epoch(epoch);
            while (const auto batch = pass.next_blocking())
                ;
        }
        const LoaderCounters counters = loader.counters();
        BOOST_TEST(counters.largest_batch_bytes > 1 * MiB);
        // its own large sample and the one of the batch before, in another buffer
        BOOST_TEST(counters.largest_batch_bytes < 2 * MiB + 16 * KiB);
        BOOST_TEST(counters.slots_bytes < 4 * (1 * MiB + 16 * KiB));
    }
}

BOOST_AUTO_TEST_CASE(each_batch_given_back_wakes_a_worker_where_bytes_are_lacking) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const Blobs source{[](std::uint64_t) { return 500; }};
    const SequentialSampler sampler{40};
    const PadCollate pad{source.layout(), {.mask = false}};
    DataLoader loader{runtime,
                      source,
                      sampler,
                      {.num_workers = 2,   // with one sample per batch: one worker is woken for it, the other sleeps on
                       .prefetch_depth = 12,
                       .memory_budget = 4 * MiB + 5 * MiB + 512 * KiB,
                       .collate = &pad}};
    const auto settle = [&loader] {
        for (LoaderCounters now = loader.counters();
             now.workers_running < 2 || now.worker_parks - now.worker_wakes != 2; now = loader.counters())
            std::this_thread::yield();
    };
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        auto pass = loader.epoch(epoch, {.next_epoch = false});
        settle();
        const std::uint64_t before = loader.counters().suspensions;
        while (pass.next_blocking())   // to the end, when memory is no longer short
            settle();
        if (epoch > 0)   // the size of a batch is known then
            BOOST_TEST(loader.counters().suspensions == before);
    }
    BOOST_TEST(loader.counters().slots_bytes < 6 * MiB);   // of 13 MiB
}

BOOST_AUTO_TEST_CASE(a_budget_below_one_batch_and_a_loop_that_holds_several_still_get_every_batch) {
    for (const std::size_t workers : {0u, 2u})
        for (const std::size_t held : {1u, 4u, 12u}) {
            Loaded loaded{[](std::uint64_t i) { return 100 + i % 2; }, 5 * MiB, {.num_workers = workers}};
            BOOST_TEST(loaded.draw_pass(0, held) == samples / in_a_batch);
            BOOST_TEST(loaded.draw_pass(1, held) == samples / in_a_batch);
            BOOST_TEST(loaded.loader->counters().batches_taken == 2 * samples / in_a_batch);
        }
}

BOOST_AUTO_TEST_CASE(what_is_expected_is_known_after_the_first_batches_and_comes_true) {
    Loaded loaded{[](std::uint64_t) { return 100; }, 0, {.num_workers = 2}};
    BOOST_TEST(loaded.loader->memory_plan().slots_bytes == 0u);
    BOOST_TEST(loaded.loader->counters().expected_bytes == loaded.loader->memory_plan().planned_bytes);
    std::uint64_t early = 0, arrays = 0;
    {
        auto pass = loaded.loader->epoch(0, {.next_epoch = false});
        for (int i = 0; i < 3; ++i) {
            const auto batch = pass.next_blocking();
            BOOST_TEST_REQUIRE(batch.has_value());
            arrays = batch->memory().bytes() + batch->indices().size_bytes();
            for (const BatchPart& part : batch->parts())
                arrays += part.memory().bytes();
        }
        early = loaded.loader->counters().expected_bytes;
    }
    BOOST_TEST(loaded.draw_pass(1, 12) == samples / in_a_batch);   // all slots are used
    const LoaderCounters counters = loaded.loader->counters();
    BOOST_TEST(early == counters.expected_bytes);
    BOOST_TEST(counters.peak_bytes == counters.expected_bytes);
    // Every slot has its arrays, and two of them also have samples: one per worker.
    BOOST_TEST(counters.slots_bytes == 13 * arrays + 2 * (counters.largest_batch_bytes - arrays));
}

BOOST_AUTO_TEST_CASE(what_is_expected_after_a_quarter_of_the_batches_is_the_peak_within_a_tenth_also_under_a_budget) {
    constexpr std::size_t batches = samples / in_a_batch;
    for (const std::size_t workers : {2u, 3u})
        for (const std::uint64_t budget : {20 * MiB, 32 * MiB, 48 * MiB}) {
            Loaded loaded{[](std::uint64_t i) { return 150 + i * 7919 % 150; }, budget, {.num_workers = workers}};
            DataLoader& loader = *loaded.loader;
            auto pass = loader.epoch(0, {.next_epoch = false});
            std::uint64_t expected = 0;
            std::size_t drawn = 0;
            while (const auto batch = pass.next_blocking()) {
                if (++drawn == batches / 4)
                    expected = loader.counters().expected_bytes;
                if (drawn % 8 == 0)   // a slow step: the loader prefetches as far as it can, and all workers sleep
                    for (LoaderCounters now = loader.counters();
                         now.workers_running < workers || now.worker_parks - now.worker_wakes != workers;
                         now = loader.counters())
                        std::this_thread::yield();
            }
            BOOST_TEST(drawn == batches);
            const std::uint64_t peak = loader.counters().peak_bytes;
            BOOST_TEST_MESSAGE(workers << " workers, budget " << budget << ": " << peak << " of " << expected);
            BOOST_TEST(peak * 10 >= expected * 9, workers << " workers: " << peak << " of " << expected);
            BOOST_TEST(peak * 10 <= expected * 11, workers << " workers: " << peak << " of " << expected);
        }
}

BOOST_AUTO_TEST_CASE(a_budget_without_room_for_workers_is_refused_naming_it) {
    BOOST_CHECK_EXCEPTION((Loaded{[](std::uint64_t) { return 1; }, 1 * MiB}), std::invalid_argument,
                          [](const std::invalid_argument& error) {
                              return std::string{error.what()}.find("memory_budget = 1048576") != std::string::npos;
                          });
}

BOOST_AUTO_TEST_CASE(a_batch_larger_than_the_data_set_takes_no_more_memory_than_the_data_set) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const test::NumberedSource source{40};
    const SequentialSampler sampler{40};
    const auto slots_bytes_at = [&](std::size_t batch_size) {
        DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .prefetch_depth = 2}};
        BOOST_TEST(loader.options().batch_size == batch_size);
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
            auto pass = loader.epoch(epoch);
            const auto batch = pass.next_blocking();
            BOOST_REQUIRE(batch.has_value());
            BOOST_TEST(batch->size() == 40u);
            BOOST_TEST(source.fault(*batch, 0) == "");
            BOOST_TEST(!pass.next_blocking().has_value());
        }
        CacheLoader cache{loader, 1};
        auto pass = cache.epoch(0);
        BOOST_TEST(pass.next_blocking()->size() == 40u);
        return loader.memory_plan().slots_bytes;
    };
    BOOST_TEST(slots_bytes_at(1'000'000) == slots_bytes_at(40));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
