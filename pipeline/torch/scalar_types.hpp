#pragma once

#include <c10/core/ScalarType.h>

#include <drawpoint/pipeline/sample_source.hpp>

namespace drawpoint {

[[nodiscard]] constexpr at::ScalarType torch_type(ScalarType type) noexcept {
    return type == ScalarType::uint8 ? at::kByte : type == ScalarType::int64 ? at::kLong : at::kFloat;
}

}   // namespace drawpoint
