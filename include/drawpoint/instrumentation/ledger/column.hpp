#pragma once

#include <cstdint>
#include <string_view>

namespace drawpoint::schema {

/// A column of a ledger's rows: its name in exports, its member and, by its kind, how a recording holds it. What writes,
/// reads, declares, exports or compares rows walks their columns (`walk`), so a column more is a member and a line in
/// the row's list.
template <class Row, class T, class Kind>
struct Column {
    std::string_view name;
    T Row::* member;
    Kind kind;
};
template <class Row, class T, class Kind>
Column(std::string_view, T Row::*, Kind) -> Column<Row, T, Kind>;
template <class Row, class T, class Kind>
Column(const char*, T Row::*, Kind) -> Column<Row, T, Kind>;

// Kinds of columns. `field` is the number of the record's field that a recording writes the column in; once given, a number
// keeps its meaning for ever. A reader takes a field that is left out for the member's initial value.

/// Says which row it is: always written. A row with an enumerator of a later version is left out when it is read, or reads as
/// the last one known.
struct Key {
    std::uint32_t field;
    bool later_is_last = false;
};
/// Left out where it is `absent`. `field_name`: the field's, where it is not the column's.
struct Count {
    std::uint32_t field;
    std::uint64_t absent = 0;
    std::string_view field_name = {};
};
/// An optional, or nanoseconds with `no_stamp`: left out, and null in exports, where it is not there. 0 is written.
struct Measured {
    std::uint32_t field;
};
/// A stamp, or `no_stamp`: written as the record's time less it.
struct Before {
    std::uint32_t field;
};
/// A stamp: written as it less the recording's start.
struct SinceStart {
    std::uint32_t field;
};
/// Written plus 1, so that none is 0 and is left out; null in exports.
struct PlusOne {
    std::uint32_t field;
};
/// May be below 0: always written, folded so that small numbers are short.
struct Signed {
    std::uint32_t field;
};
/// A position in another column: always written; `nothing` is null in exports.
struct Position {
    std::uint32_t field;
};
/// A limit: left out where it is 0; `any_order` is null in exports.
struct Limit {
    std::uint32_t field;
};
/// The time of the record itself.
struct Time {
    bool optional = false;   ///< `no_stamp` is null in exports
};
/// A stamp, or `no_stamp`, which is null in exports; one of those that a record writes in one field, in the order of the columns.
struct Stamp {};
/// Where a record has it in a field with other columns, or not at all.
struct Composed {};
/// A part of a side column.
struct Part {};

}   // namespace drawpoint::schema
