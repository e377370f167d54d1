#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// A slice of a track and the row of the ledger it shows.
struct TrackSlice {
    /// Which column `row` is a position in; `piece`, `batch_piece` and `stage` are parts of a step, batch or sample and
    /// name its row. They stand in its slice, but for a batch's collating, which stands on its worker's track where
    /// that is known. In the order in which slices of equal length enclose each other.
    enum class Kind : std::uint8_t { pass, step, draw, piece, end_of_data, batch, batch_piece, sample, stage, call };
    Kind kind{};
    std::uint32_t row = 0;
    std::string_view name;   ///< in the ledger's own words; of the ledger or static
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// What one thread, worker, batch slot or device stream did. Slices nest, and a slice stands before those inside it.
struct Track {
    std::string name;
    std::uint64_t tid = 0;
    std::int32_t device = -1;   ///< -1: the host
    bool is_loop = false;       ///< or what overlaps on it
    std::vector<TrackSlice> slices;
};

/// Thread numbers from here on are no system's: those of workers, batch slots and what overlaps.
inline constexpr std::uint64_t first_own_tid = std::uint64_t{1} << 22;

/// The system's number of the process, where known, else of its loop's thread.
[[nodiscard]] std::uint64_t process_of(const Ledger&);
/// Of `Ledger::threads`: the one the loop ran on, where it can be told.
[[nodiscard]] std::optional<std::uint32_t> loop_thread_of(const Ledger&);
[[nodiscard]] std::uint64_t loop_tid_of(const Ledger&);

/// Hands every track with something on it to `take`, one at a time: the loop, then other threads, workers, batch slots,
/// device streams. Slices that overlap are handed over as a further track. Returns how many slices were left out: those
/// that end before they begin, and calls of threads that the ledger does not have.
std::uint64_t for_each_track(const Ledger&, const std::function<void(const Track&)>& take);

/// When a sample was done: its last stage's end.
[[nodiscard]] std::int64_t end_of(const Ledger&, const SampleRow&) noexcept;
/// When a batch began and stopped to exist, from the stamps it has; nothing where it has none.
[[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> life_of(const BatchRow&) noexcept;

}   // namespace drawpoint
