#include <drawpoint/pipeline/storage/file_reader.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <string>

#include <unistd.h>

#include "pipeline/storage/regular_file.hpp"

namespace drawpoint {

namespace detail {

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
        fail_io(("cannot read: no memory for " + std::to_string(bytes) + " bytes").c_str(), path, ENOMEM);
    }
}

}   // namespace detail

void read_file(const char* path, std::vector<std::byte>& contents) {
    const RegularFile file{path};
    read_file_part(file.descriptor(), path, 0, file.size(), contents);
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
            detail::fail_io("cannot read: the file shrank meanwhile", path, EIO);
        else if (errno != EINTR)
            detail::fail_io("cannot read", path, errno);
    }
}

}   // namespace drawpoint
