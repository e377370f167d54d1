#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

/// What a program keeps of a batch, and what it held when it was drawn.
struct Kept {
    std::span<const std::byte> data;
    std::span<const std::int64_t> targets;
    std::vector<std::byte> data_then;
    std::vector<std::int64_t> targets_then;
    KeptMemory memory;

    explicit Kept(Batch& batch)
        : data{batch.data()},
          targets{batch.targets()},
          data_then(data.begin(), data.end()),
          targets_then(targets.begin(), targets.end()),
          memory{batch.keep_memory()} {}
    [[nodiscard]] bool is_unchanged() const {
        return std::ranges::equal(data, data_then) && std::ranges::equal(targets, targets_then);
    }
};

std::vector<Kept> keep_all(DataLoader& loader, std::size_t epoch) {
    std::vector<Kept> kept;
    auto pass = loader.epoch(epoch);
    while (auto batch = pass.next_blocking())
        kept.emplace_back(*batch);
    return kept;
}

BOOST_AUTO_TEST_SUITE(keep_memory)

BOOST_AUTO_TEST_CASE(all_batches_of_an_epoch_can_be_kept) {
    for (const std::size_t workers : {0u, 2u})
        for (const bool collates : {false, true}) {
            std::vector<Kept> kept;
            {
                Bench bench;
                const NumberedSource source{120};
                const SequentialSampler sampler{120};
                const auto copies = collate_with("copy", [](const FinishedSamples& samples, CollatedBatch& batch) {
                    const std::array<std::int64_t, 2> shape{static_cast<std::int64_t>(samples.samples.size()), 4};
                    const auto words = batch.add_values<std::int64_t>("data", ScalarType::int64, shape);
                    for (std::size_t i = 0; i < samples.samples.size(); ++i)
                        std::ranges::copy(samples.samples[i].data(),
                                          std::as_writable_bytes(words.subspan(4 * i, 4)).begin());
                });
                DataLoader loader{bench.runtime,
                                  source,
                                  sampler,
                                  {.batch_size = 4,
                                   .num_workers = workers,
                                   .prefetch_depth = 2,
                                   .collate = collates ? copies.get() : nullptr}};
                kept = keep_all(loader, 0);
                BOOST_TEST(kept.size() == 30u);
                BOOST_TEST(loader.counters().slots_replaced == 30u);
                const auto again = keep_all(loader, 1);
                BOOST_TEST(again.size() == 30u);
                BOOST_TEST(std::ranges::all_of(kept, &Kept::is_unchanged));
                BOOST_TEST(!std::ranges::equal(kept[0].data, again[0].data));
                auto pass = loader.epoch(2);   // and none is missing for whoever keeps none
                std::size_t batches = 0;
                while (auto batch = pass.next_blocking())
                    ++batches;
                BOOST_TEST(batches == 30u);
                BOOST_TEST(loader.counters().slots_replaced == 60u);
            }
            BOOST_TEST(std::ranges::all_of(kept, &Kept::is_unchanged));   // of a loader that is gone
            std::thread elsewhere{[&kept] { kept.clear(); }};
            elsewhere.join();
        }
}

BOOST_AUTO_TEST_CASE(a_batch_whose_memory_is_held_is_left_once) {
    Bench bench;
    const NumberedSource source{12};
    const SequentialSampler sampler{12};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .prefetch_depth = 2}};
    auto pass = loader.epoch(0);
    std::optional<Batch> batch = pass.next_blocking();
    static int destroyed = 0, objects = 0;
    destroyed = 0;
    batch->attachment() = {.object = &objects,
                           .held = [](void*) noexcept { return true; },
                           .destroy = [](void*) noexcept { ++destroyed; }};
    const Kept kept{*batch};
    BOOST_TEST(destroyed == 1);
    BOOST_TEST(loader.counters().slots_replaced == 1u);
    batch.reset();   // which is back already
    BOOST_TEST(destroyed == 1);
    while (pass.next_blocking())
        ;
    BOOST_TEST(kept.is_unchanged());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
