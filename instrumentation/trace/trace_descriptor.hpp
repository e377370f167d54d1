#pragma once

#include <string>

namespace drawpoint {

/// A serialized FileDescriptorSet of all records, which a recording contains so that other programs can name its
/// fields. It is built from the rows' columns and trace_fields.hpp. It has no json_name and no dependency, since
/// Perfetto's copy of descriptor.proto lacks these fields. drawpoint_trace.proto declares the same for people; a test
/// compares the two.
[[nodiscard]] std::string trace_descriptor();

}   // namespace drawpoint
