#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>
#include <drawpoint/pipeline/torch/pinned_memory.hpp>
#include <drawpoint/pipeline/torch/tensors.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"
#include "torch/fake_accelerator/fake_accelerator.hpp"

namespace drawpoint::test {

constexpr std::int64_t ms = 1'000'000;

/// A step on the fake accelerator: its kernel looks at the batch as it begins and as it ends.
struct DeviceSteps {
    std::int64_t kernel_ns = 5 * ms, host_ns = 0;
    std::size_t begun = 0, looks = 0, wrong = 0;

    void step(DeviceBatch& batch) {
        ++begun;
        fake_accelerator::advance(host_ns);
        const auto* const data = static_cast<const std::int64_t*>(data_of(batch).const_data_ptr());
        const auto* const targets = static_cast<const std::int64_t*>(targets_of(batch).const_data_ptr());
        const std::vector<std::uint64_t> indices{batch.indices().begin(), batch.indices().end()};
        const std::size_t words = batch.layout().values();
        fake_accelerator::kernel(kernel_ns, [=, this, epoch = batch.epoch()](bool) {
            ++looks;
            bool right = true;
            for (std::size_t i = 0; i < indices.size(); ++i) {
                right &= targets[i] == NumberedSource::target(indices[i]);
                for (std::size_t at = 0; at < words; ++at)
                    right &= data[i * words + at] == NumberedSource::word(0, epoch, indices[i], at);
            }
            wrong += right ? 0 : 1;
        });
    }
};

/// A learner whose work is a kernel, or waits for it.
struct KernelLearner {
    DeviceSteps& steps;
    bool waits = false;

    void begin_phase(bool) {}
    void forward(DeviceBatch& batch) { steps.step(batch); }
    void loss(DeviceBatch&) {}
    void backward() {}
    void opt_step() {
        if (waits)
            fake_accelerator::synchronize();
    }
    void zero_grad() {}
    [[nodiscard]] double loss_value() const { return 0; }
};

/// Loader, device and loop of a test.
struct DeviceBench {
    std::unique_ptr<Recorder> recorder = small_recorder();
    Runtime runtime;
    NumberedSource source;
    SequentialSampler sampler;
    DataLoader host;
    DeviceLoader loader;
    DeviceSteps steps;

    DeviceBench(std::size_t batches, const fake_accelerator::Settings& settings, const DeviceOptions& options,
                LoaderOptions of_host = {.batch_size = 4, .num_workers = 0}, bool record = false)
        : runtime{{.record = record}, *recorder},
          source{batches * of_host.batch_size, 4},
          sampler{batches * of_host.batch_size},
          host{runtime, source, sampler, on(settings, of_host)},
          loader{host, options} {}
    ~DeviceBench() { fake_accelerator::synchronize(); }

    /// Trains for an epoch; returns the device's time when it has ended.
    std::int64_t train(std::size_t epoch = 0) {
        const auto loop = [this, epoch]() -> Awaitable<void> {
            auto pass = loader.epoch(epoch);
            for (;;) {
                auto batch = co_await pass.next();
                if (!batch)
                    break;
                steps.step(*batch);
            }
        };
        run(runtime, loop());
        const std::int64_t end_ns = fake_accelerator::stream_end_ns();
        fake_accelerator::synchronize();
        return end_ns;
    }

private:
    static LoaderOptions on(const fake_accelerator::Settings& settings, LoaderOptions options) {
        fake_accelerator::reset(settings);
        options.slot_memory = pinned_memory();
        return options;
    }
};

}   // namespace drawpoint::test
