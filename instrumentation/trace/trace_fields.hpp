#pragma once

#include <cstdint>
#include <string_view>

#include <protozero/types.hpp>

/// Field numbers in a recording: Perfetto's own, then those fields of our records that are not columns of rows.
/// drawpoint_trace.proto explains them.
namespace drawpoint::trace_fields {

using Tag = protozero::pbf_tag_type;

inline constexpr std::uint32_t format = 1, minor = 8;
inline constexpr std::uint32_t relative_clock = 128;   // nanoseconds since Run.start_ns

inline constexpr Tag trace_packet = 1;

namespace packet {
inline constexpr Tag clock_snapshot = 6, timestamp = 8, sequence = 10, event = 11, interned = 12, flags = 13,
                     clock = 58, defaults = 59, track = 60, extensions = 72, first_on_sequence = 87, block = 1100,
                     definitions = 1101;
inline constexpr std::uint32_t cleared = 1, needs_names = 2;
}   // namespace packet
namespace event {
inline constexpr Tag type = 9, name = 10, track = 11, counter_value = 30, flows = 47, ended_flows = 48;
inline constexpr std::uint8_t slice_begin = 1, slice_end = 2, instant = 3, counter = 4;
}   // namespace event
namespace record {
inline constexpr Tag sample = 1100, batch = 1101, step = 1102, run = 1103, dropped = 1104, pass_begin = 1105,
                     pass = 1106, thinning = 1107, failure = 1108, end_of_data = 1109, fact = 1110, pipeline = 1111,
                     operator_begin = 1112, operator_end = 1113, allocation = 1114, stack_sample = 1115, setting = 1116,
                     host = 1117, folded = 1118, order = 1119, transfer = 1120, device_step = 1121;
}

/// The type of a field, with the numbers of Google's descriptor.proto.
enum class Type : std::uint8_t {
    float64 = 1,
    int64 = 3,
    uint64 = 4,
    fixed32 = 7,
    boolean = 8,
    text = 9,
    message = 11,
    uint32 = 13,
    enumeration = 14,
    sint64 = 18
};

/// A field that is not a column of a row: one that combines several columns, or one of a record that is not a row.
/// Converts to its number.
struct Field {
    std::string_view name;
    Tag number = 0;
    Type type{};
    bool repeated = false;
    constexpr operator Tag() const noexcept { return number; }
};

inline constexpr Field early_ns{"early_ns", 16, Type::uint64};   // in every record whose time is used

// The fields of columns are in drawpoint/instrumentation/ledger/rows.hpp.
namespace sample {
inline constexpr Field cpu_ns{"cpu_ns", 6, Type::uint64}, stage_ns{"stage_ns", 10, Type::uint64, true},
    gap_ns{"gap_ns", 11, Type::uint64, true}, stage_idle_ns{"stage_idle_ns", 17, Type::uint64, true},
    other_cpu_ns{"other_cpu_ns", 18, Type::uint64};
}
namespace batch {
inline constexpr Field stamps{"stamps", 5, Type::uint64, true}, never_admitted{"never_admitted", 11, Type::boolean};
}
namespace step {
inline constexpr Field spans{"spans", 6, Type::uint64, true}, gap_ns{"gap_ns", 9, Type::uint64, true};
}
namespace run {
inline constexpr Field format{"format", 1, Type::uint32}, minor{"minor", 2, Type::uint32},
    start_ns{"start_ns", 3, Type::int64}, spans{"spans", 6, Type::text, true};
}
namespace pass {
inline constexpr Field ns{"ns", 3, Type::uint64}, spans{"spans", 4, Type::uint64, true},
    gap_ns{"gap_ns", 5, Type::uint64, true};
}
namespace fact {
inline constexpr Field key{"key", 1, Type::text}, value{"value", 2, Type::text};
}
namespace pipeline {
inline constexpr Field number{"number", 9, Type::uint32};
}
namespace folded {
inline constexpr Field draw{"draw", 10, Type::message}, actions{"actions", 11, Type::message, true},
    stages{"stages", 12, Type::message, true}, workers{"workers", 13, Type::message, true},
    device{"device", 14, Type::message};
inline constexpr Field action{"action", 2, Type::text}, action_durations{"durations", 4, Type::message};
inline constexpr Field usage{"usage", 4, Type::message}, stage_durations{"durations", 5, Type::message};
}   // namespace folded
namespace histogram {
inline constexpr Field total_ns{"total_ns", 1, Type::int64}, min_ns{"min_ns", 2, Type::int64},
    max_ns{"max_ns", 3, Type::int64}, mean_ns{"mean_ns", 4, Type::float64}, squares{"squares", 5, Type::float64},
    calls{"calls", 6, Type::uint64, true};
}
namespace operator_end {
inline constexpr Field thread{"thread", 1, Type::uint32}, lost{"lost", 2, Type::boolean};
}
namespace definitions {
inline constexpr Field names{"names", 1, Type::text, true}, threads{"threads", 2, Type::message, true},
    frames{"frames", 3, Type::uint32, true}, stacks{"stacks", 4, Type::uint32, true},
    names_before{"names_before", 5, Type::uint32}, frames_before{"frames_before", 6, Type::uint32},
    stacks_before{"stacks_before", 7, Type::uint32}, thread_numbers{"thread_numbers", 8, Type::uint32, true};
}
namespace block {
inline constexpr Field offset{"offset", 1, Type::uint64}, crc32{"crc32", 2, Type::fixed32},
    records{"records", 3, Type::uint64}, dropped{"dropped", 4, Type::uint64}, bytes{"bytes", 5, Type::uint64},
    header_crc32{"header_crc32", 6, Type::fixed32};
}

}   // namespace drawpoint::trace_fields
