#pragma once

#include <iosfwd>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes the stack samples as a gzipped pprof profile: values "samples" (count) and "cpu" (nanoseconds), labels
/// "thread" and "action", functions with files and lines. `action`: only that action's samples
/// (`Attribution::action_of`); empty: all. The profile is built in memory. Throws std::runtime_error when the stream
/// fails. O(rows log rows). Any thread.
void write_pprof(const Ledger&, std::ostream&, std::string_view action = {});

}   // namespace drawpoint
