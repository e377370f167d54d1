#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Most stages that a sample record holds.
inline constexpr std::size_t max_stages = 8;
/// Most pieces that a step record holds.
inline constexpr std::size_t max_step_spans = 40;

/// What is known of an operator when it begins; members as in `OperatorRow`.
struct OperatorBegin {
    OperatorKind kind = OperatorKind::user_annotation;
    std::uint32_t name = 0, shapes = nothing, stack = nothing;
    std::int64_t sequence = -1;
    std::uint64_t forward_thread = 0, flops = 0;
};

/// A finished sample, as a worker hands it over.
struct SampleRecord {
    SampleRow row;   ///< `stages` unused
    std::uint32_t stage_count = 0;
    std::array<StageRow, max_stages> stages{};
};

}   // namespace drawpoint
