#include <drawpoint/pipeline/loader/core/collate.hpp>

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/core/loader_core.hpp"
#include "pipeline/loader/words_source.hpp"

namespace drawpoint {
namespace {

using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(collated_slots)

BOOST_AUTO_TEST_CASE(what_is_still_held_of_a_batch_is_left_to_its_holder_and_only_that) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0)};
    auto pass = loader.epoch(0);
    auto batch = pass.next_blocking();
    SlotMemory &data = batch->part("data").memory(), &targets = batch->memory();
    const SlotMemory* const mask = &batch->part("mask").memory();
    data.retain();
    targets.retain();
    const std::vector<std::byte> before(batch->data().begin(), batch->data().end());
    const std::uint64_t held = loader.counters().slots_bytes;
    batch.reset();
    BOOST_TEST(loader.counters().slots_replaced == 1u);
    BOOST_TEST(loader.counters().slots_bytes == held - data.bytes() - targets.bytes());
    bool mask_again = false;
    while ((batch = pass.next_blocking())) {
        BOOST_TEST(fault(*batch) == "");
        BOOST_TEST(&batch->part("data").memory() != &data);
        mask_again |= &batch->part("mask").memory() == mask;
    }
    BOOST_TEST(mask_again);
    BOOST_TEST(std::ranges::equal(before, std::span{data.data(), before.size()}));
    BOOST_TEST(targets.targets()[0] == NumberedSource::target(0));
    BOOST_TEST(loader.counters().slots_replaced == 1u);
    data.release();
    targets.release();
}

BOOST_AUTO_TEST_CASE(a_slot_says_what_it_holds_and_can_be_emptied) {
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 3, 1, true} {}
        ~Core() override = default;
    };
    auto* const core = new Core;
    BOOST_TEST(core->held_bytes(0) == 0u);
    for (int round = 0; round < 2; ++round) {
        Slot& slot = core->slot(0);
        core->furnish(slot);
        core->take_samples(slot);
        BOOST_TEST(core->held_bytes(0) == slot.memory->bytes() + 3 * (sizeof(SampleBuffer) + 8));
        BOOST_TEST(slot.collation->samples[2].capacity() == 0u);
        slot.collation->samples[2].reshape({ScalarType::uint8, 1, {1000}});
        const std::array<std::int64_t, 1> size{10};
        (void)slot.collation->batch.add("a", ScalarType::uint8, size);
        core->trim(0);
        BOOST_TEST(core->held_bytes(0) == 0u);
        BOOST_TEST(slot.memory == nullptr);
        BOOST_TEST(slot.collation->batch.bytes() == 0u);
    }
    core->release();

    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0)};
    auto pass = loader.epoch(0);
    const auto batch = pass.next_blocking();
    std::uint64_t bytes =
        batch->memory().bytes() + 4 * (256 + sizeof(SampleBuffer) + 8);   // four buffers of 16 numbers, and indices
    for (const BatchPart& part : batch->parts())
        bytes += part.memory().bytes();
    BOOST_TEST(loader.counters().slots_bytes == bytes);
}

BOOST_AUTO_TEST_CASE(a_batch_takes_over_the_buffers_that_lay_idle_longest_and_never_those_of_one_in_the_making) {
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 1, 5, true} { sample_sets_ = 2; }
        ~Core() override = default;
        const SampleBuffer* begin(std::uint32_t i) {
            take_samples(slot(i));
            slot(i).collation->making = true;
            return slot(i).collation->samples.get();
        }
        void end(std::uint32_t i) { slot(i).collation->making = false; }
        [[nodiscard]] std::uint64_t all_samples_bytes() const {
            std::uint64_t sum = 0;
            for (std::uint32_t i = 0; i < 5; ++i)
                sum += samples_bytes(i);
            return sum;
        }
    };
    auto* const core = new Core;
    const SampleBuffer* const first = core->begin(0);
    core->end(0);
    const SampleBuffer* const second = core->begin(1);   // so that there are two sets
    BOOST_TEST(second != first);
    BOOST_TEST(core->begin(2) == first);
    BOOST_TEST(core->samples_bytes(0) == 0u);
    BOOST_TEST(core->samples_bytes(2) == sizeof(SampleBuffer));
    core->end(2);
    core->end(1);
    BOOST_TEST(core->begin(2) == second);   // not its own, which was used last
    BOOST_TEST(core->begin(1) == first);
    BOOST_TEST(core->all_samples_bytes() == 2 * sizeof(SampleBuffer));
    const SampleBuffer* const third = core->begin(3);   // rare: both are being made
    BOOST_TEST(third != first);
    BOOST_TEST(third != second);
    BOOST_TEST(core->all_samples_bytes() == 3 * sizeof(SampleBuffer));
    BOOST_TEST(core->sample_sets() == 3u);
    core->end(3);
    core->free_samples(core->slot(3));
    BOOST_TEST(core->sample_sets() == 2u);
    BOOST_TEST(core->all_samples_bytes() == 2 * sizeof(SampleBuffer));
    core->end(1);
    BOOST_TEST(core->begin(3) == first);
    core->end(2);
    core->end(3);
    BOOST_TEST(core->begin(0) == second);
    core->end(0);
    BOOST_TEST(core->begin(1) == first);   // the second was used last, though its slot comes first
    core->release();
}

BOOST_AUTO_TEST_CASE(where_there_is_no_memory_for_another_set_of_buffers_idle_ones_are_taken_over) {
    if (!test::counts_allocations())
        return;   // then allocations cannot be made to fail, either
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 1, 3, true} { sample_sets_ = 2; }
        ~Core() override = default;
    };
    auto* const core = new Core;
    core->take_samples(core->slot(0));
    const SampleBuffer* const first = core->slot(0).collation->samples.get();
    test::fail_allocation_after(0);
    core->take_samples(core->slot(1));
    BOOST_TEST(core->slot(1).collation->samples.get() == first);
    BOOST_TEST(core->slot(0).collation->samples == nullptr);
    BOOST_TEST(core->samples_bytes(0) == 0u);
    BOOST_TEST(core->samples_bytes(1) == sizeof(SampleBuffer));
    core->slot(1).collation->making = true;
    test::fail_allocation_after(0);
    BOOST_CHECK_THROW(core->take_samples(core->slot(2)), std::bad_alloc);   // no idle buffers are left
    BOOST_TEST(core->samples_bytes(2) == 0u);
    core->take_samples(core->slot(2));
    BOOST_TEST(core->sample_sets() == 2u);
    core->release();
}

BOOST_AUTO_TEST_CASE(a_copy_that_memory_runs_out_for_anywhere_is_made_of_the_next_batch) {
    Loaded loaded;
    std::optional<std::uint64_t> calls;   // which allocation fails, counted from when the batch was made
    const FunctionCollate fails_later{"fails later", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                          loaded.pad.collate(samples, batch);
                                          if (calls)
                                              test::fail_allocation_after(*std::exchange(calls, std::nullopt));
                                      }};
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0, &fails_later)};
    for (auto& batch : blocking(loader))   // now the slot has its memory
        BOOST_TEST(fault(batch) == "");
    std::uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed ? 1 : 0) {
        CacheLoader cache{loader, 1};
        auto pass = cache.epoch(0);
        calls = failures;
        std::optional<Batch> batch;
        try {
            batch = pass.next_blocking();
        } catch (const std::bad_alloc&) {
        }
        test::fail_no_allocation();
        failed = !batch.has_value();
        if (failed)
            batch = pass.next_blocking();
        BOOST_TEST(fault(*batch) == "");
    }
    if (test::counts_allocations())
        BOOST_TEST(failures >= 6u);   // each of three arrays, and the bookkeeping for them
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
