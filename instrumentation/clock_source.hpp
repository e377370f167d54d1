#pragma once

#include <optional>
#include <string_view>

namespace drawpoint {

/// Whether the kernel holds the processor's time-stamp counter for a clock, by the texts of the files
/// `available_clocksource` and `current_clocksource` below /sys/devices/system/clocksource/clocksource0; absent: one
/// that cannot be read. A kernel that found the counter unstable offers it no longer. A guest's kernel that reads its
/// hypervisor's clock offers it still.
[[nodiscard]] bool kernel_trusts_tsc(std::optional<std::string_view> available,
                                     std::optional<std::string_view> current) noexcept;

}   // namespace drawpoint
