#include "instrumentation/trace/block_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <drawpoint/instrumentation/trace/trace.hpp>

namespace drawpoint {

BlockFile::BlockFile(const std::filesystem::path& path) : path_{path.string()} {
    number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (number_ < 0)
        fail(errno);
    struct stat status{};
    const int error = ::fstat(number_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
    if (error == 0 && S_ISREG(status.st_mode)) {
        size_ = static_cast<std::uint64_t>(status.st_size);
        return;
    }
    ::close(number_);
    if (error != 0)
        fail(error);
    throw TraceError(path_ + ": not a recording (not a regular file)");
}

BlockFile::~BlockFile() { ::close(number_); }

void BlockFile::look() {
    struct stat status{};
    if (::fstat(number_, &status) != 0)
        fail(errno);
    size_ = static_cast<std::uint64_t>(status.st_size);
}

std::string_view BlockFile::read(std::uint64_t at, std::size_t most) {
    content_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, at < size_ ? size_ - at : 0)));
    std::size_t got = 0;
    while (got < content_.size()) {
        const ssize_t n = ::pread(number_, content_.data() + got, content_.size() - got, static_cast<off_t>(at + got));
        if (n < 0 && errno != EINTR)
            fail(errno);
        if (n == 0) {   // it has become shorter
            size_ = at + got;
            break;
        }
        got += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    return std::string_view{content_}.substr(0, got);
}

std::uint64_t BlockFile::next_data(std::uint64_t at) const noexcept {
    const off_t found = ::lseek(number_, static_cast<off_t>(at), SEEK_DATA);
    return found >= 0 ? static_cast<std::uint64_t>(found) : errno == ENXIO ? size_ : at;
}

void BlockFile::fail(int error) const { throw std::system_error(error, std::generic_category(), path_); }

}   // namespace drawpoint
