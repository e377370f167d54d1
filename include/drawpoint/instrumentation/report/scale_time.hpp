#pragma once

#include <string>

namespace drawpoint {

/// A duration in seconds as fastxtend prints it: four significant digits, an SI prefix (a blank for none) and "s":
/// "838.2ms", "35.63 s", "3.600ks"; "-" for 0. Rounding does not move on to the next prefix ("1000.ms").
/// Negative durations have a minus sign before their absolute value; outside 1e-24 ≤ |seconds| < 1e27 the text is
/// "1.000E-27 s", "nan s" or "inf s". O(1). Any thread.
[[nodiscard]] std::string scale_time(double seconds);

}   // namespace drawpoint
