#include "trace_operators_reader.hpp"

#include <algorithm>
#include <array>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include "instrumentation/wrapping.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_reader;

/// A number that the file has plus 1.
std::uint32_t minus_1(std::uint32_t value) noexcept { return value - 1u; }

std::int64_t earlier(std::int64_t time_ns, std::uint64_t by) noexcept {
    return wrapping_sum(time_ns, static_cast<std::int64_t>(-by));
}

ThreadRow thread_of(pbf_reader from) {
    ThreadRow row;
    while (from.next())
        switch (from.tag_and_type()) {
        case varint_key(f::thread::tid): row.tid = from.get_uint64(); break;
        case bytes_key(f::thread::name): row.name = from.get_string(); break;
        case varint_key(f::thread::device): row.device = static_cast<std::int32_t>(minus_1(from.get_uint32())); break;
        default: from.skip();
        }
    return row;
}

/// Calls `add` with `N` values at a time.
template <std::size_t N, class Add>
bool add_packed(pbf_reader& from, Add&& add) {
    std::array<std::uint32_t, N> values{};
    std::size_t count = 0;
    for (const std::uint32_t value : from.get_packed_uint32()) {
        values[count++] = value;
        if (count == N) {
            add(values);
            count = 0;
        }
    }
    return count == 0;
}

}   // namespace

bool read_definitions(pbf_reader record, LedgerBuilder& builder) {
    Definitions added;
    bool whole = true;
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes_key(f::definitions::names): added.names.push_back(record.get_string()); break;
        case bytes_key(f::definitions::threads): added.threads.push_back(thread_of(record.get_message())); break;
        case bytes_key(f::definitions::frames):
            whole = whole && add_packed<3>(record, [&](const auto& values) {
                        added.frames.push_back({values[0], minus_1(values[1]), values[2]});
                    });
            break;
        case bytes_key(f::definitions::stacks):
            whole = whole && add_packed<2>(record, [&](const auto& values) {
                        added.stacks.push_back({minus_1(values[0]), values[1]});
                    });
            break;
        default: record.skip();
        }
    return builder.definitions(added) && whole;
}

bool read_operator_begin(pbf_reader record, std::int64_t time_ns, LedgerBuilder& builder) {
    OperatorRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::operator_begin::thread): row.thread = record.get_uint32(); break;
        case varint_key(f::operator_begin::name): row.name = record.get_uint32(); break;
        case varint_key(f::operator_begin::kind):
            // One of a later version still begins, or its end would be another's.
            row.kind = static_cast<OperatorKind>(
                std::min(record.get_uint64(), static_cast<std::uint64_t>(OperatorKind::other)));
            break;
        case varint_key(f::operator_begin::shapes): row.shapes = minus_1(record.get_uint32()); break;
        case varint_key(f::operator_begin::stack): row.stack = minus_1(record.get_uint32()); break;
        case varint_key(f::operator_begin::sequence):
            row.sequence = static_cast<std::int64_t>(record.get_uint64() - 1);
            break;
        case varint_key(f::operator_begin::forward_thread): row.forward_thread = record.get_uint64(); break;
        case varint_key(f::operator_begin::flops): row.flops = record.get_uint64(); break;
        case varint_key(f::operator_begin::correlation): row.correlation = record.get_uint64(); break;
        case varint_key(f::early_ns): time_ns = earlier(time_ns, record.get_uint64()); break;
        default: record.skip();
        }
    row.begin_ns = time_ns;
    return builder.operator_begin(row);
}

bool read_operator_end(pbf_reader record, std::int64_t time_ns, LedgerBuilder& builder) {
    std::uint32_t thread = 0;
    bool lost = false;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::operator_end::thread): thread = record.get_uint32(); break;
        case varint_key(f::operator_end::lost): lost = record.get_bool(); break;
        case varint_key(f::early_ns): time_ns = earlier(time_ns, record.get_uint64()); break;
        default: record.skip();
        }
    return builder.operator_end(thread, time_ns, lost);
}

bool read_allocation(pbf_reader record, std::int64_t time_ns, LedgerBuilder& builder) {
    AllocationRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::allocation::thread): row.thread = record.get_uint32(); break;
        case varint_key(f::allocation::device):
            row.device = static_cast<std::int32_t>(minus_1(record.get_uint32()));
            break;
        case varint_key(f::allocation::bytes): row.bytes = record.get_sint64(); break;
        case varint_key(f::allocation::address): row.address = record.get_uint64(); break;
        case varint_key(f::allocation::total_allocated): row.total_allocated = record.get_int64(); break;
        case varint_key(f::early_ns): time_ns = earlier(time_ns, record.get_uint64()); break;
        default: record.skip();
        }
    row.at_ns = time_ns;
    return builder.allocation(row);
}

bool read_stack_sample(pbf_reader record, std::int64_t time_ns, LedgerBuilder& builder) {
    StackSampleRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::stack_sample::thread): row.thread = record.get_uint32(); break;
        case varint_key(f::stack_sample::stack): row.stack = record.get_uint32(); break;
        case varint_key(f::stack_sample::weight_ns): row.weight_ns = record.get_int64(); break;
        case varint_key(f::early_ns): time_ns = earlier(time_ns, record.get_uint64()); break;
        default: record.skip();
        }
    row.at_ns = time_ns;
    return builder.stack_sample(row);
}

}   // namespace drawpoint
