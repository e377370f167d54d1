#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// A bandwidth that all reads share: more reads at a time are no faster.
struct ReadLine {
    double busy_share = 0;         ///< part of the time it is in use: reads can be at most 1 / busy_share times as fast
    double ns_per_byte = 0;        ///< of a read that waited for its turn
    std::int64_t latency_ns = 0;   ///< of a read that did not have to wait, without its bytes
};

/// The bandwidth shared by samples that began in [from_ns, to_ns), if their times show one: many reads that overlapped
/// ended as long after the one before as their bytes take at one rate, or reads took longer the more of them there
/// were. Looks at reads ahead, else at the first stage if it waits more than it computes; at the last 20,000, and at
/// least 100 are needed. O(n log n).
[[nodiscard]] std::optional<ReadLine> read_line(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Whether more than half of the time of reads is due to their bytes, by how it grows with them. For reads that mostly
/// come one after the other, whose times cannot show a shared bandwidth. O(n log n).
[[nodiscard]] bool reads_grow_with_bytes(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Sets the run's shared bandwidth, or that there is none.
void set_read_line(RecordedRun&, const std::optional<ReadLine>&);

}   // namespace drawpoint
