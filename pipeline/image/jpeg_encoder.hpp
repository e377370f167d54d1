#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <filesystem>
#include <vector>

namespace drawpoint {

/// A 4:2:0 baseline JPEG file of `image`. Throws ImageError with the library's message.
std::vector<std::byte> encode_jpeg(const ImageView& image, int quality);

/// Writes `contents` to `path` so that the name never shows a part of it, whoever else writes to that name at the same
/// time: the last to finish stays. Throws std::filesystem::filesystem_error naming the path; then it has left nothing
/// behind.
void write_whole_file(const std::filesystem::path& path, const std::vector<std::byte>& contents);

}   // namespace drawpoint
