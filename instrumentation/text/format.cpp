#include <drawpoint/instrumentation/text/format.hpp>

#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace drawpoint {
namespace {

std::string three_digits(double value) {
    const double size = std::abs(value);
    return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

}   // namespace

std::string format_duration(double seconds) {
    const double size = std::abs(seconds);
    if (size == 0)
        return "0 s";
    if (!std::isfinite(seconds))
        return "-";
    if (size >= 999.5)
        return format_count(std::llround(seconds)) + " s";
    if (size >= 0.9995)
        return three_digits(seconds) + " s";
    if (size >= 0.9995e-3)
        return three_digits(seconds * 1e3) + " ms";
    if (size >= 0.9995e-6)
        return three_digits(seconds * 1e6) + " µs";
    return fmt::format("{:.0f} ns", seconds * 1e9);
}

std::string format_bytes(double bytes) {
    constexpr std::array units{" B", " kB", " MB", " GB", " TB", " PB"};
    std::size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < units.size(); ++unit)
        bytes /= 1000;
    return (unit == 0 ? fmt::format("{:.0f}", bytes) : three_digits(bytes)) + units[unit];
}

std::string format_count(std::int64_t count) {
    std::string digits = fmt::format("{}", count);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

std::string format_ordinal(std::uint64_t number) {
    const std::uint64_t last = number % 10;
    const bool is_teen = number % 100 / 10 == 1;
    return fmt::format("{}{}", number,
                       is_teen || last == 0 || last > 3 ? "th"
                       : last == 1                      ? "st"
                       : last == 2                      ? "nd"
                                                        : "rd");
}

}   // namespace drawpoint
