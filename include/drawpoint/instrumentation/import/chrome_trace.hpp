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
    std::size_t block_bytes = 1u << 18;        ///< bytes read at a time
    std::size_t max_event_bytes = 64u << 20;   ///< a longer event is an error
    std::uint32_t batch_size = 0;              ///< samples per batch; 0: the trace's `loader.batch_size`, else 1
    /// Keep all events. false: only those that steps are made from, so that memory grows with the number of steps and
    /// not of operators: `ProfilerStep#N`, the loader's `__next__`, the annotations of a step's pieces (listed at
    /// import_chrome_trace), names of threads and processes. Other events are skipped without being parsed, so errors
    /// in their JSON are not noticed. Of the other top-level keys, `stackFrames` and those longer than 64 KiB are left
    /// out.
    bool operators = true;
};
static_assert(std::is_trivially_destructible_v<ImportOptions>);

/// The contents of a trace.
struct ImportedTrace {
    Ledger ledger;                       ///< sorted; if truncated, of the complete events before that place
    std::vector<std::string> warnings;   ///< what was left out, and why
    bool truncated = false;              ///< the file ends early or its gzip data is damaged; see `ledger`
    std::uint64_t events = 0;            ///< elements of traceEvents read, also skipped ones
    std::uint64_t bytes = 0;             ///< size of the JSON text, uncompressed
    std::size_t buffer_bytes = 0;        ///< peak memory for JSON text: two blocks and twice the longest event
};

/// Reads a Chrome trace as PyTorch writes it, `.json` or `.json.gz` (recognised by content), into a ledger:
/// - Complete events become operators, with shapes, sequence numbers, correlation and flops. Their stack is that of
///   `stackFrames` or, without it, the Python functions around them.
/// - In a trace of `write_chrome_trace` the slices of the loop give steps, as below, but no operators; those of the
///   loader are left out, with a warning.
/// - `[memory]` instants become allocations; names of threads and streams become their names.
/// - Every `ProfilerStep#N` of the thread that has the earliest one becomes step N; without any, there are no steps.
///   Its draw is the last of several consecutive `enumerate(DataLoader)#….__next__` (the first, if most steps begin
///   with several). Its batch is everything after that, in pieces by the annotations forward, loss, backward,
///   `Optimizer.step#…` and `Optimizer.zero_grad#…` (or optimizer). Time before the draw is the previous step's
///   `between`. Pieces tile the one training pass.
/// - Other top-level keys become facts under `facts::metadata_prefix`, as JSON.
///
/// Times are exact to the nanosecond: Unix time if the trace has `baseTimeNanoseconds`, else as in the trace. Memory:
/// the ledger, `buffer_bytes`, and about ten times the longest event in the parser. Any thread. Throws
/// std::runtime_error naming the file, and the byte (of the uncompressed text) where it is not JSON, or saying that it
/// is not a trace; std::system_error when it cannot be read. A file that ends early, or gzip data that is damaged,
/// throws only if this comes before traceEvents; else it sets `truncated`.
[[nodiscard]] ImportedTrace import_chrome_trace(const std::filesystem::path&, const ImportOptions& = {});
/// `name` is used for the file in errors and warnings.
[[nodiscard]] ImportedTrace import_chrome_trace(std::istream&, std::string_view name, const ImportOptions& = {});

}   // namespace drawpoint
