#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

[[nodiscard]] constexpr at::ScalarType torch_type(ScalarType type) noexcept {
    switch (type) {
    case ScalarType::uint8: return at::kByte;
    case ScalarType::int8: return at::kChar;
    case ScalarType::int16: return at::kShort;
    case ScalarType::int32: return at::kInt;
    case ScalarType::int64: return at::kLong;
    case ScalarType::float16: return at::kHalf;
    case ScalarType::bfloat16: return at::kBFloat16;
    case ScalarType::float64: return at::kDouble;
    case ScalarType::boolean: return at::kBool;
    case ScalarType::float32: break;
    }
    return at::kFloat;
}

/// The tensor, or a view of its first samples.
[[nodiscard]] inline at::Tensor first_samples(const at::Tensor& tensor, std::size_t samples) {
    const auto wanted = static_cast<std::int64_t>(samples);
    return tensor.size(0) == wanted ? tensor : tensor.narrow(0, 0, wanted);
}

}   // namespace drawpoint
