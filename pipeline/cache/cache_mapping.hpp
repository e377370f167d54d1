#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace drawpoint {

/// What a cache file begins with. The index follows: 8 bytes a sample.
struct CacheHeader {
    static constexpr std::uint64_t magic_word = 0x6568636163507264;   // "drPcache", which also tells the byte order
    static constexpr std::uint64_t this_version = 2;
    std::uint64_t magic = 0, version = 0;
    std::uint64_t fingerprint = 0, samples = 0;
    std::uint64_t bytes = 0;   // of the file; 0 while it is being made
    std::uint64_t used = 0;    // of it, from its begin
    std::uint64_t reserved[2] = {};
};
static_assert(sizeof(CacheHeader) == 64);

/// The memory of a cache: a header, and what follows it. Of a cache in a file, header and index alone: samples are read
/// and written, since a mapped page that somebody cuts off ends the process that touches it.
class CacheMapping {
public:
    /// `bytes` of zeros, huge-page aligned; physical memory is taken when touched. Throws std::system_error.
    explicit CacheMapping(std::uint64_t bytes);
    /// A file that `like` describes, but for magic and version, locked against everybody else, with `like.used` bytes
    /// of it in memory. Space is taken ahead, so that no write can find the disk full. Throws as SampleCache's
    /// constructor.
    CacheMapping(const std::filesystem::path& file, const CacheHeader& like);
    ~CacheMapping();
    CacheMapping(const CacheMapping&) = delete;
    CacheMapping& operator=(const CacheMapping&) = delete;

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }   ///< of memory, or of the file
    /// All bytes of the file from `offset` on, or false.
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> to) const noexcept;
    bool write(std::uint64_t offset, std::span<const std::byte> from) const noexcept;
    [[nodiscard]] bool is_cut() const noexcept;   ///< somebody has made the file shorter
    [[nodiscard]] CacheHeader& header() const noexcept { return *reinterpret_cast<CacheHeader*>(data_); }
    [[nodiscard]] bool reused() const noexcept { return reused_; }
    /// Why an existing cache was not used; empty: it was, or there was none.
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
