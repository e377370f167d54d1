#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct ChromeTraceOptions {
    std::string_view trace_name;   ///< the name stored in the trace, usually the path it is written to
};

/// Writes a sorted ledger (`Ledger::sort`) as a Chrome trace in Kineto's layout, so that tools for PyTorch's traces can
/// read it. Steps are `ProfilerStep#N` with N = `StepRow::step`, their draws
/// `enumerate(DataLoader)#drawpoint.__next__`. Operators, regions and kernels keep their names; drawpoint's own slices
/// lack the argument `Ev Idx` that these have. Samples and batches have the category `dataloader`. Folded rows
/// (`Folded`) are missing, and steps and draws that an operator already shows are not written twice. Stacks are stored
/// once, in `stackFrames`. Timestamps are microseconds with three decimals since `baseTimeNanoseconds`: the run's
/// start, in Unix time where that is known (`facts::unix_offset_ns`), else on the recording's clock. Slices of a thread
/// nest. Of two that overlap without nesting, the one that begins later goes to a separate thread "… (overlapping)",
/// with its times unchanged.
///
/// A fact `trace.metadata.KEY` becomes the member KEY (`user.KEY` if the trace has such a member already): as it is if
/// it is JSON, else as a string. All other facts are in the member `drawpoint`. Invalid UTF-8 is replaced by U+FFFD.
///
/// The text is streamed. Memory grows by some tens of bytes for each operator, sample and batch, and by about 100 for
/// each slice of the thread that has most. A failing stream shows in its state. Any thread.
void write_chrome_trace(const Ledger&, std::ostream&, const ChromeTraceOptions& = {});

/// `text` as a JSON string with its quotes; invalid UTF-8 is replaced by U+FFFD. Use it to set a text as a fact under
/// `facts::metadata_prefix`, where a bare `1` or `true` would be a number or a truth value. Any thread.
[[nodiscard]] std::string json_string(std::string_view text);

}   // namespace drawpoint
