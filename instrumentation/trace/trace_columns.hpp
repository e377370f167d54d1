#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <drawpoint/instrumentation/ledger/rows.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {

// Writes columns of rows as fields of records, and reads them back. ledger/column.hpp explains the kinds of columns.

constexpr Phase last_of(Phase) noexcept { return Phase::valid; }
constexpr PassKind last_of(PassKind) noexcept { return PassKind::valid; }
constexpr StepStatus last_of(StepStatus) noexcept { return StepStatus::failed; }
constexpr BatchStatus last_of(BatchStatus) noexcept { return BatchStatus::failed; }
constexpr SampleStatus last_of(SampleStatus) noexcept { return SampleStatus::failed; }
constexpr OperatorKind last_of(OperatorKind) noexcept { return OperatorKind::other; }
constexpr LoaderKind last_of(LoaderKind) noexcept { return LoaderKind::pytorch; }

template <class T>
struct FieldValue {
    using type = T;
};
template <class T>
struct FieldValue<std::optional<T>> {
    using type = T;
};
template <class T>
struct FieldValue<std::vector<T>> {
    using type = T;
};
template <>
struct FieldValue<OrderRule> {
    using type = std::uint32_t;
};
/// The type of one field's value for a column of type `T`.
template <class T>
using field_value = typename FieldValue<T>::type;

template <class Kind>
concept FieldKind = requires(Kind kind) { kind.field; };

/// The times that stamps in a record are relative to.
struct RecordTimes {
    std::int64_t start_ns = 0, record_ns = 0;
};

// Always inlined, and numbers are composed here (with the same bytes as pbf_writer), so that a record costs no more
// than hand-written code.
template <class T>
[[gnu::always_inline]] inline void put_value(std::string& to, trace_fields::Tag field, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        protozero::pbf_writer{to}.add_string(field, value);
    } else if constexpr (std::is_same_v<T, double>) {
        protozero::pbf_writer{to}.add_double(field, value);
    } else {
        std::array<char, 2 * protozero::max_varint_length> bytes;
        char* at = bytes.data();
        at += protozero::add_varint_to_buffer(at, varint_key(field));
        at += protozero::add_varint_to_buffer(at, static_cast<std::uint64_t>(value));
        to.append(bytes.data(), at);
    }
}

template <class Row, class T, class Kind>
[[gnu::always_inline]] inline void put_column(std::string& to, const Row& row,
                                              const schema::Column<Row, T, Kind>& column, RecordTimes times) {
    [[maybe_unused]] const T& value = row.*column.member;
    if constexpr (std::is_same_v<Kind, schema::Key> || std::is_same_v<Kind, schema::Position>) {
        put_value(to, column.kind.field, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!value.empty())
            put_value(to, column.kind.field, value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        for (const std::string& text : value)
            put_value(to, column.kind.field, text);
    } else if constexpr (std::is_same_v<Kind, schema::Count>) {
        if (static_cast<std::uint64_t>(value) != column.kind.absent)
            put_value(to, column.kind.field, value);
    } else if constexpr (std::is_same_v<Kind, schema::Order>) {
        if (value.max_overtakes != 0)
            put_value(to, column.kind.field, value.max_overtakes);
    } else if constexpr (std::is_same_v<Kind, schema::Measured>) {
        if constexpr (!std::is_same_v<T, std::int64_t>) {
            if (value)
                put_value(to, column.kind.field, *value);
        } else if (value != no_stamp) {
            put_value(to, column.kind.field, value);
        }
    } else if constexpr (std::is_same_v<Kind, schema::Before>) {
        if (value != no_stamp)
            put_value(to, column.kind.field, wrapping_difference(times.record_ns, value));
    } else if constexpr (std::is_same_v<Kind, schema::SinceStart>) {
        put_value(to, column.kind.field, wrapping_difference(value, times.start_ns));
    } else if constexpr (std::is_same_v<Kind, schema::PlusOne>) {
        const auto plus_one = static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(value) + 1u);
        if (plus_one != 0)
            put_value(to, column.kind.field, plus_one);
    } else if constexpr (std::is_same_v<Kind, schema::Signed>) {
        put_value(to, column.kind.field, protozero::encode_zigzag64(value));
    } else {
        static_assert(!FieldKind<Kind>, "a kind that is not written");
    }
}

/// Appends all columns of a row that have a field of their own.
template <class Row>
void put_columns(std::string& to, const Row& row, RecordTimes times) {
    schema::walk<Row>([&](const auto&... columns) { (put_column(to, row, columns, times), ...); });
}

/// Tag and wire type of the field of a column of type `T`.
template <class T>
constexpr std::uint32_t key_of(trace_fields::Tag field) noexcept {
    using Value = field_value<T>;
    if constexpr (std::is_same_v<Value, std::string>)
        return bytes_key(field);
    else if constexpr (std::is_same_v<Value, double>)
        return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed64);
    else
        return varint_key(field);
}

template <class T>
T read_value(protozero::pbf_reader& from) {
    if constexpr (std::is_same_v<T, std::string>)
        return from.get_string();
    else if constexpr (std::is_same_v<T, double>)
        return from.get_double();
    else if constexpr (sizeof(T) == 8)
        return static_cast<T>(from.get_uint64());
    else
        return static_cast<T>(from.get_uint32());
}

/// State while a record is read.
struct RecordState {
    bool known = true;          // all enumerators so far are known
    std::uint64_t before = 0;   // bit set of fields relative to the record's time, which is known only at the end
};

/// Reads the field if it is this column's; returns whether it is.
template <class Row, class T, class Kind>
bool read_column(protozero::pbf_reader& from, std::uint32_t key, Row& row, const schema::Column<Row, T, Kind>& column,
                 std::int64_t start_ns, RecordState& state) {
    if constexpr (FieldKind<Kind>) {
        if (key != key_of<T>(column.kind.field))
            return false;
        T& value = row.*column.member;
        if constexpr (std::is_enum_v<T>) {
            constexpr T last = last_of(T{});
            const std::uint64_t number = from.get_uint64();
            bool later_is_last = false;
            if constexpr (std::is_same_v<Kind, schema::Key>)
                later_is_last = column.kind.later_is_last;
            state.known = state.known && (later_is_last || number <= static_cast<std::uint64_t>(last));
            value = number <= static_cast<std::uint64_t>(last) ? static_cast<T>(number) : last;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            value.push_back(from.get_string());
        } else if constexpr (std::is_same_v<Kind, schema::Before>) {
            value = static_cast<T>(from.get_uint64());
            state.before |= std::uint64_t{1} << column.kind.field;
        } else if constexpr (std::is_same_v<Kind, schema::SinceStart>) {
            value = wrapping_sum(start_ns, from.get_int64());
        } else if constexpr (std::is_same_v<Kind, schema::PlusOne>) {
            using Unsigned = std::make_unsigned_t<T>;
            value = static_cast<T>(static_cast<Unsigned>(read_value<Unsigned>(from) - 1u));
        } else if constexpr (std::is_same_v<Kind, schema::Signed>) {
            value = from.get_sint64();
        } else if constexpr (std::is_same_v<Kind, schema::Order>) {
            value.max_overtakes = read_value<std::uint32_t>(from);
        } else {
            value = read_value<field_value<T>>(from);
        }
        return true;
    } else {
        return false;
    }
}

/// Sets a column that depends on the record's time, once that is known.
template <class Row, class T, class Kind>
void place_column(Row& row, const schema::Column<Row, T, Kind>& column, std::int64_t record_ns,
                  const RecordState& state) {
    if constexpr (std::is_same_v<Kind, schema::Time>)
        row.*column.member = record_ns;
    else if constexpr (std::is_same_v<Kind, schema::Before>)
        if ((state.before >> column.kind.field & 1) != 0)
            row.*column.member = static_cast<T>(wrapping_difference(record_ns, row.*column.member));
}

/// Reads a record's fields into the row's columns. `other(key, from)` reads a field that is no column's, or returns
/// false. `times` has the recording's start and the packet's time, which is replaced by the record's. Returns false if
/// an enumerator is unknown, from a later version.
template <class Row, class Other>
bool read_columns(protozero::pbf_reader& from, Row& row, RecordTimes& times, Other other) {
    RecordState state;
    while (from.next()) {
        const std::uint32_t key = from.tag_and_type();
        const bool read = schema::walk<Row>([&](const auto&... columns) {
            return (... || read_column(from, key, row, columns, times.start_ns, state));
        });
        if (read || other(key, from))
            continue;
        if (key == varint_key(trace_fields::early_ns))
            times.record_ns = static_cast<std::int64_t>(wrapping_difference(times.record_ns, from.get_int64()));
        else
            from.skip();
    }
    schema::walk<Row>([&](const auto&... columns) { (place_column(row, columns, times.record_ns, state), ...); });
    return state.known;
}
inline constexpr auto no_other_field = [](std::uint32_t, protozero::pbf_reader&) { return false; };
template <class Row>
bool read_columns(protozero::pbf_reader& from, Row& row, RecordTimes times) {
    return read_columns(from, row, times, no_other_field);
}

}   // namespace drawpoint
