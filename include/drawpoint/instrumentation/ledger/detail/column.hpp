#pragma once

#include <cstdint>
#include <string_view>

namespace drawpoint::schema {

/// A column of a ledger row: its name in exports, its member, and its kind, which says how a recording stores it. Code
/// that writes, reads, declares, exports or compares rows iterates over their columns with `walk`, so a new column
/// needs only a member and a line in the row's list.
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

// Kinds of columns. `field` is the number of the protobuf field that a recording stores the column in; a number that
// has been used never changes its meaning. An absent field reads as the member's initial value.

/// Identifies the row: always written. When a row has an enumerator of a later version, the reader skips the row, or
/// takes the last enumerator it knows if `later_is_last`.
struct Key {
    std::uint32_t field;
    bool later_is_last = false;
};
/// Not written when the value is `absent`. `field_name`: the protobuf field's name, if it differs from the column's.
struct Count {
    std::uint32_t field;
    std::uint64_t absent = 0;
    std::string_view field_name = {};
};
/// An optional, or nanoseconds with `no_stamp`: when missing, not written, and null in exports. 0 is written.
struct Measured {
    std::uint32_t field;
};
/// A stamp or `no_stamp`: written as the record's time minus the stamp.
struct Before {
    std::uint32_t field;
};
/// A stamp: written as the stamp minus the recording's start.
struct SinceStart {
    std::uint32_t field;
};
/// Written plus 1, so that "none" becomes 0 and is not written; null in exports.
struct PlusOne {
    std::uint32_t field;
};
/// May be negative: always written, zigzag-encoded so that small numbers are short.
struct Signed {
    std::uint32_t field;
};
/// A position in another column: always written; `nothing` is null in exports.
struct Position {
    std::uint32_t field;
};
/// An OrderRule: its `max_overtakes`, not written when 0; null in exports where any number may overtake.
struct Order {
    std::uint32_t field;
};
/// The time of the record itself.
struct Time {
    bool optional = false;   ///< `no_stamp` is null in exports
};
/// A stamp or `no_stamp`, which is null in exports. A record packs all its `Stamp`s into one field, in column order.
struct Stamp {};
/// Stored in a field together with other columns, or not stored.
struct Composed {};
/// A range of a side column.
struct Part {};

}   // namespace drawpoint::schema
