#include <drawpoint/loop/torch/learner.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <boost/test/unit_test.hpp>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/model.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

static_assert(Learner<TorchLearner, Batch> && Learner<TorchLearner, DeviceBatch>);
namespace fake = fake_accelerator;

/// A small convolutional net whose weights are made on a device: LibTorch cannot move those of its own modules to an
/// accelerator that it does not know.
struct SmallNet : torch::nn::Module {
    explicit SmallNet(const at::Device& device) {
        torch::manual_seed(7);
        const auto weights = [&](const char* name, std::vector<std::int64_t> shape) {
            return register_parameter(name, (at::rand(shape) - 0.5).to(device).detach());
        };
        kernel = weights("kernel", {6, 3, 3, 3});
        scale = weights("scale", {6});
        shift = weights("shift", {6});
        mean = register_buffer("mean", at::zeros({6}).to(device));
        variance = register_buffer("variance", (at::zeros({6}) + 1).to(device));
        out = weights("out", {4, 6 * 4 * 4});
    }
    at::Tensor forward(const at::Tensor& images) {
        const at::Tensor convolved = at::conv2d(images, kernel, {}, 2, 1);
        const at::Tensor normed =
            at::batch_norm(convolved, scale, shift, mean, variance, is_training(), 0.1, 1e-5, false);
        return at::linear(at::relu(normed).flatten(1), out);
    }
    at::Tensor kernel, scale, shift, mean, variance, out;
};

FunctionRows images() {
    return from_function(80, {ScalarType::uint8, 3, {3, 8, 8}}, "image", [](SampleView& sample) {
        for (std::byte& byte : sample.data)
            byte = static_cast<std::byte>(sample.random.uniform() * 255);
        *sample.target = static_cast<std::int64_t>(sample.index % 4);
    });
}

struct Outcome {
    std::vector<double> losses;
    Metrics metrics;
};

template <class Loader>
Outcome train(Runtime& runtime, Loader& loader, const at::Device& device) {
    TorchLearner learner{model_of(std::make_shared<SmallNet>(device)), {.learning_rate = 0.01, .top_k = 2}};
    Outcome outcome;
    const auto loop = [&]() -> Awaitable<void> {
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
            learner.begin_phase(true);
            auto pass = loader.epoch(epoch);
            for (;;) {
                auto batch = co_await pass.next();
                if (!batch)
                    break;
                learner.forward(*batch);
                learner.loss(*batch);
                learner.backward();
                learner.opt_step();
                outcome.losses.push_back(learner.loss_value());
                learner.zero_grad();
            }
        }
    };
    run(runtime, loop());
    outcome.metrics = learner.metrics();
    return outcome;
}

BOOST_AUTO_TEST_SUITE(device_learner)

BOOST_AUTO_TEST_CASE(training_on_the_device_gives_the_same_losses_to_the_last_bit) {
    fake::reset({.query_ns = 1000, .copy_ns = 4 * test::ms, .op_ns = 10'000});
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    const FunctionRows source = images();
    const RandomSampler sampler{source.size(), 1};
    const LoaderOptions options{.batch_size = 8, .num_workers = 1, .slot_memory = pinned_memory()};
    DataLoader alone{runtime, source, sampler, options, "alone"};
    const Outcome on_cpu = train(runtime, alone, at::Device{at::kCPU});
    BOOST_TEST(on_cpu.losses.size() == 20u);
    BOOST_TEST(on_cpu.losses.back() != on_cpu.losses.front());

    DataLoader host{runtime, source, sampler, options, "host"};
    DeviceLoader loader{host};
    const Outcome on_device = train(runtime, loader, fake::device());
    BOOST_TEST(on_device.losses == on_cpu.losses, boost::test_tools::per_element());
    BOOST_TEST(on_device.metrics.correct == on_cpu.metrics.correct);
    BOOST_TEST(on_device.metrics.in_top_k == on_cpu.metrics.in_top_k);
    BOOST_TEST(on_device.metrics.loss_sum == on_cpu.metrics.loss_sum);
    BOOST_TEST(loader.counters().buffers_replaced == 0u);
    BOOST_TEST(fake::counters().host_waits > 0u);   // loss_value() and metrics()
    fake::synchronize();
}

BOOST_AUTO_TEST_CASE(a_target_that_is_no_class_is_found_without_asking_the_device) {
    fake::reset({.query_ns = 1000});
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    const auto source =
        from_function(4, {ScalarType::uint8, 3, {3, 8, 8}}, "image", [](SampleView& sample) { *sample.target = 4; });
    const SequentialSampler sampler{4};
    DataLoader host{runtime, source, sampler, {.batch_size = 4, .num_workers = 0, .slot_memory = pinned_memory()}};
    DeviceLoader loader{host};
    BOOST_CHECK_EXCEPTION(train(runtime, loader, fake::device()), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()} == "target 4 is none of the model's 4 classes";
    });
    fake::synchronize();
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
