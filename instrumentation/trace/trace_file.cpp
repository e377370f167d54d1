#include "instrumentation/trace/trace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "instrumentation/trace/trace_block.hpp"

namespace drawpoint {

namespace {
constexpr std::chrono::milliseconds block_time{800};   // with the writer's pauses, a killed run loses at most a second
}

TraceFile::TraceFile(const std::filesystem::path& path)
    : path_{path}, fd_{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)} {
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), path.string());
}

TraceFile::~TraceFile() {
    if (fd_ >= 0)
        ::close(fd_);
}

void TraceFile::end_block_if_due(std::chrono::steady_clock::time_point now) {
    if (block_.empty())
        return;
    if (!block_begin_)
        block_begin_ = now;
    else if (now - *block_begin_ >= block_time)
        end_block();
}

void TraceFile::end_block() {
    BlockHeader header{.offset = bytes_, .records = records_, .dropped = dropped_, .bytes = block_.size()};
    header.crc32 = header.checksum(block_);
    block_.insert(0, header.encoded());
    write_all(block_);
    block_.clear();
    block_begin_.reset();
}

void TraceFile::write_all(std::string_view bytes) {
    while (fd_ >= 0 && !bytes.empty()) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written >= 0) {
            bytes_ += static_cast<std::uint64_t>(written);
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            fail(errno);
            ::close(fd_);
            fd_ = -1;
        }
    }
}

void TraceFile::close() {
    if (!block_.empty())
        end_block();
    if (fd_ >= 0 && ::close(fd_) != 0)
        fail(errno);
    fd_ = -1;
}

void TraceFile::fail(int error) { error_ = path_.string() + ": " + std::generic_category().message(error); }

}   // namespace drawpoint
