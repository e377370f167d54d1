#include "bench/device/loader_measures.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <ATen/autocast_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>
#include <drawpoint/pipeline/torch/pinned_memory.hpp>

namespace drawpoint::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>{Clock::now() - begin}.count(); }

void synchronize(const c10::Device& device) {
    c10::impl::VirtualGuardImpl{device.type()}.getStream(device).synchronize();
}

class LoaderMeasures {
public:
    LoaderMeasures(const std::string& device, const DeviceLoaderOptions& options,
                   const std::function<void(const DeviceFigure&)>& tell)
        : device_{find_device(device)},
          options_{options},
          tell_{tell},
          photos_{options.photos},
          order_{photos_.size(), 7},
          cropped_{photos_ | decode_image | RandomResizedCrop{options.image_size, options.image_size} |
                   RandomHorizontalFlip{}},
          levels_{cropped_ | to_uint8},
          floats_{cropped_ | Normalize::imagenet()} {}

    std::vector<DeviceFigure> all() {
        rates();
        training();
        return std::move(figures_);
    }

private:
    void tell(std::string name, std::string unit, std::vector<double> values) {
        std::ranges::sort(values);
        const auto last = values.size() - 1;
        figures_.push_back({std::move(name), std::move(unit), values[last / 2], values[last / 10],
                            values[last - last / 10], values.size()});
        if (tell_)
            tell_(figures_.back());
    }
    [[nodiscard]] LoaderOptions loader_options(bool is_pinned) const {
        return {.batch_size = options_.batch_size,
                .num_workers = options_.num_workers,
                .prefetch_depth = 4,
                .seed = 7,
                .drop_last = true,
                .slot_memory = is_pinned ? pinned_memory() : nullptr};
    }

    /// Samples per second of one pass, from its first draw on.
    template <class Loader>
    double rate(Runtime& runtime, Loader& loader, std::size_t epoch) {
        std::size_t drawn = 0;
        double seconds = 0;
        const auto loop = [&]() -> Awaitable<void> {
            auto pass = loader.epoch(epoch);
            const Clock::time_point begin = Clock::now();
            for (;;) {
                auto batch = co_await pass.next();
                if (!batch)
                    break;
                drawn += batch->size();
            }
            synchronize(c10::Device{device_});
            seconds = seconds_since(begin);
        };
        run(runtime, loop());
        return static_cast<double>(drawn) / seconds;
    }

    // Loaders are made for each round anew, so that no other's workers are in the way.
    void rates() {
        std::vector<double> host, device, device_floats, of_host, over_floats;
        for (std::size_t round = 0; round <= options_.rounds; ++round) {   // the first one warms up
            const double alone = with_loader(
                levels_, false, [&](Runtime& runtime, DataLoader& loader) { return rate(runtime, loader, round); });
            const auto on_device = [&](const ImageRecipe& recipe, std::optional<ChannelNormalization> normalize) {
                return with_loader(recipe, true, [&](Runtime& runtime, DataLoader& loader) {
                    DeviceLoader there{loader, {.device = device_, .normalize = normalize}};
                    return rate(runtime, there, round);
                });
            };
            const double there = on_device(levels_, Normalize::imagenet());
            const double of_floats = on_device(floats_, std::nullopt);
            if (round == 0)
                continue;
            host.push_back(alone);
            device.push_back(there);
            device_floats.push_back(of_floats);
            of_host.push_back(there / alone);
            over_floats.push_back(there / of_floats);
        }
        tell("loader alone, uint8", "samples/s", host);
        tell("loader to the device, uint8, normalised there", "samples/s", device);
        tell("loader to the device, float32", "samples/s", device_floats);
        tell("to the device over alone, uint8", "ratio", of_host);
        tell("to the device, uint8 over float32", "ratio", over_floats);
    }

    template <class Use>
    double with_loader(const ImageRecipe& recipe, bool is_pinned, Use use) {
        Recorder recorder;
        Runtime runtime{{.record = false}, recorder};
        DataLoader loader{runtime, recipe, order_, loader_options(is_pinned)};
        return use(runtime, loader);
    }

    static void step(TorchLearner& learner, DeviceBatch& batch) {
        learner.forward(batch);
        learner.loss(batch);
        learner.backward();
        learner.opt_step();
        learner.zero_grad();
    }

    /// A model on batches of the loader, and on one that stays on the device.
    void training() {
        Recorder recorder;
        Runtime runtime{{.record = false}, recorder};
        DataLoader loader{runtime, levels_, order_, loader_options(true)};
        DeviceLoader there{loader, {.device = device_, .normalize = Normalize::imagenet(), .channels_last = true}};
        const std::size_t classes = photos_.num_classes();
        const bool bf16 = !options_.model && at::autocast::is_autocast_available(c10::Device{device_}.type());
        TorchLearner learner{options_.model ? options_.model(classes, device_) : resnet50(classes, 7).to(device_),
                             {.optimizer = Optimizer::sgd, .bf16 = bf16}};
        std::vector<double> fed, resident, ratios;
        std::size_t epoch = 0;
        const auto loop = [&]() -> Awaitable<void> {
            learner.begin_phase(true);
            for (std::size_t round = 0; round <= options_.rounds; ++round) {
                double on_one = 0, on_new = 0;
                {
                    auto pass = there.epoch(epoch++);
                    auto batch = co_await pass.next();
                    synchronize(c10::Device{device_});
                    const Clock::time_point begin = Clock::now();
                    for (std::size_t i = 0; i < options_.train_steps; ++i)
                        step(learner, *batch);
                    synchronize(c10::Device{device_});
                    on_one = static_cast<double>(options_.train_steps * batch->size()) / seconds_since(begin);
                }
                auto pass = there.epoch(epoch++);
                std::size_t drawn = 0;
                std::optional<Clock::time_point> begin;
                for (std::size_t batches = 0; batches <= options_.train_steps;) {   // from the first one on
                    auto batch = co_await pass.next();
                    if (!batch) {
                        pass = there.epoch(epoch++);
                        continue;
                    }
                    if (!begin)
                        begin = Clock::now();
                    step(learner, *batch);
                    drawn += batch->size();
                    ++batches;
                }
                synchronize(c10::Device{device_});
                on_new = static_cast<double>(drawn) / seconds_since(*begin);
                if (round == 0)
                    continue;
                resident.push_back(on_one);
                fed.push_back(on_new);
                ratios.push_back(on_new / on_one);
            }
        };
        run(runtime, loop());
        tell("model trained on one batch that stays", "samples/s", resident);
        tell("model trained on the loader's batches", "samples/s", fed);
        tell("model, the loader's batches over one that stays", "ratio", ratios);
    }

    std::string device_;
    const DeviceLoaderOptions& options_;
    const std::function<void(const DeviceFigure&)>& tell_;
    ImageFolder photos_;
    RandomSampler order_;
    ImageRecipe cropped_, levels_, floats_;
    std::vector<DeviceFigure> figures_;
};

}   // namespace

std::vector<DeviceFigure> measure_device_loader(const std::string& device, const DeviceLoaderOptions& options,
                                                const std::function<void(const DeviceFigure&)>& tell) {
    return LoaderMeasures{device, options, tell}.all();
}

}   // namespace drawpoint::bench
