#pragma once
// Needs nothing but LibTorch and the sources of DeviceStage, so that it can be compiled where nothing else is:
//   TORCH=$(python3 -c 'import torch; print(torch.__path__[0])')
//   g++ -std=c++20 -O2 -DNDEBUG -I. -Iinclude -isystem $TORCH/include bench/device/alone.cpp
//       bench/device/stage_measures.cpp pipeline/torch/device_stage.cpp -L$TORCH/lib -Wl,-rpath,$TORCH/lib
//       -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10 -ldl -o device_alone     (one line)

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace drawpoint::bench {

/// One figure: the median of `count` values, and their 10th and 90th percentiles.
struct DeviceFigure {
    std::string name, unit;
    double median = 0, low = 0, high = 0;
    std::size_t count = 0;
};

struct DeviceMeasureOptions {
    std::size_t repeats = 1000;   ///< of a call; a hundredth of it of what takes milliseconds
    std::size_t steps = 100;      ///< of an overlapped loop
    std::size_t largest_mb = 256;
    /// The host's time; empty: the steady clock.
    std::function<std::int64_t()> now_ns{};
    /// Gives the current stream work of about this time; empty: products of matrices, as many as it takes.
    std::function<void(double ms)> work{};
    /// Told of each figure as it is measured.
    std::function<void(const DeviceFigure&)> tell{};
};

/// Measures a device as the stage and the events use it: what calls cost the host, how fast copies are, how far they
/// overlap with steps, and what timing a step costs. Takes some minutes and 1 GB of pinned memory. Throws DeviceError
/// or c10::Error if the device fails.
[[nodiscard]] std::vector<DeviceFigure> measure_device(c10::Device, const DeviceMeasureOptions& = {});

}   // namespace drawpoint::bench
