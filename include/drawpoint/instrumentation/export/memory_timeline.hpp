#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// sizes: [times, sizes by category]; raw: one [time, action, bytes, category] per event; plot: a page with a chart.
enum class MemoryTimelineForm : std::uint8_t { sizes, raw, plot };

/// Writes the tensor memory that a device held over time (-1: the host), in PyTorch's formats. `sizes` has microseconds
/// since the run's start and, for each, nine numbers: 0, then bytes by PyTorch's categories parameter, optimizer state,
/// input, temporary, activation, gradient, autograd detail, unknown. `raw` has nanoseconds, the actions 1 (held before
/// the recording began, at time -1), 2 (create) and 4 (destroy), and the category's number. Recorded allocations have
/// no category, so all of them are unknown (7), and none is a new version (3). Memory grows with the number of
/// addresses in use. Throws std::invalid_argument naming the profiler's options that were off if no allocation was
/// recorded, or the device if it has none.
void write_memory_timeline(const Ledger&, std::ostream&, MemoryTimelineForm, std::int32_t device = -1);

/// The same into a file, in the format given by its name: `.html`, `raw.json` or `raw.json.gz`, else sizes; compressed
/// if it ends in `.gz`. Throws std::system_error naming the file.
void export_memory_timeline(const Ledger&, const std::filesystem::path&, std::int32_t device = -1);

}   // namespace drawpoint
