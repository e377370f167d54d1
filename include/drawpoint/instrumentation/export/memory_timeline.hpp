#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// sizes: [times, sizes by category]; raw: one [time, action, bytes, category] an event; plot: a page with a chart.
enum class MemoryTimelineForm : std::uint8_t { sizes, raw, plot };

/// Writes how much tensor memory a device held over time (-1: the host), in PyTorch's forms. `sizes` has microseconds
/// since the run's start and, at each, nine numbers: 0, then bytes by PyTorch's categories parameter, optimizer state,
/// input, temporary, activation, gradient, autograd detail, unknown. `raw` has nanoseconds, the actions 1 (held before
/// the recording began, at -1), 2 (create) and 4 (destroy), and the category's number. A recording of allocations
/// cannot tell categories: all of it is unknown (7), and nothing is ever a new version (3). Memory grows with the
/// addresses in use. Throws std::invalid_argument naming the options of the profiler that were off where no allocation
/// was recorded, or the device where it has none.
void write_memory_timeline(const Ledger&, std::ostream&, MemoryTimelineForm, std::int32_t device = -1);

/// The same into a file, in the form that its name says: `.html`, `raw.json` or `raw.json.gz`, else sizes; compressed
/// where it ends in `.gz`. Throws std::system_error naming the file.
void export_memory_timeline(const Ledger&, const std::filesystem::path&, std::int32_t device = -1);

}   // namespace drawpoint
