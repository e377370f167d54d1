#include <drawpoint/instrumentation/ledger/order_rule.hpp>

#include <charconv>
#include <system_error>

namespace drawpoint {

std::optional<OrderRule> OrderRule::parse(std::string_view text) noexcept {
    if (text == "in")
        return in_order();
    if (text == "out")
        return out_of_order();
    std::uint32_t most = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), most);
    if (error != std::errc{} || end != text.data() + text.size() || most == 0 || most == any)
        return std::nullopt;
    return bounded(most);
}

std::string to_string(OrderRule order) {
    return order == OrderRule::in_order()       ? "in"
           : order == OrderRule::out_of_order() ? "out"
                                                : std::to_string(order.max_overtakes);
}

}   // namespace drawpoint
