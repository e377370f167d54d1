#pragma once

#include <cstdint>

#include <protozero/pbf_reader.hpp>

#include "instrumentation/trace/trace_fields.hpp"

namespace drawpoint {

// Keys of fields as in the file: the field's number and its wire type.

constexpr std::uint32_t varint_key(trace_fields::Tag tag) noexcept {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes_key(trace_fields::Tag tag) noexcept {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

}   // namespace drawpoint
