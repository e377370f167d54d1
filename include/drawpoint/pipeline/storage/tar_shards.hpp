#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawpoint {

/// A shard that cannot be used. what() is "FILE: byte OFFSET: what is wrong"; the offset is the archive's own (after
/// decompression), or the file's where the compressed data itself is broken, and then what() says so.
class TarError : public std::runtime_error {
public:
    TarError(const std::string& file, std::uint64_t offset, const std::string& what)
        : std::runtime_error{file + ": byte " + std::to_string(offset) + ": " + what}, file_{file}, offset_{offset} {}
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

private:
    std::string file_;
    std::uint64_t offset_;
};

/// Where an image lies in a shard that is not compressed.
struct TarRange {
    const char* path = nullptr;   ///< of the shard; lives as long as the data set
    int descriptor = -1;          ///< of the open shard, or -1: there are too many shards to hold all of them open
    std::uint64_t offset = 0, bytes = 0;
};

/// How shards are read.
struct TarOptions {
    /// Read shards that are not compressed forward too, in large pieces: for disks that are slow to seek.
    bool sequential = false;
    /// Images that the reader of a shard without random access keeps after passing them by, until they are read: at
    /// least the ShardSampler's window and the reads in flight; ≥ 1.
    std::size_t held = 1024;
    /// Shards without random access that are open at once, ≥ 1. More only while that many threads read at once.
    std::size_t open_streams = 4;
};

/// The largest image file, in bytes, that a shard may hold.
inline constexpr std::uint64_t max_tar_image_bytes = std::uint64_t{1} << 28;

/// Labelled images in tar archives, named as WebDataset does: members of one sample follow one another and share their
/// key, the path up to the first dot of its last part; what follows the dot names the field. The image is in jpg, jpeg,
/// png or webp (the first of these that the sample has); the label, 0 to 16777215, in cls, as decimal text, or in json
/// as "label" or "cls". Samples are numbered in the order of shards and members. Archives may be compressed by gzip or
/// zstd; what a file is, is told by its first bytes.
///
/// A data set of files for `shards | decode_jpeg | …`. A cheap value: copies share everything. const calls are
/// thread-safe. Plain shards are read at random; compressed ones forward only, so draw from those with a ShardSampler:
/// a sample behind the place that a shard's reader has reached starts it anew.
class TarShards {
public:
    /// `where`: a shard, a folder of shards (*.tar, *.tar.gz, *.tgz, *.tar.zst), or a pattern as train-{0000..0146}.tar
    /// or {train,more}.tar. Reads every header, or a valid index beside the shard (SHARD.idx, made by
    /// pack_image_folder); of a compressed shard without one all is decompressed once. `classes.txt` beside the first
    /// shard names the classes, one a line. Throws TarError, std::filesystem::filesystem_error or std::invalid_argument
    /// naming the file.
    explicit TarShards(const std::string& where, const TarOptions& options = {});
    ~TarShards();
    TarShards(const TarShards&) noexcept;
    TarShards& operator=(const TarShards&) noexcept;

    [[nodiscard]] std::size_t size() const noexcept;   ///< of images
    /// From classes.txt, else the largest label + 1.
    [[nodiscard]] std::size_t num_classes() const noexcept;
    /// From classes.txt, else the number itself.
    [[nodiscard]] std::string class_name(std::size_t label) const;

    /// Of image `index`, 0 ≤ index < size(). O(log shards).
    [[nodiscard]] std::int64_t label(std::size_t index) const noexcept;
    [[nodiscard]] std::string path(std::size_t index) const;   ///< "SHARD:MEMBER"
    [[nodiscard]] std::uint64_t bytes(std::size_t index) const noexcept;
    /// Reads the image's file into `contents`, whose memory is reused or swapped with what was passed by: allocates
    /// nothing in steady state. Throws TarError, std::filesystem::filesystem_error.
    void read(std::size_t index, std::vector<std::byte>& contents) const;
    /// Whether every image can be read at random, and so location() told.
    [[nodiscard]] bool random_access() const noexcept;
    /// Where image `index` lies; offset 0 when its shard is read forward only. Allocates nothing.
    [[nodiscard]] TarRange location(std::size_t index) const noexcept;

    [[nodiscard]] std::vector<std::uint64_t> shard_sizes() const;   ///< images of each shard, what ShardSampler takes
    [[nodiscard]] const std::string& shard_path(std::size_t shard) const;
    [[nodiscard]] std::uint64_t shard_bytes(std::size_t shard) const;   ///< of the file
    [[nodiscard]] std::size_t indexed_shards() const noexcept;          ///< whose index file was used
    /// How often a shard was read from its begin. More than shards × epochs: samples were drawn from behind the reader.
    [[nodiscard]] std::uint64_t streams_started() const noexcept;

private:
    struct State;
    std::shared_ptr<const State> state_;
};

/// Whether `where` looks like tar shards: by its name, or a folder with a file of such a name in it.
[[nodiscard]] bool names_tar_shards(const std::string& where);

}   // namespace drawpoint
