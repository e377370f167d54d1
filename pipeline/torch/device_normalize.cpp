#include "pipeline/torch/device_normalize.hpp"

#include <array>
#include <cstddef>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sub.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/accumulate.h>

namespace drawpoint {
namespace {

/// Makes calls of the device, for which a lack of memory is a failure like any other.
template <class Make>
auto normalisation(DeviceCalls& calls, Make make) {
    try {
        return calls("normalisation", make);
    } catch (const c10::OutOfMemoryError& error) {
        throw DeviceError{calls.device().str() +
                          ": no memory for the normalisation: " + DeviceCalls::message_of(error)};
    }
}

at::Tensor on_device(DeviceCalls& calls, std::array<float, 3> factors) {
    const auto options = at::TensorOptions{}.dtype(at::kFloat);
    return normalisation(calls, [&] {
        const c10::DeviceGuard guard{calls.device()};
        at::Tensor tensor = at::empty({3, 1, 1}, options.device(calls.device()));
        tensor.copy_(at::from_blob(factors.data(), {3, 1, 1}, options));
        return tensor;
    });
}

}   // namespace

at::Tensor over_bytes(const at::Tensor& bytes, std::size_t at, at::IntArrayRef shape, at::ScalarType type) {
    const at::AutoDispatchBelowADInplaceOrView no_views;
    const std::int64_t length = c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(type));
    return bytes.narrow(0, static_cast<std::int64_t>(at), length).view(type).view(shape);
}

DeviceNormalize::DeviceNormalize(DeviceCalls& calls, const ChannelNormalization& normalization, at::ScalarType type,
                                 bool channels_last)
    : type_{type}, channels_last_{channels_last} {
    std::array<float, 3> shift{}, scale{};
    for (std::size_t c = 0; c < 3; ++c) {
        shift[c] = 255 * normalization.mean[c];
        scale[c] = 1 / (255 * normalization.standard_deviation[c]);
    }
    shift_ = on_device(calls, shift);
    scale_ = on_device(calls, scale);
}

at::Tensor DeviceNormalize::over(const at::Tensor& memory, at::IntArrayRef shape) const {
    if (!channels_last_)
        return over_bytes(memory, 0, shape, type_);
    const at::AutoDispatchBelowADInplaceOrView no_views;
    return over_bytes(memory, 0, {shape[0], shape[2], shape[3], shape[1]}, type_).permute({0, 3, 1, 2});
}

void DeviceNormalize::run(DeviceCalls& calls, const at::Tensor& levels, at::Tensor values) const {
    const at::AutoDispatchBelowADInplaceOrView nothing_to_differentiate;
    normalisation(calls, [&] {
        at::sub_out(values, levels, shift_);
        values.mul_(scale_);
    });
}

}   // namespace drawpoint
