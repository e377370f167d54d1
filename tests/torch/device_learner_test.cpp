#include <drawpoint/loop/torch/learner.hpp>

#include <chrono>
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

#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/model.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

static_assert(Learner<TorchLearner, Batch> && Learner<TorchLearner, DeviceBatch>);
static_assert(LateLossLearner<TorchLearner, DeviceBatch> && !LateLossLearner<TorchLearner, Batch>);
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

/// What fit() tells its callbacks and its recording of the losses.
struct Told final : EventCallback<Told> {
    std::vector<double> losses;
    void after_batch(const LoopState& state) {
        if (state.loss)
            losses.push_back(*state.loss);
    }
};

struct Fitted {
    std::vector<double> told, recorded;
    std::uint64_t waits = 0, allocations = 0;
};

template <class Of>
Fitted fit_on(const at::Device& device, Of of, bool record_loss) {
    fake::reset({.query_ns = 1000, .nap_ns = 20'000, .copy_ns = test::ms, .op_ns = 200'000});
    ManualClock clock{1};
    fake::settings().on_advance = [&](std::int64_t ns) { clock.advance(std::chrono::nanoseconds{ns}); };
    Recorder recorder{RecorderOptions{.ring_records = 1u << 12}, AnyClock{clock}};
    Runtime runtime{{}, recorder};
    const FunctionRows source = images();
    const RandomSampler sampler{source.size(), 1};
    DataLoader host{runtime, source, sampler, {.batch_size = 8, .num_workers = 0, .slot_memory = pinned_memory()}};
    TorchLearner learner{model_of(std::make_shared<SmallNet>(device)), {.learning_rate = 0.01}};
    CallbackList callbacks;
    Told told;
    callbacks.add(told);
    Fitted fitted;
    of(host, [&](auto& loader) {
        run(runtime, fit(learner, loader, {.epochs = 2, .record_loss = record_loss}, callbacks, recorder));
    });
    fitted.waits = fake::counters().host_waits;
    fake::synchronize();
    fake::settings().on_advance = {};
    fitted.told = told.losses;
    for (const StepRow& step : recorder.ledger().steps)
        if (step.loss)
            fitted.recorded.push_back(*step.loss);
    return fitted;
}

BOOST_AUTO_TEST_CASE(losses_are_read_late_and_no_step_waits_for_them) {
    const auto alone = [](DataLoader& host, auto fits) { fits(host); };
    const auto on_device = [](DataLoader& host, auto fits) {
        DeviceLoader loader{host};
        fits(loader);
    };
    const Fitted cpu = fit_on(at::Device{at::kCPU}, alone, true), late = fit_on(fake::device(), on_device, true),
                 none = fit_on(fake::device(), on_device, false);
    BOOST_TEST_REQUIRE(cpu.recorded.size() == 20u);
    BOOST_TEST(late.recorded == cpu.recorded, boost::test_tools::per_element());
    BOOST_TEST(none.recorded.empty());
    BOOST_TEST(late.waits == none.waits);
    // Callbacks are told each once, in order, as late as the device is behind: but for the last ones.
    BOOST_TEST(late.told.size() >= 20u - 6u);
    BOOST_TEST(late.told.size() < 20u);
    for (std::size_t i = 0; i < late.told.size(); ++i)
        BOOST_TEST(late.told[i] == cpu.told[i]);
}

BOOST_AUTO_TEST_CASE(without_memory_that_the_device_writes_to_losses_are_read_at_once) {
    fake::reset({.query_ns = 1000, .one_stream = true});
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    const FunctionRows source = images();
    const SequentialSampler sampler{source.size()};
    DataLoader host{runtime, source, sampler, {.batch_size = 8, .num_workers = 0}};
    DeviceLoader loader{host};
    TorchLearner learner{model_of(std::make_shared<SmallNet>(fake::device()))};
    run(runtime, fit(learner, loader, {.epochs = 1}, *recorder));
    const Ledger ledger = recorder->ledger();
    BOOST_TEST(ledger.steps.size() == 10u);
    for (const StepRow& step : ledger.steps)
        BOOST_TEST(step.loss.has_value());
    fake::synchronize();
}

BOOST_AUTO_TEST_CASE(a_loss_is_told_only_when_the_device_has_computed_it) {
    constexpr std::size_t steps = 20;
    test::DeviceBench bench{steps, {.query_ns = 1000, .nap_ns = 20'000, .copy_ns = test::ms / 10}, {}};
    std::vector<at::Tensor> losses;
    for (std::size_t i = 0; i < steps; ++i)
        losses.push_back((at::zeros({}) + (1 + static_cast<double>(i))).to(fake::device()));
    std::size_t told = 0;
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        for (std::size_t i = 0; i < steps; ++i) {
            auto batch = co_await pass.next();
            BOOST_REQUIRE(batch.has_value());
            while (const auto loss = batch->next_loss())
                BOOST_TEST(*loss == static_cast<double>(++told));
            fake::kernel(5 * test::ms);   // so the device is steps behind
            BOOST_TEST(keep_loss(*batch, losses[i]));
        }
    };
    run(bench.runtime, loop());
    BOOST_TEST(told >= steps - 6);   // twice three buffers
}

BOOST_AUTO_TEST_CASE(a_loss_is_one_number) {
    test::DeviceBench bench{2, {.query_ns = 1000}, {}};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        auto batch = co_await pass.next();
        BOOST_REQUIRE(batch.has_value());
        BOOST_TEST(!batch->next_loss().has_value());
        BOOST_CHECK_EXCEPTION((void)keep_loss(*batch, data_of(*batch)), std::invalid_argument, [](const auto& error) {
            return std::string{error.what()} == "keep_loss: a loss is one number, got 16";
        });
        BOOST_CHECK_THROW((void)keep_loss(*batch, at::Tensor{}), std::invalid_argument);
        // What the device still writes to host memory when all is destroyed is waited for.
        fake::kernel(50 * test::ms);
        BOOST_TEST(keep_loss(*batch, at::zeros({}).to(fake::device())));
    };
    run(bench.runtime, loop());
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
