#pragma once

#include <filesystem>

namespace drawpoint {

/// A file on its way to the place of another: until commit() there is nothing to be seen of it, and nothing is left of
/// it by a process that is killed (where the file system has files without a name; else `FILE.PID.N.tmp` beside it).
/// Several threads and processes may replace the same file at the same time: each writes to its own, and the last
/// commit stays.
class ReplacedFile {
public:
    /// What `file` links to is replaced, not the link; permissions of what is there stay. Throws std::system_error
    /// naming `file`.
    explicit ReplacedFile(const std::filesystem::path& file);
    ~ReplacedFile();
    ReplacedFile(const ReplacedFile&) = delete;
    ReplacedFile& operator=(const ReplacedFile&) = delete;

    [[nodiscard]] int number() const noexcept { return number_; }   ///< the file descriptor, for writing
    /// Puts it in its place, all at once. 0, or the system's error.
    [[nodiscard]] int commit() noexcept;
    /// The folder it stands in, links resolved.
    [[nodiscard]] std::filesystem::path folder() const;

private:
    std::filesystem::path target_, temporary_;   // the latter empty: without a name
    int number_ = -1;
};

}   // namespace drawpoint
