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

/// A slice of a track, and the row of the ledger that it shows.
struct TrackSlice {
    /// The column that `row` is an index in. `piece`, `batch_piece` and `stage` are parts of a step, batch or sample
    /// and refer to its row. They lie inside its slice, except a batch's collating, which is on its worker's track if
    /// that is known. The order is that in which slices of equal length enclose each other.
    enum class Kind : std::uint8_t {
        pass,
        step,
        draw,
        piece,
        end_of_data,
        batch,
        batch_piece,
        sample,
        stage,
        device_step,
        copy,
        call
    };
    Kind kind{};
    std::uint32_t row = 0;
    std::string_view name;   ///< in the ledger's terms; owned by the ledger or static
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// The slices of one thread, worker, batch slot or device stream. They nest; a slice comes before those inside it.
struct Track {
    std::string name;
    std::uint64_t tid = 0;
    std::int32_t device = -1;   ///< -1: the host
    bool is_loop = false;       ///< the loop's track, or the slices that overlap on it
    std::vector<TrackSlice> slices;
};

/// Thread numbers from here on are not the system's: workers, batch slots and overlapping slices.
inline constexpr std::uint64_t first_own_tid = std::uint64_t{1} << 22;

/// The process's id if known, else the thread id of its loop.
[[nodiscard]] std::uint64_t process_of(const Ledger&);
/// Index in `Ledger::threads` of the thread that the loop ran on, if it can be determined.
[[nodiscard]] std::optional<std::uint32_t> loop_thread_of(const Ledger&);
[[nodiscard]] std::uint64_t loop_tid_of(const Ledger&);

/// Calls `take` with every track that is not empty, one at a time: the loop, then other threads, workers, batch slots,
/// the device's steps and copies, device streams. Overlapping slices go to an additional track. Returns how many slices
/// were left out: those that end before they begin, and calls on threads that the ledger does not have.
std::uint64_t for_each_track(const Ledger&, const std::function<void(const Track&)>& take);

/// The end of a sample's last stage.
[[nodiscard]] std::int64_t end_of(const Ledger&, const SampleRow&) noexcept;
/// When a batch began and ceased to exist, by its timestamps; nullopt if it has none.
[[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> life_of(const BatchRow&) noexcept;

}   // namespace drawpoint
