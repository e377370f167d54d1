#include "drawpoint/pipeline/storage/file_reader.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drawpoint {

namespace detail {

const int open_for_reading = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

void fail_read(const char* what, const char* path, int error) {
    throw std::filesystem::filesystem_error(what, path, std::error_code(error, std::generic_category()));
}

std::uint64_t size_of_regular(int descriptor, const char* path) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0)
        fail_read("cannot read", path, errno);
    if (S_ISDIR(status.st_mode))
        fail_read("cannot read", path, EISDIR);
    if (!S_ISREG(status.st_mode))
        fail_read("cannot read: not a regular file", path, EINVAL);
    return static_cast<std::uint64_t>(status.st_size);
}

namespace {
constexpr std::uint64_t most_contents = std::uint64_t{1} << 62;
}

std::uint64_t contents_capacity(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t first_capacity = std::uint64_t{1} << 18;
    return std::bit_ceil(std::clamp(bytes, first_capacity, most_contents));
}

void resize_contents(std::vector<std::byte>& contents, std::uint64_t bytes, const char* path) {
    try {
        if (bytes > most_contents)
            throw std::bad_alloc{};
        if (bytes > contents.capacity()) {
            contents.clear();   // nothing of it is worth copying
            contents.reserve(contents_capacity(bytes));
        }
        contents.resize(bytes);
    } catch (const std::exception&) {   // bad_alloc, length_error
        fail_read(("cannot read: no memory for " + std::to_string(bytes) + " bytes").c_str(), path, ENOMEM);
    }
}

}   // namespace detail

namespace {

class OpenFile {
public:
    explicit OpenFile(const char* path) : descriptor_{::open(path, detail::open_for_reading)} {
        if (descriptor_ < 0)
            detail::fail_read("cannot open", path, errno);
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
    read_file_part(file.descriptor(), path, 0, detail::size_of_regular(file.descriptor(), path), contents);
}

void read_file_part(int descriptor, const char* path, std::uint64_t offset, std::uint64_t bytes,
                    std::vector<std::byte>& contents) {
    detail::resize_contents(contents, bytes, path);
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(descriptor, contents.data() + done, bytes - done, static_cast<off_t>(offset + done));
        if (got > 0)
            done += static_cast<std::size_t>(got);
        else if (got == 0)
            detail::fail_read("cannot read: the file shrank meanwhile", path, EIO);
        else if (errno != EINTR)
            detail::fail_read("cannot read", path, errno);
    }
}

}   // namespace drawpoint
