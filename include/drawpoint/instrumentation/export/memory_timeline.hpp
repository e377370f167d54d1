#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// sizes: [times, sizes by category]; raw: one [time, action, bytes, category] per event; plot: an HTML page with an
/// SVG chart, which loads nothing from the network.
enum class MemoryTimelineForm : std::uint8_t { sizes, raw, plot };

/// Writes the tensor memory that a device held over time (-1: the host), in PyTorch's formats, from the allocations of
/// a sorted ledger.
/// - `sizes` has times in microseconds since the run's start and, for each, nine numbers: 0, then bytes by PyTorch's
///   categories parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown.
/// - `raw` has times in nanoseconds since the run's start, PyTorch's numbers for the action and the category, and bytes
///   (negative where memory is released). Actions are 1 (held before the recording began; at time -1), 2 (create) and
///   4 (destroy). PyTorch's action 3 (new version of a tensor) does not occur.
///
/// The recorder does not know what an allocation is for, so all bytes are in the last category, unknown (7). Takes
/// about 50 bytes of memory per allocation row. A failing stream shows in its state. Any thread. Throws
/// std::invalid_argument if there is nothing to write: naming the device if only others have allocations, else naming
/// those of torch.profiler's options record_shapes, profile_memory and with_stack that were off.
void write_memory_timeline(const Ledger&, std::ostream&, MemoryTimelineForm, std::int32_t device = -1);

/// The same into a file, as `write_file_whole`. A name that ends in `.html` gives the plot, one in `raw.json` or
/// `raw.json.gz` raw events, any other (also `.html.gz`) sizes; compressed if it ends in `.gz`. Also throws
/// std::system_error naming the file. Any thread.
void export_memory_timeline(const Ledger&, const std::filesystem::path&, std::int32_t device = -1);

}   // namespace drawpoint
