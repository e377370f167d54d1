#include "instrumentation/trace/trace_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "instrumentation/trace/trace_block.hpp"

namespace drawpoint {

namespace {
constexpr std::chrono::milliseconds block_time{800};   // with the writer's pauses, a killed run loses at most a second
constexpr std::chrono::milliseconds patience{2000};    // with a pipe that takes nothing
}   // namespace

TraceFile::TraceFile(const std::filesystem::path& path, Place place)
    : path_{path}, absolute_{std::filesystem::absolute(path)}, place_{place} {
    if (place == Place::when_asked) {
        replaced_.emplace(path);
        fd_ = replaced_->number();
        (void)::flock(fd_, LOCK_EX | LOCK_NB);
        return;
    }
    const int there = open_locked();
    struct stat status{};
    if (::fstat(there, &status) == 0 && !S_ISREG(status.st_mode)) {
        fd_ = there;
        return;
    }
    before_ = there;
    try {
        replaced_.emplace(path);
    } catch (...) {
        end();
        throw;
    }
    fd_ = replaced_->number();
    (void)::flock(fd_, LOCK_EX | LOCK_NB);
}

int TraceFile::open_locked() {
    const auto fail = [this](int error, const char* why = "") -> int {
        throw std::system_error(error, std::generic_category(), path_.string() + why);
    };
    for (;;) {
        constexpr int how = O_WRONLY | O_NONBLOCK | O_CLOEXEC;
        int opened = ::open(path_.c_str(), how | O_CREAT | O_EXCL, 0666);
        made_before_ = opened >= 0;
        if (opened < 0 && errno == EEXIST)
            opened = ::open(path_.c_str(), how | O_CREAT, 0666);   // O_CREAT: the target of a link may be missing
        if (opened < 0)
            return fail(errno);
        struct stat mine{}, named{};
        (void)::fstat(opened, &mine);
        if (!S_ISREG(mine.st_mode))
            return opened;
        // A file system may have no locks. Whoever replaces the file holds its lock until then.
        if (::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            ::close(opened);
            return fail(EBUSY, ": another recording is being written to it");
        }
        if (::stat(path_.c_str(), &named) == 0 && named.st_dev == mine.st_dev && named.st_ino == mine.st_ino)
            return opened;
        ::close(opened);   // it was replaced in the meantime
    }
}

TraceFile::~TraceFile() { end(); }

bool TraceFile::is_in_place() const noexcept {
    struct stat mine{}, named{};
    return replaced_ && ::fstat(fd_, &mine) == 0 && ::stat(absolute_.c_str(), &named) == 0 &&
           named.st_dev == mine.st_dev && named.st_ino == mine.st_ino;
}

void TraceFile::end() noexcept {
    // Unlocked by hand, because a forked child may keep the same open file.
    if (fd_ >= 0)
        (void)::flock(fd_, LOCK_UN);
    if (!replaced_ && fd_ >= 0)
        ::close(fd_);
    fd_ = -1;
    replaced_.reset();
    if (before_ >= 0 && made_before_)
        (void)::unlink(absolute_.c_str());
    close_before();
}

void TraceFile::close_before() noexcept {
    if (before_ < 0)
        return;
    (void)::flock(before_, LOCK_UN);
    ::close(std::exchange(before_, -1));
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
    if (header.offset == 0 && place_ == Place::at_first_block)
        replace();
}

void TraceFile::take_place() {
    if (!block_.empty())
        end_block();
    replace();
}

void TraceFile::replace() {
    if (!replaced_)   // a pipe, or writing failed
        return;
    if (const int error = replaced_->commit(); error != 0)
        return end_early(what(error));
    close_before();
}

void TraceFile::end_early(std::string error) {
    error_ = std::move(error);
    end();
}

void TraceFile::write_all(std::string_view bytes) {
    while (fd_ >= 0 && !bytes.empty()) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written >= 0) {
            bytes_ += static_cast<std::uint64_t>(written);
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
            if (::poll(&room, 1, static_cast<int>(patience.count())) == 0)
                end_early(what(ETIMEDOUT));
        } else if (errno != EINTR) {
            end_early(what(errno));
        }
    }
}

void TraceFile::close() {
    if (!block_.empty())
        end_block();
    // Closing any descriptor of the file says what of the data could not be stored.
    if (const int again = fd_ >= 0 ? ::fcntl(fd_, F_DUPFD_CLOEXEC, 0) : -1; again >= 0 && ::close(again) != 0)
        error_ = what(errno);
    end();
}

std::string TraceFile::what(int error) const { return path_.string() + ": " + std::generic_category().message(error); }

}   // namespace drawpoint
