#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <drawpoint/instrumentation/ledger/records.hpp>

#include "instrumentation/recorder/ring.hpp"

namespace drawpoint {

enum class MessageKind : std::uint8_t {
    skip,
    sample,
    collate,
    batch,
    step,
    pass,
    pass_begin,
    end_of_data,
    order,
    transfer,
    device_step,
    operator_begin,
    operator_end,
    allocation,
    stack_sample
};

/// The beginning of a ring's message; the bytes of a row and of its side rows follow.
struct MessageHeader {
    MessageKind kind{};
    std::uint8_t records = 0;
    std::uint8_t side_rows = 0;
    bool first = false;   ///< of an operator's begin: it is its thread's first
    std::uint32_t unused = 0;
};
static_assert(sizeof(MessageHeader) == 8);

/// The collating of a batch, which a worker's track shows between its samples.
struct CollateSlice {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint16_t worker = 0;
};

/// The begin of an operator; fits into one record.
struct BegunOperator {
    std::int64_t at_ns = 0;
    std::uint32_t ticket = 0, thread = 0;
    OperatorBegin what;
};
static_assert(sizeof(MessageHeader) + sizeof(BegunOperator) == Ring::record_bytes);

struct EndedOperator {
    std::int64_t at_ns = 0;
    std::uint32_t ticket = 0, thread = 0;
};

/// Hands over a row. If the ring is full, counts a drop at `at_ns` and returns false. Never blocks or allocates.
template <class Row, class Side = std::byte>
bool push_message(Ring& ring, MessageKind kind, std::int64_t at_ns, const Row& row, std::span<const Side> side = {},
                  bool first = false) noexcept {
    static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Side>);
    const std::size_t bytes = sizeof(MessageHeader) + sizeof(Row) + side.size_bytes();
    const auto records = static_cast<std::uint8_t>((bytes + Ring::record_bytes - 1) / Ring::record_bytes);
    std::byte* to = ring.claim(records);
    if (to == nullptr) {
        ring.count_drop(at_ns);
        return false;
    }
    const MessageHeader header{kind, records, static_cast<std::uint8_t>(side.size()), first};
    std::memcpy(to, &header, sizeof header);
    std::memcpy(to + sizeof header, &row, sizeof row);
    if (!side.empty())
        std::memcpy(to + sizeof header + sizeof row, side.data(), side.size_bytes());
    ring.publish();
    return true;
}

[[nodiscard]] inline MessageHeader header_of(const std::byte* message) noexcept {
    MessageHeader header;
    std::memcpy(&header, message, sizeof header);
    return header;
}

/// The row of a message.
template <class Row>
[[nodiscard]] Row row_of(const std::byte* message) noexcept {
    Row row;
    std::memcpy(&row, message + sizeof(MessageHeader), sizeof row);
    return row;
}

/// The side rows of a message whose row is a `Row`, copied into `buffer`.
template <class Row, class Side, std::size_t N>
[[nodiscard]] std::span<const Side> side_rows_of(const std::byte* message, std::array<Side, N>& buffer) noexcept {
    const std::size_t count = std::min<std::size_t>(header_of(message).side_rows, N);
    if (count != 0)
        std::memcpy(buffer.data(), message + sizeof(MessageHeader) + sizeof(Row), count * sizeof(Side));
    return std::span{buffer}.first(count);
}

}   // namespace drawpoint
