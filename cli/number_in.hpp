#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace drawpoint::cli {

/// The number that all of `text` is.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

}   // namespace drawpoint::cli
