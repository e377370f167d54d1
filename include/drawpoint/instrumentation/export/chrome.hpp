#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct ChromeTraceOptions {
    std::string_view trace_name;   ///< what the trace says it is called, by custom the path it is written to
};

/// Writes the ledger as a Chrome trace laid out as Kineto's, so that what reads PyTorch's traces reads it: steps are
/// `ProfilerStep#N`, draws `enumerate(DataLoader)#drawpoint.__next__` inside them, operators and kernels what they are;
/// only they have an argument `Ev Idx`. Samples and batches are of the category `dataloader`. Stacks stand once, in
/// `stackFrames`. Stamps are microseconds with three decimals since `baseTimeNanoseconds`: the run's start, in Unix
/// time where that is known, else on the clock of the recording. Slices of a thread nest; where two of a thread
/// overlap, the later one stands on a thread of its own called "… (overlapping)", its length unchanged. Texts are made
/// valid UTF-8, bad bytes replaced. Streaming: memory grows with the longest thread, not with the file. A failing
/// stream shows in its state. Any thread.
void write_chrome_trace(const Ledger&, std::ostream&, const ChromeTraceOptions& = {});

/// `text` as a JSON string, quotes included: what a fact under `facts::metadata_prefix` holds for a text.
[[nodiscard]] std::string json_string(std::string_view text);

}   // namespace drawpoint
