// Batches of uint8 that the device normalises.
#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <boost/test/unit_test.hpp>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/stages/jpeg_images.hpp"
#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::ms;
using test::says;
namespace fake = fake_accelerator;

constexpr ChannelNormalization imagenet = ChannelNormalization::imagenet();
const fake::Settings quick{.query_ns = 50'000, .copy_ns = ms};

/// Images of every level.
class LevelSource final : public SampleSource {
public:
    LevelSource(std::size_t size, const SampleLayout& layout) : size_{size}, layout_{layout} {}
    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override { return layout_; }
    [[nodiscard]] std::vector<std::string> stages() const override { return {"make"}; }
    [[nodiscard]] std::string path(std::uint64_t index) const override { return std::to_string(index); }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override {
        return std::make_unique<WorkerScratch>();
    }
    void fill(SampleTask& task, WorkerScratch&) const override {
        for (std::size_t i = 0; i < task.data.size(); ++i)
            task.data[i] = static_cast<std::byte>(level(task.index, i));
        *task.target = static_cast<std::int64_t>(task.index);
        task.stage_count = 1;
    }
    [[nodiscard]] static std::uint8_t level(std::uint64_t index, std::size_t i) {
        return static_cast<std::uint8_t>(37 * index + 11 * i);
    }

private:
    std::size_t size_;
    SampleLayout layout_;
};

const SampleLayout pictures{ScalarType::uint8, 3, {3, 5, 7}};
constexpr std::size_t samples = 10, batch_size = 4;   // the last batch is smaller
const std::uint64_t copied_bytes = targets_offset(batch_size * pictures.values()) + batch_size * sizeof(std::int64_t);

/// A loader of pictures on the device.
struct PictureBench {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    LevelSource source;
    SequentialSampler sampler{samples};
    DataLoader host;
    DeviceLoader loader;

    explicit PictureBench(const DeviceOptions& options, const SampleLayout& layout = pictures, std::size_t workers = 0,
                          const fake::Settings& settings = quick, const Collate* collate = nullptr)
        : source{samples, layout},
          host{runtime, source, sampler, on(settings, workers, collate)},
          loader{host, options} {}
    ~PictureBench() { fake::synchronize(); }

    /// Calls `use` with each batch of an epoch.
    void train(const std::function<void(DeviceBatch&)>& use) {
        const auto loop = [&]() -> Awaitable<void> {
            auto pass = loader.epoch(0);
            for (;;) {
                auto batch = co_await pass.next();
                if (!batch)
                    break;
                use(*batch);
                fake::kernel(ms);
            }
        };
        run(runtime, loop());
    }

private:
    static LoaderOptions on(const fake::Settings& settings, std::size_t workers, const Collate* collate) {
        fake::reset(settings);
        return {.batch_size = batch_size,
                .num_workers = workers,
                .prefetch_depth = 3,
                .collate = collate,
                .slot_memory = pinned_memory()};
    }
};

/// What the device is asked to compute, computed by the CPU, for samples from `first` on.
at::Tensor on_cpu(std::size_t first, std::size_t count, at::ScalarType type) {
    const auto n = static_cast<std::int64_t>(count);
    at::Tensor levels = at::empty({n, 3, 5, 7}, at::kByte);
    auto* const to = levels.mutable_data_ptr<std::uint8_t>();
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t at = 0; at < pictures.values(); ++at)
            to[i * pictures.values() + at] = LevelSource::level(first + i, at);
    at::Tensor shift = at::empty({3, 1, 1}, at::kFloat), scale = at::empty({3, 1, 1}, at::kFloat);
    for (std::size_t c = 0; c < 3; ++c) {
        shift.mutable_data_ptr<float>()[c] = 255 * imagenet.mean[c];
        scale.mutable_data_ptr<float>()[c] = 1 / (255 * imagenet.standard_deviation[c]);
    }
    at::Tensor values = at::empty({n, 3, 5, 7}, type);
    at::sub_out(values, levels, shift);
    return values.mul_(scale);
}

BOOST_AUTO_TEST_SUITE(device_normalize)

BOOST_AUTO_TEST_CASE(values_are_those_of_the_same_expression_on_the_cpu) {
    for (const auto& [type, torch_type] : {std::pair{ScalarType::float32, at::kFloat},
                                           {ScalarType::bfloat16, at::kBFloat16},
                                           {ScalarType::float16, at::kHalf}})
        for (const bool channels_last : {false, true})
            for (const std::size_t prefetch : {0u, 2u})
                for (const std::size_t workers : {0u, 2u}) {
                    PictureBench bench{{.device_prefetch = prefetch,
                                        .normalize = imagenet,
                                        .type = type,
                                        .channels_last = channels_last},
                                       pictures,
                                       workers};
                    std::size_t drawn = 0;
                    bench.train([&](DeviceBatch& batch) {
                        const at::Tensor data = data_of(batch);
                        BOOST_TEST(data.scalar_type() == torch_type);
                        BOOST_TEST(data.is_contiguous(channels_last ? at::MemoryFormat::ChannelsLast
                                                                    : at::MemoryFormat::Contiguous));
                        BOOST_TEST(at::equal(data.cpu(), on_cpu(drawn, batch.size(), torch_type)));
                        BOOST_TEST(targets_of(batch)[0].item<std::int64_t>() == static_cast<std::int64_t>(drawn));
                        drawn += batch.size();
                    });
                    BOOST_TEST(drawn == samples);
                    BOOST_TEST(bench.loader.counters().buffers_replaced == 0u);
                    const std::uint64_t values = batch_size * pictures.values() * size_of(type);
                    BOOST_TEST(bench.loader.counters().buffer_bytes == copied_bytes + values);
                }
}

BOOST_AUTO_TEST_CASE(pixels_are_those_of_a_recipe_that_normalises) {
    const test::JpegsInMemory photos{{test::jpeg(97, 61), test::jpeg(200, 150), test::jpeg(33, 120)}};
    const ImageRecipe cropped = photos | decode_jpeg | CenterCrop{24, 20};
    const ImageRecipe of_floats = cropped | Normalize::imagenet(), of_levels = cropped | to_uint8;
    fake::reset(quick);
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const SequentialSampler sampler{3};
    const LoaderOptions options{.batch_size = 3, .num_workers = 0, .slot_memory = pinned_memory()};
    DataLoader floats{runtime, of_floats, sampler, options}, levels{runtime, of_levels, sampler, options};
    DeviceLoader on_device{levels, {.normalize = Normalize::imagenet()}};
    BOOST_TEST(on_device.counters().buffer_bytes < 2 * floats.layout().bytes() * 3);   // five bytes a value, not eight
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = floats.epoch(0);
        auto device_pass = on_device.epoch(0);
        auto batch = co_await pass.next();
        auto device_batch = co_await device_pass.next();
        const at::Tensor difference = at::sub(data_of(*batch), data_of(*device_batch).cpu()).abs().max();
        BOOST_TEST(difference.item<float>() <
                   1e-5F);   // levels are whole on both ways: only the order of rounding differs
    };
    run(runtime, loop());
    fake::synchronize();
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_kept_stays_unchanged) {
    PictureBench bench{{.device_prefetch = 1, .normalize = imagenet}};
    std::optional<at::Tensor> whole, view;
    bench.train([&](DeviceBatch& batch) {
        if (batch.number() == 0)
            whole = data_of(batch);
        else if (batch.number() == 1)
            view = data_of(batch)[0][1];
    });
    BOOST_TEST(bench.loader.counters().buffers_replaced == 2u);
    bench.train([](DeviceBatch&) {});
    BOOST_TEST(bench.loader.counters().buffers_replaced == 2u);
    BOOST_TEST(at::equal(whole->cpu(), on_cpu(0, batch_size, at::kFloat)));
    BOOST_TEST(at::equal(view->cpu(), on_cpu(batch_size, 1, at::kFloat)[0][1]));
}

BOOST_AUTO_TEST_CASE(values_stay_as_long_as_their_batch_is_out) {
    PictureBench bench{{.device_prefetch = 2, .normalize = imagenet}, pictures, 2};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        auto first = co_await pass.next();
        auto second = co_await pass.next();
        auto third = co_await pass.next();
        BOOST_TEST(at::equal(data_of(*first).cpu(), on_cpu(0, batch_size, at::kFloat)));
        BOOST_TEST(at::equal(data_of(*second).cpu(), on_cpu(batch_size, batch_size, at::kFloat)));
        BOOST_TEST(at::equal(data_of(*third).cpu(), on_cpu(2 * batch_size, samples - 2 * batch_size, at::kFloat)));
    };
    run(bench.runtime, loop());
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_takes_no_batch_and_leaves_no_wrong_values) {
    std::size_t failures = 0;
    for (std::int64_t calls = 0; calls < 300; ++calls) {
        std::size_t drawn = 0;
        try {
            fake::Settings settings = quick;
            settings.fails_after = calls;
            PictureBench bench{{.device_prefetch = 1, .normalize = imagenet}, pictures, 0, settings};
            bench.train([&](DeviceBatch& batch) {
                fake::settings().fails_after = -1;   // this reading is not the loader's
                BOOST_TEST(at::equal(data_of(batch).cpu(), on_cpu(drawn, batch.size(), at::kFloat)));
                drawn += batch.size();
                fake::settings().fails_after = calls;
            });
            BOOST_TEST(drawn == samples);
        } catch (const DeviceError& error) {
            ++failures;
            BOOST_TEST(std::string{error.what()}.starts_with("fake:0: "));
        } catch (const c10::AcceleratorError&) {   // of the step's own call
            ++failures;
        }
        fake::reset();
    }
    BOOST_TEST(failures > 30u);
    BOOST_TEST(failures < 300u);   // some number of calls suffices
}

BOOST_AUTO_TEST_CASE(a_step_neither_waits_nor_allocates_on_the_device) {
    PictureBench bench{{.device_prefetch = 2, .normalize = imagenet}};
    bench.train([](DeviceBatch&) {});
    const fake::Counters before = fake::counters();
    bench.train([](DeviceBatch& batch) { (void)data_of(batch); });
    const fake::Counters after = fake::counters();
    BOOST_TEST(after.host_waits == before.host_waits);
    BOOST_TEST(after.synchronises == before.synchronises);
    BOOST_TEST(after.device_allocations == before.device_allocations);
    BOOST_TEST(after.kernels - before.kernels == 3u * 3u);   // subtract, multiply, the step's own
}

BOOST_AUTO_TEST_CASE(memory_budgets_count_the_values_too) {
    const std::uint64_t one = copied_bytes + batch_size * pictures.values() * 4;
    PictureBench bench{{.device_prefetch = 2, .memory_budget = 2 * one, .normalize = imagenet}};
    BOOST_TEST(bench.loader.counters().buffers == 2u);
    BOOST_CHECK_EXCEPTION((PictureBench{{.memory_budget = one - 1, .normalize = imagenet}}), std::invalid_argument,
                          says("memory_budget = " + std::to_string(one - 1) +
                               " is less than one batch on the device: " + std::to_string(one) + " bytes"));
    const std::uint64_t other = fake::counters().device_bytes;
    PictureBench small{{.device_prefetch = 2, .normalize = imagenet}, pictures, 0, {.capacity = other + one + one / 2}};
    BOOST_TEST(small.loader.counters().buffers == 1u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_normalised_is_refused_by_name) {
    const auto refused = [](const DeviceOptions& options, const std::string& text,
                            const SampleLayout& layout = pictures, const Collate* collate = nullptr) {
        BOOST_CHECK_EXCEPTION((PictureBench{options, layout, 0, quick, collate}), std::invalid_argument, says(text));
    };
    const DeviceOptions normalizes{.normalize = imagenet};
    refused(normalizes, "normalize: the samples are not uint8: end the recipe in to_uint8, without Normalize",
            {ScalarType::float32, 3, {3, 5, 7}});
    refused(normalizes, "normalize: the samples must be images of 3 × height × width",
            {ScalarType::uint8, 3, {1, 5, 7}});
    refused(normalizes, "normalize: the samples must be images of 3 × height × width", {ScalarType::uint8, 2, {3, 5}});
    refused({.normalize = ChannelNormalization{{}, {1, 0, 1}}},
            "normalize: standard_deviation must be above 0, got 0.000000");
    refused({.normalize = imagenet, .type = ScalarType::int64}, "type must be float32, bfloat16 or float16");
    for (const DeviceOptions& options : {DeviceOptions{.type = ScalarType::float16}, {.channels_last = true}})
        refused(options, "type and channels_last are those of normalised values: they need normalize");
    const SampleLayout of_any_height{ScalarType::uint8, 3, {3, 0, 7}};
    const PadCollate pad{of_any_height};
    refused(normalizes, "normalize: not with a loader that collates", of_any_height, &pad);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
