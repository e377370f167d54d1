#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace drawpoint {

/// A recording that a process of this machine is writing.
struct LiveRecording {
    int pid = 0;
    /// The file as that process has it open (`/proc/PID/fd/N`): it can be opened here as long as the process runs,
    /// also if the file has been moved or replaced.
    std::filesystem::path path;
    std::int64_t changed_ns = 0;           ///< when it was last written to, in Unix time
    std::uint64_t device = 0, inode = 0;   ///< which file it is, as stat() says
};

/// The recordings that process `pid` is writing; without `pid`, those of all processes of this user. The one that was
/// written to last comes first. One whose first block is not written yet is none. Looks at
/// every open file of these processes, by /proc. Processes that can't be looked into have none. Any thread.
[[nodiscard]] std::vector<LiveRecording> live_recordings(std::optional<int> pid = std::nullopt);

/// Who is writing this file, if it is a process that can be looked into. Looks at every open file of all processes. Any
/// thread.
[[nodiscard]] std::optional<LiveRecording> writer_of(const std::filesystem::path& file);

/// Whether it is still being written: false once its process has closed it or has ended in whatever way. A process
/// that reaches the limit of its recording (`RecorderOptions::limit_bytes`) goes on in a new file: ask
/// `live_recordings(pid)` for it. Two system calls. Any thread.
[[nodiscard]] bool is_being_written(const LiveRecording&);

}   // namespace drawpoint
