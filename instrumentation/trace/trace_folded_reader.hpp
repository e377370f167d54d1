#pragma once

#include <cstdint>

#include <protozero/pbf_reader.hpp>

#include <drawpoint/instrumentation/ledger/folded.hpp>

namespace drawpoint {

/// Reads a record of trace_folded.cpp. Actions of a later version are left out. Throws protozero::exception.
[[nodiscard]] Folded read_folded(protozero::pbf_reader, std::int64_t start_ns);

}   // namespace drawpoint
