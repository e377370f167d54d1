#pragma once

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include "instrumentation/export/text_stream.hpp"

namespace drawpoint {

/// Writes a Chrome trace up to its first event: metadata, facts, the rank, the time base, and each stack once.
void write_chrome_head(const Ledger&, TextStream&);

}   // namespace drawpoint
