#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_packets.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {

// Functions that append a field to a record; a value of zero is omitted.

inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::uint64_t value) {
    if (value != 0)
        to.add_uint64(tag, value);
}
inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::span<const std::uint64_t> values) {
    to.add_packed_uint64(tag, values.begin(), values.end());   // writes nothing if empty
}

/// `values`, or an empty span if all are 0.
[[nodiscard]] inline std::span<const std::uint64_t> unless_zero(std::span<const std::uint64_t> values) {
    return std::all_of(values.begin(), values.end(), [](std::uint64_t v) { return v == 0; })
               ? std::span<const std::uint64_t>{}
               : values;
}

/// Begins the record of the next event with the row's columns. `at`: the record's place in time, if its time is used.
template <class Row>
protozero::pbf_writer new_record(TracePackets& packets, const Row& row, TracePlace at = {}) {
    std::string& bytes = packets.new_record();
    const std::int64_t start_ns = packets.start_ns();
    put_columns(bytes, row,
                {start_ns, wrapping_sum(start_ns, static_cast<std::int64_t>(at.timestamp_ns - at.early_ns))});
    protozero::pbf_writer record{bytes};
    put(record, trace_fields::early_ns, at.early_ns);
    return record;
}

/// The number (position + 1) of `name` in a sequence's `names`; adds it if it is missing.
[[nodiscard]] inline std::uint32_t number_of(std::vector<std::string>& names, std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    const auto number = static_cast<std::uint32_t>(at - names.begin()) + 1;
    if (at == names.end())
        names.emplace_back(name);
    return number;
}

}   // namespace drawpoint
