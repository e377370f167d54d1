#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>

#include <drawpoint/pipeline/storage/image_folder.hpp>

namespace drawpoint {

enum class TarCompression : std::uint8_t { none, gzip, zstd };

/// Where and how pack_image_folder() writes.
struct TarPackOptions {
    std::filesystem::path out;                              ///< must not exist, or be an empty folder
    std::uint64_t shard_bytes = std::uint64_t{256} << 20;   ///< at most so long before compression; one sample at least
    TarCompression compression = TarCompression::none;
    std::stop_token stop{};   ///< once asked, the packing ends before the next image, as operation_canceled
};

/// What pack_image_folder() wrote.
struct TarPackSummary {
    std::size_t samples = 0, shards = 0;
    std::uint64_t bytes = 0;   ///< of all shards
};

/// Writes the images that `order` names, in that order, as tar shards that TarShards and WebDataset read:
/// `shard-000000.tar` … with members CLASS/NAME.cls and CLASS/NAME.jpg, an index beside each, and classes.txt. ustar; a
/// name too long for that in a pax header. Equal arguments give equal bytes (compressed ones: with the same zlib or
/// zstd). `out` appears when all is written, under its name, or not at all. Throws std::invalid_argument,
/// std::filesystem::filesystem_error naming the path, std::system_error with operation_canceled.
TarPackSummary pack_image_folder(const ImageFolder& images, std::span<const std::uint64_t> order,
                                 const TarPackOptions& options);

}   // namespace drawpoint
