#pragma once

#include <optional>
#include <string_view>

namespace drawpoint {

/// Whether the kernel considers the processor's time-stamp counter a usable clock, according to the contents of
/// `available_clocksource` and `current_clocksource` in /sys/devices/system/clocksource/clocksource0; nullopt: the file
/// cannot be read. A kernel that found the counter unstable no longer offers it. A guest's kernel that uses its
/// hypervisor's clock still does.
[[nodiscard]] bool kernel_trusts_tsc(std::optional<std::string_view> available,
                                     std::optional<std::string_view> current) noexcept;

}   // namespace drawpoint
