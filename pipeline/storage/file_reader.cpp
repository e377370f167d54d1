#include "drawpoint/pipeline/storage/file_reader.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drawpoint {
namespace {

constexpr std::size_t first_capacity = std::size_t{1} << 18;

[[noreturn]] void fail(const char* what, const char* path, int error) {
    throw std::filesystem::filesystem_error(what, path, std::error_code(error, std::generic_category()));
}

class OpenFile {
public:
    // O_NONBLOCK: a pipe without a writer must not hold the thread before fstat can refuse it.
    explicit OpenFile(const char* path) : descriptor_{::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)} {
        if (descriptor_ < 0)
            fail("cannot open", path, errno);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() { ::close(descriptor_); }

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

}   // namespace

void read_file(const char* path, std::vector<std::byte>& contents) {
    const OpenFile file{path};
    struct stat status{};
    if (::fstat(file.descriptor(), &status) != 0)
        fail("cannot read", path, errno);
    if (S_ISDIR(status.st_mode))
        fail("cannot read", path, EISDIR);
    if (!S_ISREG(status.st_mode))
        fail("cannot read: not a regular file", path, EINVAL);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > contents.capacity())
        contents.reserve(std::bit_ceil(std::max(size, first_capacity)));
    contents.resize(size);
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got = ::pread(file.descriptor(), contents.data() + done, size - done, static_cast<off_t>(done));
        if (got > 0)
            done += static_cast<std::size_t>(got);
        else if (got == 0)
            fail("cannot read: the file shrank meanwhile", path, EIO);
        else if (errno != EINTR)
            fail("cannot read", path, errno);
    }
}

}   // namespace drawpoint
