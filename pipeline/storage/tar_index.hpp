#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/storage/tar_input.hpp"

namespace drawpoint {

/// Places of the images of one shard, in the archive's order.
struct TarIndex {
    std::vector<std::uint64_t> offsets;   ///< of each image's contents in the archive (after decompression)
    std::vector<std::uint64_t> bytes;
    std::vector<std::int64_t> labels;
    std::vector<std::uint64_t> name_ends;   ///< end of each image's member name in `names`
    std::string names;
    std::uint64_t file_bytes = 0;   ///< size of the shard's file; modified_ns is its modification time
    std::int64_t modified_ns = 0;
    TarCompression compression = TarCompression::none;
    bool from_file = false;   ///< read from an index file

    [[nodiscard]] std::size_t size() const noexcept { return offsets.size(); }
    [[nodiscard]] std::string_view name(std::size_t sample) const noexcept {
        const std::uint64_t begin = sample == 0 ? 0 : name_ends[sample - 1];
        return std::string_view{names}.substr(begin, name_ends[sample] - begin);
    }
    void add(std::uint64_t offset, std::uint64_t image_bytes, std::int64_t label, std::string_view member);
};

/// The largest label of a data set: per-class counters take memory in proportion to it.
inline constexpr std::int64_t largest_label = (std::int64_t{1} << 24) - 1;

/// A member name split as WebDataset does: the path up to the first dot of its last component, and the rest in lower
/// case. nullopt if the member belongs to no sample (hidden, without a dot, __meta__).
struct TarKey {
    std::string_view key;
    std::string field;
};
[[nodiscard]] std::optional<TarKey> tar_key(std::string_view member);

/// Reads headers and labels of the archive that `input` has just opened. Throws TarError.
[[nodiscard]] TarIndex scan_tar(TarInput& input);

/// The index of the shard that `input` has just opened: from its index file if that is valid, else by scan_tar().
[[nodiscard]] TarIndex index_of_tar(TarInput& input);

/// Writes the index file `path`. Throws std::filesystem::filesystem_error.
void write_tar_index(const TarIndex& index, const std::string& path);

/// The name of a shard's index file.
[[nodiscard]] inline std::string tar_index_path(const std::string& shard) { return shard + ".idx"; }

}   // namespace drawpoint
