#pragma once

#include <cstdint>

#include <protozero/pbf_reader.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"

namespace drawpoint {

// Of the records that trace_operators.cpp writes, those that are no rows, read into a ledger. False where one names what has not come before it.
// `time_ns` is its packet's time. Throw protozero::exception.

bool read_definitions(protozero::pbf_reader, LedgerBuilder&);
bool read_operator_end(protozero::pbf_reader, std::int64_t time_ns, LedgerBuilder&);

}   // namespace drawpoint
