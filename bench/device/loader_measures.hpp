#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <drawpoint/loop/torch/learner.hpp>

#include "bench/device/stage_measures.hpp"

namespace drawpoint::bench {

struct DeviceLoaderOptions {
    /// One folder a class; for `train_steps` and more batches, or the model is also measured with passes that begin.
    std::filesystem::path photos;
    std::size_t rounds = 5, batch_size = 64, num_workers = 2, train_steps = 50;
    std::uint32_t image_size = 224;
    /// The model that is trained, with its weights on the device; empty: ResNet-50, in bfloat16 where LibTorch
    /// can autocast.
    std::function<Model(std::size_t classes, const std::string& device)> model{};
};

/// Measures what the device costs the loader, and the loader a model on the device: rounds of passes over photographs,
/// drawn in host memory and on the device, as uint8 and as float32, in turn; then a model trained on new batches and on
/// one that stays. Ratios are of two neighbours in a round.
[[nodiscard]] std::vector<DeviceFigure> measure_device_loader(const std::string& device, const DeviceLoaderOptions&,
                                                              const std::function<void(const DeviceFigure&)>& tell);

}   // namespace drawpoint::bench
