#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace drawpoint {

/// The order in which the finished batches of a pass are handed to the loop: the sampler's order, the order in which
/// they finish, or that order with each batch overtaken by at most `max_overtakes` younger ones.
struct OrderRule {
    static constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t max_overtakes = 0;   ///< 0: in order; `any`: unlimited

    [[nodiscard]] static constexpr OrderRule in_order() noexcept { return {}; }
    [[nodiscard]] static constexpr OrderRule out_of_order() noexcept { return {any}; }
    [[nodiscard]] static constexpr OrderRule bounded(std::uint32_t most) noexcept { return {most}; }
    /// Parses what to_string() writes: "in", "out", or a number of batches from 1 to 2^32 - 2. Else nullopt.
    [[nodiscard]] static std::optional<OrderRule> parse(std::string_view text) noexcept;

    /// A stricter rule compares less.
    auto operator<=>(const OrderRule&) const = default;
};

/// "in", "out", or the number of batches.
[[nodiscard]] std::string to_string(OrderRule);

}   // namespace drawpoint
