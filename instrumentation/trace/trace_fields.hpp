#pragma once

#include <cstdint>

#include <protozero/types.hpp>

/// Field numbers of a recording: Perfetto's own, then those of drawpoint_trace.proto. See that file for what they mean.
namespace drawpoint::trace_fields {

using Tag = protozero::pbf_tag_type;

inline constexpr std::uint32_t format = 1, minor = 4;
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
                     host = 1117;
}
inline constexpr Tag early_ns = 16;   // of every record whose time counts

namespace sample {
inline constexpr Tag index = 1, epoch = 2, batch = 3, slot = 4, bytes = 5, cpu_ns = 6, run_queue_ns = 7, status = 8,
                     pipeline = 9, stage_ns = 10, gap_ns = 11, worker = 12, samples = 13, read_begin_ns = 14,
                     read_end_ns = 15, stage_idle_ns = 17, other_cpu_ns = 18, read_cpu_ns = 19, read_run_queue_ns = 20;
}
namespace batch {
inline constexpr Tag epoch = 1, batch = 2, size = 4, stamps = 5, slot = 6, pipeline = 7, status = 8, bytes = 9,
                     ready_batches = 10, never_admitted = 11, collate_worker = 12;
}
namespace step {
inline constexpr Tag epoch = 1, batch = 2, phase = 3, step = 4, status = 5, spans = 6, size = 7, loss = 8, gap_ns = 9,
                     cpu_ns = 10, run_queue_ns = 11, between_run_queue_ns = 12;
}
namespace run {
inline constexpr Tag format = 1, minor = 2, start_ns = 3, spans = 6;
}
namespace dropped {
inline constexpr Tag records = 1, from_ns = 2, to_ns = 3, ring = 4;
}
namespace pass {   // and PassBegin
inline constexpr Tag kind = 1, epoch = 2, ns = 3, spans = 4, gap_ns = 5;
}
namespace thinning {
inline constexpr Tag slices_every = 1, samples_every = 2;
}
namespace failure {
inline constexpr Tag index = 1, epoch = 2, batch = 3, stage = 4, path = 5, message = 6, pipeline = 7;
}
namespace end_of_data {
inline constexpr Tag epoch = 1, phase = 2, ns = 3;
}
namespace fact {
inline constexpr Tag key = 1, value = 2;
}
namespace pipeline {
inline constexpr Tag name = 1, stages = 2, batch_size = 3, num_workers = 4, prefetch_depth = 5, max_overtakes = 6,
                     read_concurrency = 7, memory_budget = 8;
}
namespace setting {
inline constexpr Tag pipeline = 1, num_workers = 2, prefetch_depth = 3, max_overtakes = 4, memory_budget = 5,
                     read_concurrency = 6;
}
namespace definitions {
inline constexpr Tag names = 1, threads = 2, frames = 3, stacks = 4;
}
namespace thread {
inline constexpr Tag tid = 1, name = 2, device = 3;
}
namespace operator_begin {
inline constexpr Tag thread = 1, name = 2, kind = 3, shapes = 4, stack = 5, sequence = 6, forward_thread = 7, flops = 8,
                     correlation = 9;
}
namespace operator_end {
inline constexpr Tag thread = 1, lost = 2;
}
namespace allocation {
inline constexpr Tag thread = 1, device = 2, bytes = 3, address = 4, total_allocated = 5;
}
namespace stack_sample {
inline constexpr Tag thread = 1, stack = 2, weight_ns = 3;
}
namespace block {
inline constexpr Tag offset = 1, crc32 = 2, records = 3, dropped = 4, bytes = 5, header_crc32 = 6;
}

}   // namespace drawpoint::trace_fields
