#pragma once

#include <filesystem>

namespace drawpoint {

/// A file that replaces another one atomically. Until commit() nothing of it can be seen, and a process that is killed
/// leaves nothing of it behind (on file systems without unnamed files, `FILE.PID.N.tmp` beside the target). Several
/// threads and processes may replace the same file at the same time: each writes its own, and the last commit wins.
class ReplacedFile {
public:
    /// If `file` is a symbolic link, its target is replaced. Permissions of an existing file are kept. Throws
    /// std::system_error naming `file`.
    explicit ReplacedFile(const std::filesystem::path& file);
    ~ReplacedFile();
    ReplacedFile(const ReplacedFile&) = delete;
    ReplacedFile& operator=(const ReplacedFile&) = delete;

    [[nodiscard]] int number() const noexcept { return number_; }   ///< the file descriptor, for writing
    /// Puts it in its place, atomically. Returns 0 or an errno value.
    [[nodiscard]] int commit() noexcept;
    /// The folder of the target, links resolved.
    [[nodiscard]] std::filesystem::path folder() const;

private:
    std::filesystem::path target_, temporary_;   // `temporary_` is empty while it has no name
    int number_ = -1;
};

}   // namespace drawpoint
