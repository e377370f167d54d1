#include <drawpoint/pipeline/torch/tensors.hpp>

#include <algorithm>
#include <vector>

#include <ATen/Functions.h>
#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "torch/drawn.hpp"

BOOST_AUTO_TEST_SUITE(tensors)

using namespace drawpoint;
using test::Drawn;
using test::numbered;

BOOST_AUTO_TEST_CASE(a_tensor_lies_over_the_batchs_own_memory) {
    const auto source = numbered(4);
    Drawn drawn{source, 4};
    Batch batch = drawn.next();
    const at::Tensor data = data_of(batch), targets = targets_of(batch);
    BOOST_TEST(data.const_data_ptr() == static_cast<const void*>(batch.data().data()));
    BOOST_TEST(targets.const_data_ptr() == static_cast<const void*>(batch.targets().data()));
    BOOST_TEST((data.sizes() == at::IntArrayRef{4, 2}));
    BOOST_TEST((targets.sizes() == at::IntArrayRef{4}));
    BOOST_TEST(data[3][1].item<float>() == 9);
    BOOST_TEST(targets[2].item<std::int64_t>() == 2);
}

BOOST_AUTO_TEST_CASE(tensors_are_made_once_and_used_again_with_the_memory) {
    const auto source = numbered(40);
    Drawn drawn{source, 4};
    std::vector<const void*> made;
    for (int i = 0; i < 30; ++i) {
        Batch batch = drawn.next();
        const void* tensor = data_of(batch).unsafeGetTensorImpl();
        if (std::find(made.begin(), made.end(), tensor) == made.end())
            made.push_back(tensor);
        BOOST_TEST((data_of(batch).unsafeGetTensorImpl() == tensor));
    }
    BOOST_TEST(made.size() <= 2u);   // prefetch_depth + 1 slots
    BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
}

BOOST_AUTO_TEST_CASE(a_tensor_kept_beyond_its_batch_keeps_its_values) {
    const auto source = numbered(40);
    Drawn drawn{source, 4};
    at::Tensor kept, view, kept_targets;
    {
        Batch batch = drawn.next();
        kept = data_of(batch);
    }
    {
        Batch batch = drawn.next();
        view = data_of(batch).select(0, 1);
    }
    {
        Batch batch = drawn.next();
        kept_targets = targets_of(batch);
    }
    for (int i = 0; i < 20; ++i)
        (void)drawn.next();
    BOOST_TEST(at::equal(kept.select(1, 0), at::arange(0, 4, at::kFloat)));
    BOOST_TEST(view[0].item<float>() == 5);
    BOOST_TEST(at::equal(kept_targets, at::arange(8, 12, at::kLong)));
    BOOST_TEST(drawn.loader().counters().slots_replaced == 3u);
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_collated_batch_are_tensors_over_their_memory) {
    const SampleLayout layout{ScalarType::int64, 2, {0, 2}};
    const auto source = from_function(40, layout, "count", [](SampleView& sample) {
        sample.reshape({static_cast<std::int64_t>(sample.index % 4), 2});
        std::ranges::fill(sample.values<std::int64_t>(), static_cast<std::int64_t>(sample.index));
        *sample.target = 7;
    });
    const PadCollate pad{layout, {.value = -1}};
    Drawn drawn{source, 4, 2, &pad};
    at::Tensor kept, kept_view, kept_targets;
    {
        Batch batch = drawn.next();
        kept = data_of(batch);
        BOOST_TEST(kept.const_data_ptr() == static_cast<const void*>(batch.data().data()));
        BOOST_TEST((kept.sizes() == at::IntArrayRef{4, 3, 2}));
        BOOST_TEST((kept.scalar_type() == at::kLong));
        const at::Tensor mask = part_of(batch, "mask");
        BOOST_TEST((mask.scalar_type() == at::kBool));
        BOOST_TEST(at::equal(mask.sum(1), at::arange(0, 4, at::kLong)));
        BOOST_TEST(at::equal(part_of(batch, "lengths"), at::arange(0, 4, at::kLong)));
        BOOST_TEST(at::equal(kept.ne(-1).select(2, 0), mask));
        BOOST_TEST(at::equal(targets_of(batch), at::full({4}, 7, at::kLong)));
        BOOST_CHECK_THROW((void)part_of(batch, "masks"), std::out_of_range);
    }
    {
        Batch batch = drawn.next();
        kept_view = part_of(batch, "mask").select(0, 1);
        kept_targets = targets_of(batch);
    }
    BOOST_TEST(drawn.loader().counters().slots_replaced == 2u);
    for (int i = 0; i < 20; ++i) {
        Batch batch = drawn.next();
        BOOST_TEST(data_of(batch)[3][0][0].item<std::int64_t>() == static_cast<std::int64_t>(batch.indices()[3]));
    }
    BOOST_TEST(at::equal(kept[3], at::full({3, 2}, 3, at::kLong)));
    BOOST_TEST(kept_view.sum().item<std::int64_t>() == 1);
    BOOST_TEST(kept_targets[3].item<std::int64_t>() == 7);
    BOOST_TEST(drawn.loader().counters().slots_replaced == 2u);
}

BOOST_AUTO_TEST_CASE(a_tensor_outlives_its_loader) {
    const auto source = numbered(4);
    at::Tensor kept;
    {
        Drawn drawn{source, 4};
        Batch batch = drawn.next();
        kept = data_of(batch);
    }
    BOOST_TEST(kept.sum().item<float>() == 0 + 1 + 2 + 3 + 0 + 1 + 4 + 9);
}

BOOST_AUTO_TEST_CASE(a_short_batch_gives_a_short_tensor) {
    const auto source = numbered(10);
    Drawn drawn{source, 4};
    for (int epoch = 0; epoch < 3; ++epoch)
        for (const std::int64_t size : {4, 4, 2}) {
            Batch batch = drawn.next();
            BOOST_TEST(data_of(batch).size(0) == size);
            BOOST_TEST(targets_of(batch).size(0) == size);
            BOOST_TEST(data_of(batch).const_data_ptr() == static_cast<const void*>(batch.data().data()));
        }
    BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
}

BOOST_AUTO_TEST_CASE(a_slot_first_seen_short_gives_whole_tensors_later) {
    const auto source = numbered(5);
    Drawn drawn{source, 4, 3};
    (void)drawn.next();   // this draw's slot has no tensor yet
    for (int i = 0; i < 12; ++i) {
        Batch batch = drawn.next();
        BOOST_TEST(data_of(batch).size(0) == static_cast<std::int64_t>(batch.size()));
        BOOST_TEST(data_of(batch)[-1][0].item<float>() == static_cast<float>(batch.indices().back()));
    }
}

BOOST_AUTO_TEST_CASE(memory_is_that_of_the_slots_however_many_batches_are_drawn) {
    const auto source = numbered(400);
    Drawn drawn{source, 4};
    std::uint64_t bytes = 0;
    for (int i = 0; i < 300; ++i) {
        Batch batch = drawn.next();
        const at::Tensor doubled = data_of(batch).mul(2);
        if (i == 10)
            bytes = drawn.loader().counters().slots_bytes;
    }
    BOOST_TEST(drawn.loader().counters().slots_bytes == bytes);
    BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
}

BOOST_AUTO_TEST_CASE(a_tensor_made_part_of_a_graph_is_not_used_again) {
    const auto source = numbered(40);
    Drawn drawn{source, 4};
    for (int i = 0; i < 6; ++i) {
        Batch batch = drawn.next();
        at::Tensor data = data_of(batch);
        BOOST_TEST(!data.requires_grad());
        data.requires_grad_();
    }
}

BOOST_AUTO_TEST_CASE(each_scalar_type_becomes_torchs) {
    const auto make = [](SampleView& sample) { std::fill(sample.data.begin(), sample.data.end(), std::byte{1}); };
    const auto bytes = from_function(2, {ScalarType::uint8, 2, {3, 5}}, "bytes", make);
    const auto longs = from_function(2, {ScalarType::int64, 0, {}}, "longs", make);
    Drawn drawn_bytes{bytes, 2}, drawn_longs{longs, 2};
    Batch batch_of_bytes = drawn_bytes.next(), batch_of_longs = drawn_longs.next();
    BOOST_TEST((data_of(batch_of_bytes).scalar_type() == at::kByte));
    BOOST_TEST((data_of(batch_of_bytes).sizes() == at::IntArrayRef{2, 3, 5}));
    BOOST_TEST((data_of(batch_of_longs).scalar_type() == at::kLong));
    BOOST_TEST((data_of(batch_of_longs).sizes() == at::IntArrayRef{2}));
    BOOST_TEST(data_of(batch_of_longs)[1].item<std::int64_t>() == 0x0101010101010101);
}

BOOST_AUTO_TEST_SUITE_END()
