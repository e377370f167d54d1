#include <drawpoint/instrumentation/report/scale_time.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace drawpoint {
namespace {

/// Four significant digits and always a decimal point: "1.000", "35.60", "1000.". ({:#.4G} of fmt 9 gives "1000.0" for
/// 999.96.)
std::string four_digits(double value) {
    const int magnitude = fmt::format("{:.3e}", value).back() - '0';   // 0 to 3, after rounding
    return fmt::format("{:.{}f}", value, 3 - magnitude) + (magnitude == 3 ? "." : "");
}

}   // namespace

std::string scale_time(double seconds) {
    static constexpr std::array<std::string_view, 17> prefixes{"y", "z", "a", "f", "p", "n", "µ", "m", " ",
                                                               "k", "M", "G", "T", "P", "E", "Z", "Y"};
    if (seconds == 0)
        return "-";
    if (std::isnan(seconds))
        return "nan s";
    if (seconds < 0)
        return "-" + scale_time(-seconds);
    if (std::isinf(seconds))
        return "inf s";
    if (seconds < 1e-24 || seconds >= 1e27)
        return fmt::format("{:.3E} s", seconds);
    // For a value just below a power of 1000 the logarithm may round up, as in the original.
    const int thousands = std::clamp(static_cast<int>(std::floor(std::log10(seconds) / 3)), -8, 8);
    return four_digits(seconds / std::pow(10.0, 3 * thousands)) +
           std::string{prefixes[static_cast<std::size_t>(thousands + 8)]} + "s";
}

}   // namespace drawpoint
