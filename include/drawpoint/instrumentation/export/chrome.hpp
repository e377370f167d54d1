#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct ChromeTraceOptions {
    std::string_view trace_name;   ///< the name stored in the trace, usually the path it is written to
};

/// Writes the ledger as a Chrome trace in Kineto's layout, so that tools for PyTorch's traces can read it. Steps are
/// `ProfilerStep#N`, their draws `enumerate(DataLoader)#drawpoint.__next__`; operators and kernels keep their names,
/// and only they have an argument `Ev Idx`. Samples and batches have the category `dataloader`. Stacks are stored once,
/// in `stackFrames`. Timestamps are microseconds with three decimals since `baseTimeNanoseconds`: the run's start, in
/// Unix time where that is known, else on the recording's clock. Slices of a thread nest; of two that overlap, the
/// later one is moved to a separate thread "… (overlapping)" with its length unchanged. Texts are made valid UTF-8 by
/// replacing bad bytes. Streaming: memory grows with the longest thread, not with the file. A failing stream shows in
/// its state. Any thread.
void write_chrome_trace(const Ledger&, std::ostream&, const ChromeTraceOptions& = {});

/// `text` as a JSON string with its quotes: the value of a text under `facts::metadata_prefix`.
[[nodiscard]] std::string json_string(std::string_view text);

}   // namespace drawpoint
