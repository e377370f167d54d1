#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include <protozero/pbf_writer.hpp>

#include <instrumentation/trace_fields.hpp>

namespace drawpoint {

// Fields of a record as the file has them: what is zero is left out.

inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::uint64_t value) {
    if (value != 0)
        to.add_uint64(tag, value);
}
template <class E>
    requires std::is_enum_v<E>
void put(protozero::pbf_writer& to, trace_fields::Tag tag, E value) {
    put(to, tag, static_cast<std::uint64_t>(value));
}
inline void put(protozero::pbf_writer& to, trace_fields::Tag tag, std::span<const std::uint64_t> values) {
    to.add_packed_uint64(tag, values.begin(), values.end());   // nothing where empty
}

}   // namespace drawpoint
