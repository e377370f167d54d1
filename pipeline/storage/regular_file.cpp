#include "pipeline/storage/regular_file.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint {

namespace {

struct stat status_of_regular(int descriptor, const char* path) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0)
        detail::fail_io("cannot read", path, errno);
    if (S_ISDIR(status.st_mode))
        detail::fail_io("cannot read", path, EISDIR);
    if (!S_ISREG(status.st_mode))
        detail::fail_io("cannot read: not a regular file", path, EINVAL);
    return status;
}

}   // namespace

namespace detail {

const int open_for_reading = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

void fail_io(const char* what, const char* path, int error) {
    throw std::filesystem::filesystem_error(what, path, std::error_code(error, std::generic_category()));
}

std::uint64_t size_of_regular(int descriptor, const char* path) {
    return static_cast<std::uint64_t>(status_of_regular(descriptor, path).st_size);
}

}   // namespace detail

std::size_t most_open_files() noexcept {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0
               ? static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 16)) / 4
               : 64;
}

RegularFile::RegularFile(const char* path) {
    RegularFile opened;   // closed when what follows throws
    opened.descriptor_ = ::open(path, detail::open_for_reading);
    if (opened.descriptor_ < 0)
        detail::fail_io("cannot open", path, errno);
    const struct stat status = status_of_regular(opened.descriptor_, path);
    opened.size_ = static_cast<std::uint64_t>(status.st_size);
    // Unsigned, since it may wrap: a date after 2262 is only compared.
    opened.modified_ns_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                                                    static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
    *this = std::move(opened);
}

RegularFile::~RegularFile() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

}   // namespace drawpoint
