#include "cli/followed_run.hpp"

#include <cerrno>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/option_values.hpp"
#include "cli/program.hpp"
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint::cli {
namespace {

/// Whether a file has this inode.
bool is_file(const std::filesystem::path& file, const LiveRecording& recording) {
    struct stat found{};
    return ::stat(file.c_str(), &found) == 0 && found.st_dev == recording.device && found.st_ino == recording.inode;
}

constexpr std::string_view process_prefix = "process ";

double clock_s(clockid_t clock) noexcept {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}   // namespace

FollowedRun::FollowedRun(const std::filesystem::path& file, std::optional<LiveRecording> writer,
                         std::uint64_t kept_bytes)
    : kept_bytes_{kept_bytes}, writer_{std::move(writer)} {
    open(file);
}

void FollowedRun::open(const std::filesystem::path& file) {
    const int number = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (number < 0)
        throw std::system_error{errno, std::generic_category(), file.string()};
    const std::shared_ptr<const void> opened{nullptr, [number](const void*) { ::close(number); }};
    follower_ = std::make_unique<TraceFollower>(file, kept_bytes_);
    opened_ = opened;
    content_ = fmt::format("/proc/self/fd/{}", number);
    file_ = file;
}

/// Of a file that is known as its writer's: where it is, if that can be found.
std::string FollowedRun::find_name() const {
    if (!writer_ || file_ != writer_->path)
        return file_.string();
    std::error_code unknown;
    const auto written = std::filesystem::read_symlink(writer_->path, unknown);
    if (!unknown && is_file(written, *writer_))
        return written.string();
    const std::filesystem::path named{rows().fact(std::string{facts::option_prefix} + "output").value_or("")};
    const auto folder = std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", writer_->pid), unknown);
    const auto beside = folder / named;   // a recording is made without a name, which it gets once it is begun
    return !unknown && is_file(beside, *writer_) ? beside.string() : fmt::format("{}{}", process_prefix, writer_->pid);
}

std::string FollowedRun::source() const {
    return writer_ && file_ == writer_->path ? std::to_string(writer_->pid) : file_.string();
}

bool FollowedRun::read(const std::function<void(const Ledger&)>& seen) {
    const bool was_written = writer_ && is_being_written(*writer_);   // before reading what it wrote last
    bool is_new = read_pieces(seen);
    if (!has_name_) {
        name_ = find_name();
        has_name_ = !name_.starts_with(process_prefix);
    }
    if (!was_written && !is_over_)
        is_new = find_next(seen) || is_new;
    return is_new;
}

bool FollowedRun::read_pieces(const std::function<void(const Ledger&)>& seen) {
    bool is_new = false;
    while (follower_->read(kept_bytes_ / 8)) {   // whose rows all are kept: they take less than 8 times that
        is_new = true;
        seen(follower_->rows());
    }
    return is_new;
}

/// The file is not written any more: another one, which begins with its totals, has taken its place, or the run is
/// over.
bool FollowedRun::find_next(const std::function<void(const Ledger&)>& seen) {
    while (writer_) {
        const auto others = has_name_ ? std::vector<LiveRecording>{} : live_recordings(writer_->pid);
        const std::filesystem::path next = has_name_        ? std::filesystem::path{name_}
                                           : others.empty() ? std::filesystem::path{}
                                                            : others.front().path;
        if (next.empty() || !goes_on_in(next))
            break;
        const auto live = writer_of(content_);   // of the one that is open now; it may have been replaced, too
        const bool is_new = read_pieces(seen);
        if (live) {
            writer_ = live;
            return is_new;
        }
    }
    follower_->read_rest();
    is_over_ = true;
    return true;
}

/// Whether another file is of the same run, which is followed there then. One that took its place may be of a later
/// run.
bool FollowedRun::goes_on_in(const std::filesystem::path& other) {
    struct stat mine{}, its{};
    if (::stat(content_.c_str(), &mine) != 0 || ::stat(other.c_str(), &its) != 0 ||
        (mine.st_ino == its.st_ino && mine.st_dev == its.st_dev))
        return false;
    try {
        TraceFollower first{other, kept_bytes_};
        if (!first.read() || first.rows().start_ns != follower_->rows().start_ns)
            return false;
        open(other);
        return true;
    } catch (const std::exception&) {   // it is no recording, or is gone
        return false;
    }
}

FollowedRun followed_run(const std::string& run_or_pid, std::uint64_t kept_bytes) {
    const auto newest = [&](const std::vector<LiveRecording>& live, const std::string& complaint) {
        if (live.empty())
            throw Failure{complaint};
        return FollowedRun{live.front().path, live.front(), kept_bytes};
    };
    if (run_or_pid.empty())
        return newest(live_recordings(), "no recording of yours is being written: name RUN or PID");
    if (const auto pid = number_in<int>(run_or_pid); pid && !std::filesystem::exists(run_or_pid))
        return newest(live_recordings(*pid),
                      fmt::format("process {} is writing no recording that can be read from here", *pid));
    return {run_or_pid, writer_of(run_or_pid), kept_bytes};
}

double process_cpu_s() noexcept { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu_s() noexcept { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

std::chrono::milliseconds pause_after(double used_s, double share) {
    return std::chrono::milliseconds{static_cast<std::int64_t>(1e3 * used_s / share)};
}

}   // namespace drawpoint::cli
