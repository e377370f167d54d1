// Uses the loader in a program without coroutines: computes the mean and deviation of a data set's values on all cores.
#include <cmath>
#include <cstdio>

#include <drawpoint/drawpoint.hpp>

int main() {
    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{}, recorder};
    const drawpoint::SyntheticImages images{1000, /*num_classes=*/10, /*side=*/32};
    const drawpoint::SequentialSampler order{images.size()};
    drawpoint::DataLoader loader{runtime, images, order, {.batch_size = 64, .num_workers = 2}};

    std::size_t count = 0, samples = 0;
    double sum = 0, squares = 0;
    for (auto& batch : drawpoint::blocking(loader)) {   // each batch is given back when the next is drawn
        const auto* values = reinterpret_cast<const float*>(batch.data().data());
        const std::size_t n = batch.data().size() / sizeof(float);
        for (std::size_t i = 0; i < n; ++i) {
            sum += static_cast<double>(values[i]);
            squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
        count += n;
        samples += batch.size();
    }
    const double mean = sum / static_cast<double>(count);
    std::printf("%zu images, mean %.3f, deviation %.3f\n", samples, mean,
                std::sqrt(squares / static_cast<double>(count) - mean * mean));
}
