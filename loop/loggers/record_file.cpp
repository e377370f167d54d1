#include "loop/loggers/record_file.hpp"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drawpoint {
namespace {

int flags_of(RecordFile::Mode mode) noexcept {
    constexpr int always = O_RDWR | O_CREAT | O_CLOEXEC;
    switch (mode) {
    case RecordFile::Mode::anew: return always | O_TRUNC;
    case RecordFile::Mode::append: return always;
    case RecordFile::Mode::exclusive: return always | O_EXCL;
    }
    return always;
}

}   // namespace

RecordFile::RecordFile(std::filesystem::path path, Mode mode) : path_{std::move(path)} {
    if (path_.has_parent_path()) {
        std::error_code failed;
        std::filesystem::create_directories(path_.parent_path(), failed);
        if (failed)
            throw std::system_error{failed, path_.parent_path().string()};
    }
    file_ = ::open(path_.c_str(), flags_of(mode), 0666);
    if (file_ < 0)
        throw std::system_error{errno, std::generic_category(), path_.string()};
    if (mode != Mode::append)
        return;
    const auto end = ::lseek(file_, 0, SEEK_END);
    bytes_ = end > 0 ? static_cast<std::uint64_t>(end) : 0;
    char last = '\n';
    if (end > 0 && ::pread(file_, &last, 1, end - 1) == 1 && last != '\n')
        write("\n");   // ends the line that a killed run left incomplete
}

RecordFile::~RecordFile() {
    if (file_ >= 0)
        ::close(file_);
}

void RecordFile::write(std::string_view record) noexcept {
    if (!error_.empty())
        return;
    for (std::string_view rest = record; !rest.empty();) {
        const auto written = ::write(file_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            fail(written < 0 ? errno : ENOSPC);
            return;
        }
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    bytes_ += record.size();
}

void RecordFile::fail(int error) noexcept {
    try {
        error_ = path_.string() + ": " + std::generic_category().message(error);
    } catch (...) {
        error_ = "no space";   // short enough to need no allocation
    }
    struct stat status{};
    if (::fstat(file_, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(file_, static_cast<off_t>(bytes_)) != 0)
        return;   // a part of the record remains in the file
}

double wall_time_s() noexcept {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}   // namespace drawpoint
