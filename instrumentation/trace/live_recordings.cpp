#include <drawpoint/instrumentation/trace/live_recordings.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "instrumentation/trace/trace_block.hpp"

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

std::optional<int> number_of(const fs::path& name) {
    const std::string text = name.filename().string();
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{number} : std::nullopt;
}

/// The file, if it is a regular one that is open for writing: a descriptor's link has the permissions of its opening.
std::optional<LiveRecording> written_file(int pid, const fs::path& descriptor) {
    struct stat link{}, file{};
    if (::lstat(descriptor.c_str(), &link) != 0 || (link.st_mode & S_IWUSR) == 0 ||
        ::stat(descriptor.c_str(), &file) != 0 || !S_ISREG(file.st_mode))
        return std::nullopt;
    return LiveRecording{.pid = pid,
                         .path = descriptor,
                         .changed_ns = std::int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec,
                         .device = file.st_dev,
                         .inode = file.st_ino};
}

bool begins_as_recording(const fs::path& file) {
    const int number = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (number < 0)
        return false;
    std::array<char, max_header_bytes> bytes{};
    const ssize_t n = ::pread(number, bytes.data(), bytes.size(), 0);
    ::close(number);
    return n > 0 && parse_header({bytes.data(), static_cast<std::size_t>(n)}, 0).state == ParsedHeader::State::whole;
}

/// Whether something was written through the descriptor. A recording opens the file that it will replace, and then
/// writes to another one.
bool was_written_through(int pid, const fs::path& descriptor) {
    std::ifstream info{fs::path{"/proc"} / std::to_string(pid) / "fdinfo" / descriptor.filename()};
    std::string name;
    std::uint64_t position = 0;
    return info >> name >> position && name == "pos:" && position > 0;
}

/// Calls `found` for each file that the process has open and has written to. It may end meanwhile.
template <class Found>
void each_written_file(int pid, Found found) {
    std::error_code gone;
    const fs::path folder = fs::path{"/proc"} / std::to_string(pid) / "fd";
    for (fs::directory_iterator at{folder, gone}, end; !gone && at != end; at.increment(gone))
        if (auto file = written_file(pid, at->path()); file && was_written_through(pid, at->path()))
            found(std::move(*file));
}

std::vector<int> processes(bool of_this_user) {
    std::vector<int> pids;
    std::error_code error;
    for (fs::directory_iterator at{"/proc", error}, end; !error && at != end; at.increment(error)) {
        struct stat status{};
        if (const auto pid = number_of(at->path());
            pid && (!of_this_user || (::stat(at->path().c_str(), &status) == 0 && status.st_uid == ::geteuid())))
            pids.push_back(*pid);
    }
    return pids;
}

}   // namespace

std::vector<LiveRecording> live_recordings(std::optional<int> pid) {
    std::vector<LiveRecording> all;
    for (const int process : pid ? std::vector{*pid} : processes(true))
        each_written_file(process, [&](LiveRecording file) {
            if (begins_as_recording(file.path))
                all.push_back(std::move(file));
        });
    std::ranges::stable_sort(all, std::ranges::greater{}, &LiveRecording::changed_ns);
    return all;
}

std::optional<LiveRecording> writer_of(const fs::path& file) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0)
        return std::nullopt;
    std::optional<LiveRecording> writer;
    for (const int process : processes(false))
        each_written_file(process, [&](LiveRecording open) {
            if (open.device == status.st_dev && open.inode == status.st_ino)
                writer = std::move(open);
        });
    return writer;
}

bool is_being_written(const LiveRecording& recording) {
    const auto file = written_file(recording.pid, recording.path);
    return file && file->device == recording.device && file->inode == recording.inode;
}

}   // namespace drawpoint
