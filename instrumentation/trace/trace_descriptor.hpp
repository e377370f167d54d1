#pragma once

#include <string>

namespace drawpoint {

/// What a recording carries so that other programs can name its fields: a FileDescriptorSet of all records, made of the rows'
/// columns and of trace_fields.hpp. It has no json_name and dependency, which Perfetto's own copy of descriptor.proto lacks.
/// drawpoint_trace.proto is the same for people; a test compares them.
[[nodiscard]] std::string trace_descriptor();

}   // namespace drawpoint
