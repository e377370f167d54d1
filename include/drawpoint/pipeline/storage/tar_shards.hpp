#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawpoint {

/// A shard that cannot be used. what() is "FILE: byte OFFSET: what is wrong". The offset counts bytes of the archive,
/// after decompression; where the compressed data itself is damaged it counts bytes of the file, and what() says so.
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

/// The place of an image in an uncompressed shard.
struct TarRange {
    const char* path = nullptr;   ///< of the shard; valid as long as the data set
    int descriptor = -1;          ///< of the open shard; -1 if there are too many shards to keep all of them open
    std::uint64_t offset = 0, bytes = 0;
};

/// How shards are read.
struct TarOptions {
    /// Read uncompressed shards sequentially too, in large pieces: for disks with slow seeks.
    bool sequential = false;
    /// Images that a sequential reader has passed over and keeps until they are asked for, ≥ 1: at least the
    /// ShardSampler's window plus the reads in flight.
    std::size_t held = 1024;
    /// Sequential readers open at once, ≥ 1; more are opened only while more threads than that read at once.
    std::size_t open_streams = 4;
};

/// The largest image file, in bytes, that a shard may hold.
inline constexpr std::uint64_t max_tar_image_bytes = std::uint64_t{1} << 28;

/// Labelled images in tar archives with WebDataset's names: the members of a sample are adjacent and share their key,
/// the path up to the first dot of its last component; the rest of the name is the field. The image is the first field
/// present of jpg, jpeg, png and webp. The label, 0 to 16777215, is the field cls as decimal text, or "label" or "cls"
/// in the field json. Samples are numbered in the order of shards and members. Archives may be compressed by gzip or
/// zstd, recognised by their first bytes.
///
/// A data set of files for `shards | decode_jpeg | …`. Cheap to copy: copies share everything. const calls are
/// thread-safe. Uncompressed shards are read at random; compressed ones only forward, so draw from those with a
/// ShardSampler: to read a sample behind its position, a reader starts its shard again.
class TarShards {
public:
    /// `where` is a shard, a folder of shards (*.tar, *.tar.gz, *.tgz, *.tar.zst), or a pattern such as
    /// train-{0000..0146}.tar or {train,more}.tar. Reads every member's header, or the shard's index file SHARD.idx
    /// (made by pack_image_folder) if it is valid; a compressed shard without one is decompressed once in full.
    /// `classes.txt` in the first shard's folder names the classes, one per line. Throws TarError,
    /// std::filesystem::filesystem_error or std::invalid_argument naming the file.
    explicit TarShards(const std::string& where, const TarOptions& options = {});
    ~TarShards();
    TarShards(const TarShards&) noexcept;
    TarShards& operator=(const TarShards&) noexcept;

    [[nodiscard]] std::size_t size() const noexcept;   ///< number of images
    /// The number of classes in classes.txt, else the largest label + 1.
    [[nodiscard]] std::size_t num_classes() const noexcept;
    /// The name in classes.txt, else the label as text.
    [[nodiscard]] std::string class_name(std::size_t label) const;

    /// Label of image `index`, 0 ≤ index < size(). O(log shards).
    [[nodiscard]] std::int64_t label(std::size_t index) const noexcept;
    [[nodiscard]] std::string path(std::size_t index) const;   ///< "SHARD:MEMBER"
    [[nodiscard]] std::uint64_t bytes(std::size_t index) const noexcept;
    /// Reads the image's file into `contents`, whose memory is reused, or swapped with that of an image read in
    /// passing: allocates nothing in steady state. Throws TarError, std::filesystem::filesystem_error.
    void read(std::size_t index, std::vector<std::byte>& contents) const;
    /// Whether every image can be read at random, so that location() is valid.
    [[nodiscard]] bool random_access() const noexcept;
    /// Place of image `index`; offset 0 when its shard is read sequentially. Allocates nothing.
    [[nodiscard]] TarRange location(std::size_t index) const noexcept;

    [[nodiscard]] std::vector<std::uint64_t> shard_sizes() const;   ///< images of each shard, for ShardSampler
    [[nodiscard]] const std::string& shard_path(std::size_t shard) const;
    [[nodiscard]] std::uint64_t shard_bytes(std::size_t shard) const;   ///< size of the file
    [[nodiscard]] std::size_t indexed_shards() const noexcept;          ///< shards whose index file was used
    /// How often a sequential reader started a shard. More than shards × epochs: samples were drawn from behind a
    /// reader's position.
    [[nodiscard]] std::uint64_t streams_started() const noexcept;

private:
    struct State;
    std::shared_ptr<const State> state_;
};

/// Whether `where` is named like tar shards, or is a folder that contains a file so named.
[[nodiscard]] bool names_tar_shards(const std::string& where);

}   // namespace drawpoint
