#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace drawpoint {

/// The number that a setting's text is, if it is a plain one: no exponent, and few enough digits for a double, so that
/// a digest is none.
[[nodiscard]] inline std::optional<double> number_in(std::string_view text) {
    constexpr std::size_t most_digits = 15;
    double number = 0;
    const auto [end, failed] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    const bool is_plain =
        !text.empty() && text.size() <= most_digits && text.find_first_not_of("-.0123456789") == std::string_view::npos;
    return is_plain && failed == std::errc{} && end == text.data() + text.size() ? std::optional{number} : std::nullopt;
}

}   // namespace drawpoint
