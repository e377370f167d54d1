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
    std::filesystem::path out;   ///< a path where nothing exists, or an empty folder, which is replaced
    /// Most bytes of a shard before compression, ≥ 1. A sample larger than that gets a shard of its own.
    std::uint64_t shard_bytes = std::uint64_t{256} << 20;
    TarCompression compression = TarCompression::none;
    std::stop_token stop{};   ///< once requested, packing ends before the next image with operation_canceled
};

/// Result of pack_image_folder().
struct TarPackSummary {
    std::size_t samples = 0, shards = 0;
    std::uint64_t bytes = 0;   ///< total size of the shard files, compressed; without index files and classes.txt
};

/// Packs the images with the indices in `order`, in that order, into tar shards that TarShards and WebDataset read. The
/// folder `out` gets
/// - `shard-000000.tar` …, or `.tar.gz`, `.tar.zst`; the two members of a sample are CLASS/NAME.cls, its label as
///   decimal text, and CLASS/NAME.EXT, the image file unchanged. EXT is the file's extension in lower case. NAME is its
///   name without folders below the class and without extension, dots as `_`; a name already used in the class gets
///   `-2`, `-3` … appended. The format is ustar; a name too long for it goes into a pax header;
/// - `shard-000000.tar.idx` …, an index of each shard, which lets TarShards open it without reading it;
/// - `classes.txt`, the names of all classes, one per line, in the order of labels.
///
/// Equal images and arguments give equal shards (with compression: for the same zlib or zstd version). Everything is
/// written to a hidden folder `.OUT-PID-N` beside `out`, which is renamed to `out` in the end, and removed if packing
/// fails or is stopped; only a killed process leaves it behind. Folders above `out` are created.
///
/// Runs on the calling thread and blocks. Holds one image file, and the names of all samples, in memory. Throws
/// - std::invalid_argument for an `out` that is not as above, a shard_bytes of 0, an empty `order` or an index in it
///   beyond the images, an image file above max_tar_image_bytes, and a class name with a line end;
/// - std::filesystem::filesystem_error naming the path;
/// - std::system_error with operation_canceled after `stop`.
TarPackSummary pack_image_folder(const ImageFolder& images, std::span<const std::uint64_t> order,
                                 const TarPackOptions& options);

}   // namespace drawpoint
