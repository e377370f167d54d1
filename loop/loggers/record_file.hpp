#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace drawpoint {

/// A file of records. Each record is passed to the system as a whole, so that it survives the process. The first record
/// that cannot be written is cut off again, kept as `error()`, and ends the writing. One thread at a time.
class RecordFile {
public:
    /// `anew` truncates an existing file, `append` continues it on a new line, `exclusive` refuses it.
    enum class Mode : std::uint8_t { anew, append, exclusive };

    /// Also creates the folder. Throws std::system_error naming the file.
    RecordFile(std::filesystem::path path, Mode mode);
    RecordFile(const RecordFile&) = delete;
    RecordFile& operator=(const RecordFile&) = delete;
    ~RecordFile();

    void write(std::string_view record) noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return bytes_ == 0; }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    void fail(int error) noexcept;

    std::filesystem::path path_;
    int file_ = -1;
    std::uint64_t bytes_ = 0;   // size of the complete records
    std::string error_;
};

/// Seconds since 1970.
[[nodiscard]] double wall_time_s() noexcept;

}   // namespace drawpoint
