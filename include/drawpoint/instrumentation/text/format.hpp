#pragma once

#include <cstdint>
#include <string>

namespace drawpoint {

/// "9.10 s", "12.3 ms", "456 µs", "0 s": three significant digits. Any thread.
[[nodiscard]] std::string format_duration(double seconds);

/// "19.3 MB", "512 B": three significant digits, powers of ten. Any thread.
[[nodiscard]] std::string format_bytes(double bytes);

/// "1,234,567". Any thread.
[[nodiscard]] std::string format_count(std::int64_t count);

/// "1st", "2nd", "11th". Any thread.
[[nodiscard]] std::string format_ordinal(std::uint64_t number);

}   // namespace drawpoint
