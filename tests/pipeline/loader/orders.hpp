#pragma once

#include <array>
#include <cstdint>

#include <drawpoint/instrumentation/ledger/order_rule.hpp>

namespace drawpoint::test {

/// Cycles through in order, out of order, and bounded by `most`.
constexpr OrderRule nth_order(std::uint64_t n, std::uint32_t most) noexcept {
    return std::array{OrderRule::in_order(), OrderRule::out_of_order(), OrderRule::bounded(most)}[n % 3];
}

}   // namespace drawpoint::test
