#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct ImportOptions {
    std::size_t block_bytes = 1u << 18;        ///< read at a time
    std::size_t max_event_bytes = 64u << 20;   ///< a longer event is an error
    std::uint32_t batch_size = 0;   ///< samples in a step's batch; 0: as the trace's metadata "loader" says, else 1
    /// Keep all events. False: only what steps are made of, so that memory goes by steps and not by operators:
    /// `ProfilerStep#N`, the loader's `__next__`, the annotations that pieces come from, names of threads. Other events
    /// are passed over unparsed, and those that are no JSON unnoticed; members longer than 64 KiB are left out.
    bool operators = true;
};
static_assert(std::is_trivially_destructible_v<ImportOptions>);

/// What a trace held.
struct ImportedTrace {
    Ledger ledger;                       ///< sorted
    std::vector<std::string> warnings;   ///< what was left out, and why
    bool truncated = false;              ///< the file ends inside; the ledger has what is whole
    std::uint64_t events = 0;            ///< read
    std::uint64_t bytes = 0;             ///< of JSON, uncompressed
    std::size_t buffer_bytes = 0;        ///< most memory that JSON text took: two blocks and twice the longest event
};

/// Reads a Chrome trace as PyTorch writes it, `.json` or `.json.gz` (told by content), into a ledger:
/// - complete events are operators, with shapes, sequence numbers, correlation, flops, and as stack their
/// `stackFrames`, else
///   the Python functions around them;
/// - in a trace of `write_chrome_trace` the slices of the loop are no operators, and those of the loader are left out;
/// - `[memory]` instants are allocations; names of threads and streams their names;
/// - `ProfilerStep#N` of the thread that has the first one is step N: its draw is `enumerate(DataLoader)#….__next__`,
/// the last
///   of several in a row (the first, where most steps begin with several), its batch all after that, in pieces by the
///   annotations forward, loss, backward, `Optimizer.step#…` and `Optimizer.zero_grad#…` (or optimizer); time before
///   the draw is the previous step's `between`. Pieces tile the one training pass;
/// - other keys beside the events are facts under `facts::metadata_prefix`, as JSON.
///
/// Times are exact to the nanosecond. Streams: beside the ledger it holds `buffer_bytes`, and the parser some ten times
/// the longest event. Any thread. Throws std::runtime_error naming the file, and the byte (of the uncompressed text)
/// where it is no JSON; or that it is no trace; std::system_error when it cannot be read.
[[nodiscard]] ImportedTrace import_chrome_trace(const std::filesystem::path&, const ImportOptions& = {});
/// `name` stands for the file in errors and warnings.
[[nodiscard]] ImportedTrace import_chrome_trace(std::istream&, std::string_view name, const ImportOptions& = {});

}   // namespace drawpoint
