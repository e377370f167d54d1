#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/trace/live_recordings.hpp>
#include <drawpoint/instrumentation/trace/trace_follower.hpp>

namespace drawpoint::cli {

/// A run that is followed while it is recorded, also into the recording that takes the place of one that has reached
/// its limit.
class FollowedRun {
public:
    /// `writer`: who writes it now. As TraceFollower's constructor.
    FollowedRun(const std::filesystem::path& file, std::optional<LiveRecording> writer, std::uint64_t kept_bytes);

    /// Reads what is new, and calls `seen` after each piece with the rows so far. False: nothing is new, not even that
    /// the run is over. Throws as TraceFollower.
    bool read(const std::function<void(const Ledger&)>& seen = [](const Ledger&) {});

    [[nodiscard]] Ledger ledger() const { return follower_->ledger(); }
    [[nodiscard]] const Ledger& rows() const noexcept { return follower_->rows(); }   ///< as TraceFollower::rows
    /// Nobody writes it any more, and all of it was read.
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    /// The recording's name, once it was read. A run that is known by its process alone may have none that can be
    /// found: then it is "process PID".
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// What followed_run takes to follow the same: the recording, or the process if that is how it is known.
    [[nodiscard]] std::string source() const;
    /// A path by which this process can read the recording, also once it was moved or its writer has ended; as long as
    /// this lives.
    [[nodiscard]] const std::string& content() const noexcept { return content_; }
    [[nodiscard]] std::string warning() const { return follower_->warning(); }

private:
    void open(const std::filesystem::path& file);
    bool read_pieces(const std::function<void(const Ledger&)>& seen);
    bool find_next(const std::function<void(const Ledger&)>& seen);
    [[nodiscard]] bool goes_on_in(const std::filesystem::path& other);
    [[nodiscard]] std::string find_name() const;

    std::uint64_t kept_bytes_;
    std::filesystem::path file_;   // as given, or as its writer has it open
    std::optional<LiveRecording> writer_;
    std::unique_ptr<TraceFollower> follower_;
    std::shared_ptr<const void> opened_;
    std::string content_, name_;
    bool has_name_ = false;   // and not only its process's
    bool is_over_ = false;
};

/// The run that RUN|PID means: a recording, one that this process writes, or (empty) the newest that this user's
/// processes write. Throws Failure if there is none, and as FollowedRun.
[[nodiscard]] FollowedRun followed_run(const std::string& run_or_pid, std::uint64_t kept_bytes);

/// CPU time that this process, or this thread alone, has used.
[[nodiscard]] double process_cpu_s() noexcept;
[[nodiscard]] double thread_cpu_s() noexcept;

/// How long to wait after work of this CPU time, so that it takes that share of a core.
[[nodiscard]] std::chrono::milliseconds pause_after(double used_s, double share);

}   // namespace drawpoint::cli
