#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>

#include <drawpoint/pipeline/storage/image_folder.hpp>

namespace drawpoint {

enum class TarCompression : std::uint8_t { none, gzip, zstd };

/// Options of pack_image_folder().
struct TarPackOptions {
    std::filesystem::path out;                              ///< must not exist, or be an empty folder
    std::uint64_t shard_bytes = std::uint64_t{256} << 20;   ///< limit before compression; one sample may exceed it
    TarCompression compression = TarCompression::none;
    std::stop_token stop{};   ///< once requested, packing ends before the next image with operation_canceled
};

/// Result of pack_image_folder().
struct TarPackSummary {
    std::size_t samples = 0, shards = 0;
    std::uint64_t bytes = 0;   ///< total size of all shards
};

/// Writes the images listed in `order`, in that order, as tar shards that TarShards and WebDataset read:
/// `shard-000000.tar` … with members CLASS/NAME.cls and CLASS/NAME.jpg, an index file for each shard, and
/// classes.txt. The format is ustar; a name too long for it goes into a pax header. Equal arguments give equal bytes
/// (with compression: for the same zlib or zstd version). `out` appears only when everything is written. Throws
/// std::invalid_argument, std::filesystem::filesystem_error naming the path, std::system_error with operation_canceled.
TarPackSummary pack_image_folder(const ImageFolder& images, std::span<const std::uint64_t> order,
                                 const TarPackOptions& options);

}   // namespace drawpoint
