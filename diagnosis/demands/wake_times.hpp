#pragma once

#include <cstdint>
#include <span>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Waking a thread takes no longer. A loop that resumes later does so for another reason, which is not replayed.
inline constexpr std::int64_t longest_wake_ns = 50'000;

/// How long threads took to run after they were woken: the lower quartile of the recorded ones, since a thread that
/// also queued for a core took longer. 0: too few were recorded.
///
/// Of the loop, suspended in a draw: from the batch's offer until it was taken, `longest_wake_ns` at most. `steps` and
/// `batches` (positions in `Ledger::batches`) belong together. O(steps).
[[nodiscard]] std::int64_t loop_wake_ns(const Ledger&, std::span<const StepRow* const> steps,
                                        std::span<const std::uint32_t> batches);
/// Of a worker that waited for a read ahead: from the read's end until it had its bytes. O(samples).
[[nodiscard]] std::int64_t read_wake_ns(const Ledger&, std::uint16_t pipeline);

}   // namespace drawpoint
