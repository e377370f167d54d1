#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/image/resize.hpp>

#include "pipeline/torch/device_calls.hpp"

namespace drawpoint {

/// Makes values of levels on a device: (level - 255 * mean) * (1 / (255 * deviation)), where the difference and the
/// product are each computed in float32 and rounded to the values' type. The same on every device, and on the CPU.
class DeviceNormalize {
public:
    /// Throws DeviceError.
    DeviceNormalize(DeviceCalls&, const ChannelNormalization&, at::ScalarType type, bool channels_last);

    /// A tensor of `shape`, samples × 3 × height × width, over the device's `memory`, for run().
    [[nodiscard]] at::Tensor over(const at::Tensor& memory, at::IntArrayRef shape) const;
    /// Gives the current stream the work. Throws DeviceError.
    void run(DeviceCalls&, const at::Tensor& levels, at::Tensor values) const;

private:
    at::ScalarType type_;
    bool channels_last_;
    at::Tensor shift_, scale_;   // 3 × 1 × 1, on the device
};

/// A tensor over bytes `at` of a buffer and on. Not a view for autograd, so that it may be changed and be a graph's
/// leaf.
[[nodiscard]] at::Tensor over_bytes(const at::Tensor& bytes, std::size_t at, at::IntArrayRef shape,
                                    at::ScalarType type);

}   // namespace drawpoint
