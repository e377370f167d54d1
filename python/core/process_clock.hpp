#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <drawpoint/instrumentation/clock.hpp>

namespace drawpoint::python {

/// The clock of all recordings of this process, and of the processes that work for it. Calibrated at its first use.
[[nodiscard]] const AnyClock& process_clock() noexcept;
[[nodiscard]] inline std::int64_t now_ns() noexcept { return process_clock().now_ns(); }

/// What another process needs to stamp on the same scale; nullopt: its own clock does.
using ClockScale = std::optional<std::array<std::int64_t, 3>>;
[[nodiscard]] ClockScale clock_scale() noexcept;
/// From now on this process stamps on that scale. Before its first stamp, or by the thread that stamps.
void set_clock_scale(const ClockScale&) noexcept;

}   // namespace drawpoint::python
