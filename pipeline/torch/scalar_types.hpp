#pragma once

#include <c10/core/ScalarType.h>

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

}   // namespace drawpoint
