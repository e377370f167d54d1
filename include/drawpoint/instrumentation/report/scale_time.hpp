#pragma once

#include <string>

namespace drawpoint {

/// Formats a duration in seconds as fastxtend prints it, with four significant digits, an SI prefix (a blank for none)
/// and "s": "838.2ms", "35.63 s", "3.600ks"; "-" for 0. A value that rounds up to 1000 keeps its prefix ("1000.ms").
/// Negative durations get a minus sign. Outside 1e-24 ≤ |seconds| < 1e27 the text is like "1.000E-27 s", "nan s" or
/// "inf s". O(1). Any thread.
[[nodiscard]] std::string scale_time(double seconds);

}   // namespace drawpoint
