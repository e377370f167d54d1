#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace drawpoint {

/// Options of cut_photo_crops().
struct PhotoCropOptions {
    /// Folder with photographs (.jpg, .jpeg), read with all folders below it; dot files are left out.
    std::filesystem::path from;
    /// Folder to write train/PHOTO/0000.jpg … and valid/PHOTO/0000.jpg … to; must not lie in `from`.
    std::filesystem::path out;
    std::uint32_t per_image = 80;   ///< training crops of each photograph, at least 1
    ImageSize size{500, 375};       ///< of every crop, pixels
    int quality = 90;               ///< JPEG quality, 1 to 100
    std::uint64_t seed = 7;         ///< equal options and photographs give equal files
    double held_out = 0.2;          ///< share of crops, and about of each photograph, for validation; in [0, 0.5]
};

/// A file that was left out, and why.
struct RefusedFile {
    std::string path, reason;
};

/// Result of cut_photo_crops().
struct PhotoCropSummary {
    std::size_t photographs = 0;   ///< photographs used; each is a class
    std::size_t training_crops = 0, held_out_crops = 0;
    std::uint64_t bytes = 0;   ///< total size of all crops
    std::vector<RefusedFile> skipped;
};

/// Cuts a labelled data set out of photographs: the label of a crop is the photograph it comes from. Held-out crops
/// come from a band along one side of each photograph and training crops from the rest, so the two share no pixel.
/// Windows of random place and scale are resized down to `size`, never up. A file appears under its name only when
/// complete. Files of an earlier run are replaced; class folders of photographs that are not in `from` are refused.
/// Takes about 6 bytes of memory per pixel of a photograph. Throws std::invalid_argument naming the option,
/// std::filesystem::filesystem_error naming the path.
PhotoCropSummary cut_photo_crops(const PhotoCropOptions& options);

/// Writes `count` generated pictures, each with colours and textures of its own, as a substitute for photographs:
/// `out`/generated-00.jpg …, 1600x1200 pixels. Equal arguments give equal files. Throws
/// std::filesystem::filesystem_error naming the path, std::invalid_argument for a count of 0.
void make_generated_photos(const std::filesystem::path& out, std::uint32_t count, std::uint64_t seed);

}   // namespace drawpoint
