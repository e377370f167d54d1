#include "trace_operators_reader.hpp"

#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "instrumentation/trace/trace_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_reader;

/// Reads rows from the packed values of their columns; returns false if the last row is incomplete.
template <class Row>
bool read_packed(pbf_reader& from, std::vector<Row>& into) {
    constexpr std::size_t count = schema::walk<Row>([](const auto&... columns) { return sizeof...(columns); });
    std::array<std::uint32_t, count> values{};
    std::size_t reached = 0;
    for (const std::uint32_t value : from.get_packed_uint32()) {
        values[reached++] = value;
        if (reached < count)
            continue;
        reached = 0;
        Row& row = into.emplace_back();
        const auto take = [&]<class Kind>(const schema::Column<Row, std::uint32_t, Kind>& column) {
            row.*column.member = values[reached++] - std::uint32_t{std::is_same_v<Kind, schema::PlusOne>};
        };
        schema::walk<Row>([&](const auto&... columns) { (take(columns), ...); });
        reached = 0;
    }
    return reached == 0;
}

}   // namespace

bool read_definitions(pbf_reader record, LedgerBuilder& builder) {
    Definitions added;
    bool whole = true;
    const auto places = [&]() -> DefinitionPlaces& { return added.places ? *added.places : added.places.emplace(); };
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes_key(f::definitions::names): added.names.push_back(record.get_string()); break;
        case bytes_key(f::definitions::threads): {
            pbf_reader thread = record.get_message();
            (void)read_columns(thread, added.threads.emplace_back(), {});   // has no enumerator that could be unknown
            break;
        }
        case bytes_key(f::definitions::frames): whole = read_packed(record, added.frames) && whole; break;
        case bytes_key(f::definitions::stacks): whole = read_packed(record, added.stacks) && whole; break;
        case varint_key(f::definitions::names_before): places().names_before = record.get_uint32(); break;
        case varint_key(f::definitions::frames_before): places().frames_before = record.get_uint32(); break;
        case varint_key(f::definitions::stacks_before): places().stacks_before = record.get_uint32(); break;
        case bytes_key(f::definitions::thread_numbers):
            for (const std::uint32_t number : record.get_packed_uint32())
                places().threads.push_back(number);
            break;
        default: record.skip();
        }
    return builder.definitions(added) && whole;
}

bool read_operator_end(pbf_reader record, std::int64_t time_ns, LedgerBuilder& builder) {
    std::uint32_t thread = 0;
    bool lost = false;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::operator_end::thread): thread = record.get_uint32(); break;
        case varint_key(f::operator_end::lost): lost = record.get_bool(); break;
        case varint_key(f::early_ns):
            time_ns = static_cast<std::int64_t>(wrapping_difference(time_ns, record.get_int64()));
            break;
        default: record.skip();
        }
    return builder.operator_end(thread, time_ns, lost);
}

}   // namespace drawpoint
