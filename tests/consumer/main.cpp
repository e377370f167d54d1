// A user's program: draws a small data set through a DataLoader, using only drawpoint's public headers and targets.
// Exits with 0 if every sample came exactly once.
#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include <drawpoint/drawpoint.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

drawpoint::Awaitable<std::int64_t> sum_of_targets(drawpoint::DataLoader& loader) {
    auto pass = loader.epoch(0);
    std::int64_t sum = 0;
    for (;;) {
        auto batch = co_await pass.next();
        if (!batch)
            break;
        for (const std::int64_t target : batch->targets())
            sum += target;
    }
    co_return sum;
}

int main() {
    const std::array<float, 100> values{};
    std::array<std::int64_t, 100> targets{};
    std::iota(targets.begin(), targets.end(), 1);

    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const drawpoint::TensorRows rows{
        std::as_bytes(std::span{values}), {.type = drawpoint::ScalarType::float32}, targets};
    const drawpoint::RandomSampler order{rows.size(), 7};
    drawpoint::DataLoader loader{runtime, rows, order, {.batch_size = 8, .num_workers = 2}};
    return drawpoint::run(runtime, sum_of_targets(loader)) == 5050 ? 0 : 1;
}
