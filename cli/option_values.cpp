#include "cli/option_values.hpp"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

namespace drawpoint::cli {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == text.npos)
            return parts;
        text.remove_prefix(end + 1);
    }
}

std::size_t position_in(std::span<const std::string_view> names, std::string_view option, std::string_view text) {
    const auto found = std::ranges::find(names, text);
    if (found == names.end())
        throw UsageError{fmt::format("{} must be one of {}, got '{}'", option, fmt::join(names, ", "), text)};
    return static_cast<std::size_t>(found - names.begin());
}

std::uint64_t bytes_in(std::string_view option, std::string_view text) {
    struct Unit {
        std::string_view name;
        double bytes;
    };
    constexpr std::array units{Unit{"KiB", 1 << 10}, Unit{"MiB", 1 << 20}, Unit{"GiB", 1 << 30}, Unit{"kB", 1e3},
                               Unit{"KB", 1e3},      Unit{"MB", 1e6},      Unit{"GB", 1e9},      Unit{"B", 1}};
    std::string_view digits = text;
    double factor = 1;
    for (const Unit& unit : units)
        if (digits.ends_with(unit.name)) {
            digits.remove_suffix(unit.name.size());
            factor = unit.bytes;
            break;
        }
    const auto value = number_in<double>(digits);
    if (!value || !(*value >= 0 && *value * factor < 1e18))
        throw UsageError{fmt::format("{} must be a number of bytes like 64MiB, got '{}'", option, text)};
    return static_cast<std::uint64_t>(*value * factor);
}

}   // namespace drawpoint::cli
