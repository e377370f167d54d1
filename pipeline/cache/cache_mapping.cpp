#include "pipeline/cache/cache_mapping.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace drawpoint {

namespace {

constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;

std::error_code system_code(int error) { return {error, std::generic_category()}; }

[[noreturn]] void fail(const char* what, const std::filesystem::path& file, int error) {
    throw std::filesystem::filesystem_error{std::string{"cached: "} + what, file, system_code(error)};
}

class OpenFile {
public:
    explicit OpenFile(const std::filesystem::path& file)
        : descriptor_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)} {
        if (descriptor_ < 0)
            fail("cannot open", file, errno);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }
    [[nodiscard]] int get() const noexcept { return descriptor_; }
    [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

private:
    int descriptor_;
};

/// Why a cache with this header, in a file of `bytes`, is not the wanted one; empty: it is.
std::string mismatch(const CacheHeader& found, std::uint64_t bytes, const CacheHeader& wanted) {
    if (found.version != CacheHeader::this_version)
        return "it is of another version of drawpoint";
    if (found.bytes == 0 || found.bytes > bytes)
        return "it is incomplete";
    if (found.fingerprint != wanted.fingerprint || found.samples != wanted.samples)
        return "the data set, the recipe or the tag is not the one it was made for";
    if (found.used < wanted.used || found.used > found.bytes || found.used % 64 != 0)
        return "it is damaged";
    if (found.used > wanted.bytes)
        return "it holds more than the budget of " + std::to_string(wanted.bytes) + " bytes";
    return {};
}

/// Takes the space ahead: a full disk is told at once, and not sample by sample. In pieces, since a file system may
/// undo what it had taken when a signal comes.
void take_space(int descriptor, const std::filesystem::path& file, std::uint64_t bytes) {
    constexpr std::uint64_t piece = 4u << 20;
    int error = 0;
    for (std::uint64_t at = 0; at < bytes && (error == 0 || error == EINTR); at += error == 0 ? piece : 0)
        error = ::posix_fallocate(descriptor, static_cast<off_t>(at), static_cast<off_t>(std::min(piece, bytes - at)));
    if (error != 0)
        fail(("cannot take " + std::to_string(bytes) + " bytes for").c_str(), file, error);
}

}   // namespace

CacheMapping::CacheMapping(std::uint64_t bytes) : bytes_{bytes} { map(bytes); }

void CacheMapping::map(std::uint64_t bytes) {
    const std::uint64_t pages = (bytes + 4095) / 4096 * 4096;
    void* const whole =
        ::mmap(nullptr, pages + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED)
        throw std::system_error{system_code(errno), "cached: cannot reserve " + std::to_string(bytes) + " bytes"};
    auto* const begin = static_cast<std::byte*>(whole);
    const std::uint64_t before = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
    if (before != 0)
        ::munmap(begin, before);
    data_ = begin + before;
    ::munmap(data_ + pages, huge_page - before);
    mapped_ = pages;
    ::madvise(data_, pages, MADV_HUGEPAGE);   // refused by some kernels: small pages do as well
}

CacheMapping::CacheMapping(const std::filesystem::path& path, const CacheHeader& like) : bytes_{like.bytes} {
    CacheHeader wanted = like;
    wanted.magic = CacheHeader::magic_word;
    wanted.version = CacheHeader::this_version;
    OpenFile file{path};
    struct stat status{};
    if (::fstat(file.get(), &status) != 0)
        fail("cannot read", path, errno);
    if (!S_ISREG(status.st_mode))
        fail("not a regular file", path, EINVAL);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            throw std::invalid_argument{"cached: " + path.string() +
                                        " is in use by another recipe or process; each needs a file of its own"};
        fail("cannot lock", path, errno);
    }
    if (::fstat(file.get(), &status) != 0)   // again: nobody else changes it from here on
        fail("cannot read", path, errno);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    CacheHeader found;
    if (size > 0) {
        const ssize_t got = ::pread(file.get(), &found, sizeof found, 0);
        if (got < 0)
            fail("cannot read", path, errno);
        if (got < static_cast<ssize_t>(sizeof found) || found.magic != CacheHeader::magic_word)
            throw std::invalid_argument{"cached: " + path.string() +
                                        " is not a cache file; it is left as it is, name another"};
        why_anew_ = mismatch(found, size, wanted);
        reused_ = why_anew_.empty();
    }
    if (reused_) {
        if (size > wanted.bytes && ::ftruncate(file.get(), static_cast<off_t>(wanted.bytes)) != 0)
            fail("cannot shorten", path, errno);
    } else {
        // In this order, so that whenever it is cut short the file is recognised, as ours and as incomplete.
        CacheHeader begun = wanted;
        begun.bytes = 0;
        if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), &begun, sizeof begun, 0) != sizeof begun)
            fail("cannot write", path, errno);
    }
    take_space(file.get(), path, wanted.bytes);
    map(wanted.used);
    descriptor_ = file.release();
    if (reused_ && !read(0, {data_, wanted.used})) {
        const int error = errno;
        let_go();
        fail("cannot read", path, error);
    }
    header() = reused_ ? found : wanted;   // as it was checked: it may have been read again as something else
    header().bytes = wanted.bytes;
    if (!write(0, std::as_bytes(std::span{&header(), 1}))) {
        const int error = errno;
        let_go();
        fail("cannot write", path, error);
    }
}

bool CacheMapping::read(std::uint64_t offset, std::span<std::byte> to) const noexcept {
    while (!to.empty()) {
        const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
        if (got == 0)
            errno = EIO;   // it ends here
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            to = to.subspan(static_cast<std::size_t>(got));
            offset += static_cast<std::uint64_t>(got);
        }
    }
    return true;
}

bool CacheMapping::write(std::uint64_t offset, std::span<const std::byte> from) const noexcept {
    while (!from.empty()) {
        const ssize_t put = ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(offset));
        if (put == 0)
            errno = EIO;   // rather than for ever
        if (put == 0 || (put < 0 && errno != EINTR))
            return false;
        if (put > 0) {
            from = from.subspan(static_cast<std::size_t>(put));
            offset += static_cast<std::uint64_t>(put);
        }
    }
    return true;
}

bool CacheMapping::is_cut() const noexcept {
    struct stat status{};
    return ::fstat(descriptor_, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < bytes_;
}

CacheMapping::~CacheMapping() { let_go(); }

void CacheMapping::let_go() noexcept {
    ::munmap(data_, mapped_);
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

}   // namespace drawpoint
