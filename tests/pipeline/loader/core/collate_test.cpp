#include <drawpoint/pipeline/loader/core/collate.hpp>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/count_allocations.hpp"

BOOST_AUTO_TEST_SUITE(collate)

using namespace drawpoint;

namespace {

using Shape = std::vector<std::int64_t>;

/// Samples of float32 whose values are numbered through.
struct Samples {
    std::vector<SampleBuffer> buffers;
    std::vector<std::int64_t> targets;
    std::vector<std::uint64_t> indices;
    float next = 1;

    explicit Samples(const std::vector<Shape>& shapes) {
        for (const Shape& shape : shapes)
            add(shape);
    }
    void add(const Shape& shape, ScalarType type = ScalarType::float32) {
        SampleLayout layout{type, static_cast<std::uint8_t>(shape.size())};
        std::ranges::copy(shape, layout.shape.begin());
        buffers.emplace_back().reshape(layout);
        if (type == ScalarType::float32)
            for (std::size_t i = 0; i < layout.values(); ++i, ++next)
                std::memcpy(buffers.back().data().data() + 4 * i, &next, 4);
        targets.push_back(0);
        indices.push_back(100 + indices.size());
    }
    [[nodiscard]] FinishedSamples batch() const { return {buffers, targets, indices, 0}; }
};

template <class T>
std::vector<T> values(const BatchPart& part) {
    std::vector<T> numbers(part.data().size() / sizeof(T));
    if (!numbers.empty())
        std::memcpy(numbers.data(), part.data().data(), part.data().size());
    return numbers;
}

Shape shape_of(const BatchPart& part) { return {part.shape().begin(), part.shape().end()}; }

template <class F>
std::string refusal(F f) {
    try {
        f();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

}   // namespace

BOOST_AUTO_TEST_CASE(samples_of_different_length_are_padded_to_the_longest_with_lengths_and_mask) {
    const PadCollate pad{{ScalarType::float32, 1, {0}}, {.value = -1}};
    CollatedBatch batch;
    pad.collate(Samples{{{2}, {3}, {0}}}.batch(), batch);
    BOOST_TEST(batch.parts().size() == 3u);
    const BatchPart& data = batch.parts()[0];
    BOOST_TEST(data.name() == "data");
    BOOST_TEST((data.type() == ScalarType::float32));
    BOOST_TEST(shape_of(data) == (Shape{3, 3}), boost::test_tools::per_element());
    BOOST_TEST(values<float>(data) == (std::vector<float>{1, 2, -1, 3, 4, 5, -1, -1, -1}),
               boost::test_tools::per_element());
    BOOST_TEST(shape_of(*batch.find("lengths")) == Shape{3}, boost::test_tools::per_element());
    BOOST_TEST(values<std::int64_t>(*batch.find("lengths")) == (Shape{2, 3, 0}), boost::test_tools::per_element());
    BOOST_TEST((batch.find("mask")->type() == ScalarType::boolean));
    BOOST_TEST(shape_of(*batch.find("mask")) == (Shape{3, 3}), boost::test_tools::per_element());
    BOOST_TEST(values<std::uint8_t>(*batch.find("mask")) == (std::vector<std::uint8_t>{1, 1, 0, 1, 1, 1, 0, 0, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(batch.find("other") == nullptr);
}

BOOST_AUTO_TEST_CASE(every_value_stands_at_its_place_and_everything_else_is_padding_whatever_varies) {
    std::mt19937 random{5};
    for (int round = 0; round < 300; ++round) {
        SampleLayout layout{ScalarType::float32, static_cast<std::uint8_t>(1 + random() % 4)};
        for (std::size_t d = 0; d < layout.rank; ++d)
            layout.shape[d] = random() % 2 == 0 ? 0 : static_cast<std::int64_t>(1 + random() % 3);
        layout.shape[random() % layout.rank] = 0;
        std::vector<Shape> shapes(1 + random() % 4);
        for (Shape& shape : shapes)
            for (std::size_t d = 0; d < layout.rank; ++d)
                shape.push_back(layout.shape[d] != 0 ? layout.shape[d] : static_cast<std::int64_t>(random() % 5));
        const std::size_t multiple = 1 + random() % 3;
        const Samples samples{shapes};
        CollatedBatch batch;
        PadCollate{layout, {.value = -7, .multiple_of = multiple}}.collate(samples.batch(), batch);
        const auto padded = shape_of(*batch.find("data"));
        for (std::size_t d = 0; d < layout.rank; ++d)
            if (layout.shape[d] == 0)
                BOOST_REQUIRE(padded[d + 1] % static_cast<std::int64_t>(multiple) == 0);
        const auto data = values<float>(*batch.find("data"));
        const auto mask = values<std::uint8_t>(*batch.find("mask"));
        float expected = 1;   // computed the simplest way: every place of the batch in turn
        for (std::size_t place = 0; place < data.size(); ++place) {
            std::size_t rest = place;
            std::array<std::size_t, 5> at{};
            for (std::size_t d = layout.rank + 1u; d-- > 0;) {
                at[d] = rest % static_cast<std::size_t>(padded[d]);
                rest /= static_cast<std::size_t>(padded[d]);
            }
            bool real = true;
            std::size_t mask_place = at[0];
            for (std::size_t d = 0; d < layout.rank; ++d) {
                real &= at[d + 1] < static_cast<std::size_t>(shapes[at[0]][d]);
                if (layout.shape[d] == 0)
                    mask_place = mask_place * static_cast<std::size_t>(padded[d + 1]) + at[d + 1];
            }
            BOOST_REQUIRE(data[place] == (real ? expected++ : -7));
            BOOST_REQUIRE(mask[mask_place] == real);
        }
        BOOST_REQUIRE(expected == samples.next);
    }
}

BOOST_AUTO_TEST_CASE(where_several_sizes_vary_lengths_has_a_column_for_each) {
    const PadCollate pad{{ScalarType::float32, 3, {3, 0, 0}}, {.mask = false}};
    CollatedBatch batch;
    pad.collate(Samples{{{3, 2, 5}, {3, 4, 1}}}.batch(), batch);
    BOOST_TEST(shape_of(*batch.find("data")) == (Shape{2, 3, 4, 5}), boost::test_tools::per_element());
    BOOST_TEST(shape_of(*batch.find("lengths")) == (Shape{2, 2}), boost::test_tools::per_element());
    BOOST_TEST(values<std::int64_t>(*batch.find("lengths")) == (Shape{2, 5, 4, 1}), boost::test_tools::per_element());
    BOOST_TEST(batch.find("mask") == nullptr);
}

BOOST_AUTO_TEST_CASE(the_padding_is_the_value_in_the_samples_own_type) {
    const auto padding = [](ScalarType type, double value) {
        Samples samples{{}};
        samples.add({0}, type);
        CollatedBatch batch;
        PadCollate{{type, 1, {0}}, {.value = value, .multiple_of = 2, .mask = false}}.collate(samples.batch(), batch);
        samples.buffers[0].reshape({type, 1, {1}});
        std::memset(samples.buffers[0].data().data(), 0, size_of(type));
        batch.clear();
        PadCollate{{type, 1, {0}}, {.value = value, .multiple_of = 2, .mask = false}}.collate(samples.batch(), batch);
        std::uint64_t bits = 0;
        std::memcpy(&bits, batch.find("data")->data().data() + size_of(type), size_of(type));
        return bits;
    };
    BOOST_TEST(padding(ScalarType::uint8, 255) == 255u);
    BOOST_TEST(padding(ScalarType::int8, -100) == 156u);
    BOOST_TEST(padding(ScalarType::int16, -2) == 0xFFFEu);
    BOOST_TEST(padding(ScalarType::int32, -100) == 0xFFFFFF9Cu);
    BOOST_TEST(padding(ScalarType::int64, -1) == ~std::uint64_t{0});
    BOOST_TEST(padding(ScalarType::boolean, 1) == 1u);
    BOOST_TEST(padding(ScalarType::float32, 0.5) == 0x3F000000u);
    BOOST_TEST(padding(ScalarType::float64, -0.5) == 0xBFE0000000000000u);
    BOOST_TEST(padding(ScalarType::bfloat16, 1) == 0x3F80u);
    BOOST_TEST(padding(ScalarType::bfloat16, -std::numeric_limits<double>::infinity()) == 0xFF80u);
    // binary16, worked out by hand: numbers at the ends of its ranges, ties to even, and beyond.
    const std::pair<double, std::uint16_t> halves[] = {
        {0, 0x0000},         {-0.0, 0x8000},    {1, 0x3C00},       {-2, 0xC000},
        {0.1, 0x2E66},       {65504, 0x7BFF},   {65519, 0x7BFF},   {65520, 0x7C00},
        {1e9, 0x7C00},       {0x1p-14, 0x0400}, {0x1p-24, 0x0001}, {0x1p-25, 0x0000},
        {0x1.8p-25, 0x0001}, {2049, 0x6800},    {2051, 0x6802},    {0x1.ff8p-15, 0x03FF}};
    for (const auto& [value, bits] : halves)
        BOOST_TEST(padding(ScalarType::float16, value) == bits, value);
    BOOST_TEST((padding(ScalarType::float16, std::nan("")) & 0x7FFF) == 0x7E00u);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_by_name) {
    const SampleLayout words{ScalarType::int32, 1, {0}};
    BOOST_TEST(refusal([&] { PadCollate{words, {.multiple_of = 0}}; }) == "pad: multiple_of must be at least 1, got 0");
    BOOST_TEST(refusal([&] { PadCollate{words, {.multiple_of = 1u << 31}}; }) ==
               "pad: multiple_of must be at most 1073741824, got 2147483648");
    BOOST_TEST(refusal([&] { PadCollate{words, {.value = 0.5}}; }) ==
               "pad: value must be one of type int32, got 0.500000");
    BOOST_TEST(refusal([&] { PadCollate{words, {.value = 2147483648.0}}; }) != "accepted");
    BOOST_TEST(refusal([&] { PadCollate{words, {.value = std::nan("")}}; }) != "accepted");
    BOOST_TEST(refusal([&] { PadCollate{{ScalarType::int64, 1, {0}}, {.value = 0x1p63}}; }) != "accepted");
    BOOST_TEST(refusal([&] { PadCollate{{ScalarType::boolean, 1, {0}}, {.value = 2}}; }) != "accepted");
    BOOST_TEST(refusal([&] { PadCollate{{ScalarType::float32, 2, {3, 4}}}; }) ==
               "pad: no size of the layout [3, 4] varies (is 0): such samples need no collate function");
    const PadCollate pad{{ScalarType::float32, 2, {0, 4}}};
    CollatedBatch batch;
    BOOST_TEST(refusal([&] { pad.collate(Samples{{{2, 4}, {3, 5}}}.batch(), batch); }) ==
               "pad: sample 101 has shape [3, 5], where [*, 4] is expected");
    Samples other{{{2, 4}}};
    other.add({2, 4}, ScalarType::int32);
    BOOST_TEST(refusal([&] { pad.collate(other.batch(), batch); }) ==
               "pad: sample 101 has shape [2, 4] and another type, where [*, 4] is expected");
}

BOOST_AUTO_TEST_CASE(a_users_function_gives_the_batch_any_arrays_it_likes) {
    const auto sum = collate_with("sum", [](const FinishedSamples& samples, CollatedBatch& batch) {
        const std::array<std::int64_t, 1> shape{static_cast<std::int64_t>(samples.samples.size())};
        const auto sums = batch.add_values<std::int64_t>("sums", ScalarType::int64, shape);
        for (std::size_t i = 0; i < samples.samples.size(); ++i)
            sums[i] = static_cast<std::int64_t>(samples.samples[i].layout().values());
    });
    BOOST_TEST(sum->name() == "sum");
    CollatedBatch batch;
    sum->collate(Samples{{{2, 3}, {4}}}.batch(), batch);
    BOOST_TEST(values<std::int64_t>(*batch.find("sums")) == (Shape{6, 4}), boost::test_tools::per_element());
    const std::array<std::int64_t, 1> one{1}, negative{-1}, huge{std::int64_t{1} << 62};
    BOOST_TEST(refusal([&] { batch.add("sums", ScalarType::int64, one); }) ==
               "collate: array 'sums': it is there already");
    BOOST_TEST(refusal([&] { batch.add("", ScalarType::int64, one); }) ==
               "collate: array '': its name must not be empty");
    BOOST_TEST(refusal([&] { batch.add("x", ScalarType::int64, {}); }) ==
               "collate: array 'x': it must have 1 to 5 sizes, got 0");
    BOOST_TEST(refusal([&] { batch.add("x", ScalarType::int64, negative); }) ==
               "collate: array 'x': its sizes must be at least 0 and fit into memory, got -1");
    BOOST_TEST(refusal([&] { batch.add("x", ScalarType::int64, huge); }) != "accepted");
    BOOST_TEST(refusal([] { FunctionCollate("", [](const FinishedSamples&, CollatedBatch&) {}); }) != "accepted");
    BOOST_TEST(refusal([] { FunctionCollate("x", nullptr); }) == "collate: x has no function");
}

BOOST_AUTO_TEST_CASE(memory_is_used_again_and_left_to_those_who_retain_it) {
    CollatedBatch batch;
    const std::array<std::int64_t, 1> size{1000};
    const auto first = batch.add("a", ScalarType::uint8, size);
    batch.clear();
    BOOST_TEST(batch.parts().empty());
    BOOST_TEST(batch.add("b", ScalarType::uint8, size).data() == first.data());
    const std::uint64_t bytes = batch.bytes();
    SlotMemory& memory = batch.parts()[0].memory();
    memory.retain();
    memory.data()[0] = std::byte{42};
    batch.release_memory();
    BOOST_TEST(batch.bytes() == 0u);
    BOOST_TEST(batch.add("c", ScalarType::uint8, size).data() != memory.data());
    BOOST_TEST((memory.data()[0] == std::byte{42}));
    memory.release();
    BOOST_TEST(batch.bytes() == bytes);
    (void)batch.add("d", ScalarType::uint8, size);
    SlotMemory &left = batch.parts()[0].memory(), &stays = batch.parts()[1].memory();
    BOOST_TEST(!left.is_shared());
    left.retain();
    BOOST_TEST(left.is_shared());
    BOOST_TEST(batch.release_shared() == 1u);
    BOOST_TEST(batch.parts().empty());
    BOOST_TEST(batch.release_shared() == 0u);
    BOOST_TEST(batch.bytes() == stays.bytes());
    left.release();

    SampleBuffer buffer;
    const auto large = buffer.reshape({ScalarType::float32, 1, {100}});
    BOOST_TEST(large.size() == 400u);
    BOOST_TEST(buffer.reshape({ScalarType::float32, 2, {10, 0}}).empty());
    BOOST_TEST(buffer.reshape({ScalarType::float32, 1, {100}}).data() == large.data());
    BOOST_TEST(refusal([&] { buffer.reshape({ScalarType::float32, 1, {-1}}); }) ==
               "a sample's shape[0] must be at least 0 and fit into memory, got -1");
    BOOST_TEST(refusal([&] { buffer.reshape({ScalarType::float32, 2, {1 << 30, 1 << 30}}); }) != "accepted");
    BOOST_TEST(refusal([&] { buffer.reshape({ScalarType::float32, 2, {0, std::int64_t{1} << 47}}); }) != "accepted");
    BOOST_TEST(buffer.has_layout());
    buffer.clear();
    BOOST_TEST(!buffer.has_layout());
    BOOST_TEST(buffer.data().empty());
    BOOST_TEST(buffer.capacity() == 512u);
}

BOOST_AUTO_TEST_CASE(a_buffer_gives_up_what_is_several_times_what_its_sample_needed_and_nothing_else) {
    const auto bytes = [](std::int64_t count) { return SampleLayout{ScalarType::uint8, 1, {count}}; };
    constexpr std::int64_t KiB = 1024;
    SampleBuffer buffer;
    buffer.reshape(bytes(63 * KiB / 2));
    buffer.clear();
    buffer.reshape(bytes(1));
    BOOST_TEST(buffer.release_excess() == 0u);   // it is small
    buffer.clear();
    buffer.reshape(bytes(1024 * KiB));
    buffer.reshape(bytes(1));   // was made for a larger sample, as the next may be
    BOOST_TEST(buffer.release_excess() == 0u);
    buffer.clear();
    buffer.reshape(bytes(256 * KiB));
    BOOST_TEST(buffer.release_excess() == 0u);
    BOOST_TEST(buffer.held() == 1024u * KiB);
    buffer.clear();
    buffer.reshape(bytes(256 * KiB - 1));
    BOOST_TEST(buffer.release_excess() == 1024u * KiB);
    BOOST_TEST(buffer.held() == 0u);
    BOOST_TEST(buffer.capacity() == 0u);
    BOOST_TEST(!buffer.has_layout());
    BOOST_TEST(buffer.data().empty());
    BOOST_TEST(buffer.reshape(bytes(100)).size() == 100u);
    buffer.clear();
    buffer.reshape(bytes(1024 * KiB));
    buffer.clear();   // as if the sample failed before it had a shape
    BOOST_TEST(buffer.release_excess() == 1024u * KiB);
}

BOOST_AUTO_TEST_CASE(a_large_sample_takes_pages_of_the_usual_size_so_that_what_it_holds_is_what_is_said) {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
        return;   // there are no other kinds
    SampleBuffer buffer;
    const auto data = buffer.reshape({ScalarType::uint8, 1, {5 << 20}});
    BOOST_TEST(buffer.held() == std::size_t{5} << 20);   // of 8 MiB mapped
    const auto address = reinterpret_cast<std::uintptr_t>(data.data());
    std::ifstream maps{"/proc/self/smaps"};
    bool inside = false, found = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin <= address && address < end;
        else if (inside && line.starts_with("VmFlags:"))
            found = (line + ' ').find(" nh ") != std::string::npos;
    }
    BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(samples_without_values_make_an_empty_batch_however_large_their_other_sizes) {
    const std::int64_t large = std::int64_t{1} << 40;
    const PadCollate pad{{ScalarType::float32, 3, {0, 0, 0}}};
    CollatedBatch batch;
    pad.collate(Samples{{{large, 2, 0}, {1, 3, 0}}}.batch(), batch);
    BOOST_TEST(shape_of(*batch.find("data")) == (Shape{2, large, 3, 0}), boost::test_tools::per_element());
    BOOST_TEST(values<std::int64_t>(*batch.find("lengths")) == (Shape{large, 2, 0, 1, 3, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(batch.find("mask")->data().empty());
}

BOOST_AUTO_TEST_CASE(padding_batch_after_batch_allocates_nothing) {
    std::vector<Samples> batches;
    std::mt19937 random{9};
    for (int i = 0; i < 20; ++i) {
        std::vector<Shape> shapes;
        for (int k = 0; k < 8; ++k)
            shapes.push_back({static_cast<std::int64_t>(random() % 50), 4});
        batches.emplace_back(shapes);
    }
    const PadCollate pad{{ScalarType::float32, 2, {0, 4}}};
    CollatedBatch batch;
    const auto pass = [&] {
        for (const Samples& samples : batches) {
            batch.clear();
            pad.collate(samples.batch(), batch);
        }
    };
    pass();
    const std::uint64_t before = test::counted_allocations();
    test::count_this_thread(true);
    pass();
    test::count_this_thread(false);
    BOOST_TEST(test::counted_allocations() - before == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
