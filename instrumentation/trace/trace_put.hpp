#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_fields.hpp"

namespace drawpoint {

// Fields of a record as the file has them: what is zero is left out, unless it says which row this is.

inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::uint64_t value) {
    if (value != 0)
        to.add_uint64(tag, value);
}
/// What says which row this is, and so is written when it is zero, too: a query finds epoch 0 where a field is 0, and not
/// where there is none.
template <class T>
void put_key(protozero::pbf_writer& to, trace_fields::Tag tag, T value) {
    to.add_uint64(tag, static_cast<std::uint64_t>(value));
}
inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::span<const std::uint64_t> values) {
    to.add_packed_uint64(tag, values.begin(), values.end());   // nothing where empty
}

/// `values`, unless all are 0.
[[nodiscard]] inline std::span<const std::uint64_t> unless_zero(std::span<const std::uint64_t> values) {
    return std::all_of(values.begin(), values.end(), [](std::uint64_t v) { return v == 0; })
               ? std::span<const std::uint64_t>{}
               : values;
}

/// The number of `name` in a sequence's `names`, where it is added if need be: its position + 1.
[[nodiscard]] inline std::uint32_t number_of(std::vector<std::string>& names, std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    const auto number = static_cast<std::uint32_t>(at - names.begin()) + 1;
    if (at == names.end())
        names.emplace_back(name);
    return number;
}

}   // namespace drawpoint
