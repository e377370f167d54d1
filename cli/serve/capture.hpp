#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "cli/followed_run.hpp"

namespace drawpoint::cli {

/// What a running program does in a stretch of time, cut out of its recording. Follows the recording from the first
/// capture on. Several threads may capture at once.
class Captures {
public:
    /// As followed_run, which the first capture calls.
    explicit Captures(std::string run_or_pid) : run_or_pid_{std::move(run_or_pid)} {}

    /// Waits for that long, or until the run is over or `stop`, and until it is recorded, then returns that part of the
    /// run as an XSpace (write_xplane); empty: nothing happened. Where nothing of that time is kept, takes the next
    /// stretch, up to twice. nullopt: cancelled. Throws Failure if the run is over or there is none.
    [[nodiscard]] std::optional<std::string> capture(std::chrono::milliseconds length,
                                                     const std::function<bool()>& is_cancelled);

    /// Ends captures that go on: they return what they have. Later ones return at once.
    void stop() noexcept { stopped_ = true; }

private:
    [[nodiscard]] bool wait_until(std::int64_t to_ns, std::chrono::steady_clock::time_point end,
                                  const std::function<bool()>& is_cancelled);
    [[nodiscard]] bool is_over();
    [[nodiscard]] std::int64_t begin();
    [[nodiscard]] bool has_until(std::int64_t ns);
    [[nodiscard]] Ledger cut(std::int64_t from_ns, std::int64_t to_ns);

    std::atomic<bool> stopped_{false};
    std::mutex mutex_;   // of all that follows
    const std::string run_or_pid_;
    std::optional<FollowedRun> run_;
};

}   // namespace drawpoint::cli
