#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace drawpoint {

/// In which order the finished batches of a pass are handed to the loop: in the sampler's order, as they are finished, or
/// as they are finished but none overtaken by more than `max_overtakes` younger ones.
struct OrderRule {
    static constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();   ///< `any_order` of the ledger

    std::uint32_t max_overtakes = 0;   ///< 0: in order; `any`: however many

    [[nodiscard]] static constexpr OrderRule in_order() noexcept { return {}; }
    [[nodiscard]] static constexpr OrderRule out_of_order() noexcept { return {any}; }
    [[nodiscard]] static constexpr OrderRule bounded(std::uint32_t most) noexcept { return {most}; }
    /// What to_string() writes: "in", "out", or a number of batches from 1 on. nullopt: none of these.
    [[nodiscard]] static std::optional<OrderRule> parse(std::string_view text) noexcept;

    /// The stricter rule is the lesser.
    auto operator<=>(const OrderRule&) const = default;
};

[[nodiscard]] std::string to_string(OrderRule);

}   // namespace drawpoint
