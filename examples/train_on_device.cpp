// Trains on the accelerator that LibTorch has: batches are copied there ahead of the loop, as bytes, and normalised.
#include <cstdint>
#include <iostream>

#include <drawpoint/drawpoint.hpp>
#include <drawpoint/torch.hpp>

using namespace drawpoint;

int main() try {
    Recorder recorder;
    Runtime runtime{{.max_threads = 2}, recorder};
    const auto noise = from_function(640, {ScalarType::uint8, 3, {3, 64, 64}}, "noise", [](SampleView& sample) {
        for (std::uint8_t& pixel : sample.values<std::uint8_t>())
            pixel = static_cast<std::uint8_t>(256 * sample.random.uniform());
        *sample.target = static_cast<std::int64_t>(sample.index % 4);
    });
    const RandomSampler order{noise.size(), 7};

    DataLoader loader{runtime, noise, order, {.batch_size = 32, .num_workers = 2, .slot_memory = pinned_memory()}};
    DeviceLoader on_device{loader, {.device_prefetch = 2, .normalize = Normalize::imagenet()}};
    TorchLearner learner{small_cnn(4).to(on_device.device())};
    run(runtime, fit(learner, on_device, {.epochs = 2}, recorder));

    std::cout << "trained on " << on_device.device() << ", loss " << learner.loss_value() << '\n';
} catch (const DeviceError& error) {
    std::cout << error.what() << '\n';
}
