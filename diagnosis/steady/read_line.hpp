#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// Reads that share a bandwidth: more of them at a time are no faster.
struct ReadLine {
    double busy_share = 0;         ///< of the time: at most 1 / busy_share times as much can be read
    double ns_per_byte = 0;        ///< of a read that waited for its turn
    std::int64_t latency_ns = 0;   ///< of a read that had not to wait, beside its bytes
};

/// The line that samples begun in [from_ns, to_ns) were read over, if their times show one: reads that overlapped ended one
/// after the other at a steady rate, or they took longer the more of them there were. Reads ahead, else the first stage where
/// it waits more than it computes. Needs 100 of them; looks at the last 20,000. O(n log n).
[[nodiscard]] std::optional<ReadLine> read_line(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Whether more than half of a read's time is there because of its bytes, by how it grows with them: of reads that came one
/// after the other and so tell of no line. O(n log n).
[[nodiscard]] bool reads_grow_with_bytes(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// What a replay needs to know of it.
void set_read_line(RecordedRun&, const std::optional<ReadLine>&);

}   // namespace drawpoint
