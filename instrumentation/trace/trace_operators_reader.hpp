#pragma once

#include <cstdint>

#include <protozero/pbf_reader.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"

namespace drawpoint {

// Read those records of trace_operators.cpp that are not rows into a ledger. Return false if a record refers to
// something not defined before it. `time_ns` is the packet's time. Throw protozero::exception.

bool read_definitions(protozero::pbf_reader, LedgerBuilder&);
bool read_operator_end(protozero::pbf_reader, std::int64_t time_ns, LedgerBuilder&);

}   // namespace drawpoint
