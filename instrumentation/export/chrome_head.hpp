#pragma once

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include "instrumentation/export/text_stream.hpp"

namespace drawpoint {

/// A Chrome trace as far as its first event: metadata, facts, the rank, the base of its stamps, and each stack once.
void write_chrome_head(const Ledger&, TextStream&);

}   // namespace drawpoint
