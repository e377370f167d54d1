#include <drawpoint/pipeline/loader/core/loader_options.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

std::atomic<std::size_t> blocks{0}, made{0}, bytes_made{0};
std::atomic<bool> refuses{false};

SlotBlock allocate(std::size_t bytes) noexcept {
    if (refuses)
        return {};
    ++blocks;
    ++made;
    bytes_made += bytes;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    return {memory, memory};
}
void free_block(SlotBlock block) noexcept {
    --blocks;
    std::free(block.owner);
}
constexpr SlotAllocator allocator{allocate, free_block};

LoaderOptions options(std::size_t workers, std::size_t depth) {
    made = bytes_made = 0;
    return {.batch_size = 4, .num_workers = workers, .prefetch_depth = depth, .slot_memory = &allocator};
}

BOOST_AUTO_TEST_SUITE(slot_memory)

BOOST_AUTO_TEST_CASE(all_slots_are_one_block_that_is_freed_with_the_last_batch) {
    std::optional<Batch> kept;
    {
        Bench bench;
        const NumberedSource source{40};
        const SequentialSampler sampler{40};
        DataLoader loader{bench.runtime, source, sampler, options(2, 3)};
        BOOST_TEST(made == 1u);
        BOOST_TEST(bytes_made == 4u * 4096);   // slots begin at pages
        BOOST_TEST(loader.counters().slots_bytes >= bytes_made);
        auto pass = loader.epoch(0);
        while (auto batch = pass.next_blocking()) {
            BOOST_TEST(source.fault(*batch, 0) == "");
            kept = std::move(batch);
        }
        BOOST_TEST(made == 1u);
        BOOST_TEST(loader.counters().peak_bytes >= 4u * 4096);
    }
    BOOST_TEST(blocks == 1u);
    kept.reset();
    BOOST_TEST(blocks == 0u);
}

BOOST_AUTO_TEST_CASE(a_deeper_loader_takes_another_block_and_a_shallower_one_keeps_it) {
    {
        Bench bench;
        const NumberedSource source{400};
        const SequentialSampler sampler{400};
        DataLoader loader{bench.runtime, source, sampler, options(1, 1)};
        auto pass = loader.epoch(0);
        std::size_t drawn = 0;
        for (const std::size_t depth : {4u, 1u, 4u, 6u}) {
            loader.reconfigure({.prefetch_depth = depth});
            for (std::size_t i = 0; i < 20; ++i, ++drawn) {
                const auto batch = pass.next_blocking();
                BOOST_TEST(source.fault(*batch, 0) == "");
            }
        }
        BOOST_TEST(drawn == 80u);
        BOOST_TEST(made == 3u);
        BOOST_TEST(bytes_made == 7u * 4096);
        BOOST_TEST(loader.counters().peak_bytes >= 7u * 4096);
    }
    BOOST_TEST(blocks == 0u);
}

BOOST_AUTO_TEST_CASE(what_a_growth_that_never_came_has_taken_is_freed) {
    {
        Bench bench;
        const NumberedSource source{400};
        const SequentialSampler sampler{400};
        LoaderOptions wanted = options(3, 2);
        wanted.memory_budget = std::uint64_t{8} << 20;
        DataLoader loader{bench.runtime, source, sampler, wanted};
        auto pass = loader.epoch(0);
        (void)pass.next_blocking();
        loader.reconfigure({.num_workers = 1, .prefetch_depth = 6});
    }
    BOOST_TEST(blocks == 0u);
}

BOOST_AUTO_TEST_CASE(an_allocator_that_refuses_is_an_error_and_nothing_changes) {
    Bench bench;
    const NumberedSource source{400};
    const SequentialSampler sampler{400};
    refuses = true;
    BOOST_CHECK_THROW((DataLoader{bench.runtime, source, sampler, options(1, 2)}), std::bad_alloc);
    refuses = false;
    DataLoader loader{bench.runtime, source, sampler, options(1, 2)};
    auto pass = loader.epoch(0);
    refuses = true;
    BOOST_CHECK_THROW(loader.reconfigure({.prefetch_depth = 5}), std::bad_alloc);
    refuses = false;
    BOOST_TEST(loader.options().prefetch_depth == 2u);
    for (std::size_t i = 0; i < 10; ++i)
        BOOST_TEST(source.fault(*pass.next_blocking(), 0) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
