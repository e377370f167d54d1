#include "pipeline/storage/file_writer.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint {

FileWriter::FileWriter(std::filesystem::path path)
    : path_{std::move(path)}, descriptor_{::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)} {
    if (descriptor_ < 0)
        detail::fail_io("cannot write", path_.c_str(), errno);
}

FileWriter::~FileWriter() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
        if (put > 0)
            bytes = bytes.subspan(static_cast<std::size_t>(put));
        else if (put == 0 || errno != EINTR)
            detail::fail_io("cannot write", path_.c_str(), put == 0 ? EIO : errno);   // 0: rather than for ever
    }
}

void FileWriter::close() {
    if (::close(std::exchange(descriptor_, -1)) != 0)
        detail::fail_io("cannot write", path_.c_str(), errno);
}

}   // namespace drawpoint
