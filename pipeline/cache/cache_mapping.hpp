#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace drawpoint {

/// The beginning of a cache file. The index follows: 8 bytes per sample.
struct CacheHeader {
    static constexpr std::uint64_t magic_word = 0x6568636163507264;   // "drPcache"; also identifies the byte order
    static constexpr std::uint64_t this_version = 2;
    std::uint64_t magic = 0, version = 0;
    std::uint64_t fingerprint = 0, samples = 0;
    std::uint64_t bytes = 0;   // size of the file; 0 while it is being made
    std::uint64_t used = 0;    // bytes in use, from the beginning
    std::uint64_t reserved[2] = {};
};
static_assert(sizeof(CacheHeader) == 64);

/// The memory of a cache: a header, the index and the samples. For a cache in a file only header and index are mapped;
/// samples are read and written, because touching a mapped page that somebody has cut off ends the process.
class CacheMapping {
public:
    /// `bytes` of zeros, huge-page aligned; physical memory is taken on first touch. Throws std::system_error.
    explicit CacheMapping(std::uint64_t bytes);
    /// Opens or makes the file described by `like` (except magic and version), locks it, and maps its first `like.used`
    /// bytes. Disk space is allocated in advance, so that no later write can find the disk full. Throws as
    /// SampleCache's constructor.
    CacheMapping(const std::filesystem::path& file, const CacheHeader& like);
    ~CacheMapping();
    CacheMapping(const CacheMapping&) = delete;
    CacheMapping& operator=(const CacheMapping&) = delete;

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }   ///< of memory, or of the file
    /// Fills `to` with the file's bytes from `offset` on; false if that is not possible.
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> to) const noexcept;
    bool write(std::uint64_t offset, std::span<const std::byte> from) const noexcept;
    [[nodiscard]] bool is_cut() const noexcept;   ///< somebody has made the file shorter
    [[nodiscard]] CacheHeader& header() const noexcept { return *reinterpret_cast<CacheHeader*>(data_); }
    [[nodiscard]] bool reused() const noexcept { return reused_; }
    /// Why an existing cache file was not reused; empty if it was, or if there was none.
    [[nodiscard]] const std::string& why_anew() const noexcept { return why_anew_; }

private:
    void map(std::uint64_t bytes);
    void let_go() noexcept;

    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0, mapped_ = 0;
    int descriptor_ = -1;   // of the file: holds the lock
    bool reused_ = false;
    std::string why_anew_;
};

}   // namespace drawpoint
