#include "decode_photos.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

namespace drawpoint::bench {

std::vector<Photo> load_photos(const std::filesystem::path& folder, std::size_t most) {
    const ImageFolder data{folder};
    std::vector<Photo> photos;
    JpegDecoder decoder;
    const std::size_t count = std::min(most, data.size());
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = i * data.size() / count;
        Photo& photo = photos.emplace_back();
        read_file(data.path(index), photo.file);
        try {
            decoder.open(photo.file);
        } catch (const std::exception& error) {
            throw std::runtime_error{std::string{data.path(index)} + ": " + error.what()};
        }
        CounterRng random{42, 0, index};
        photo.crop = random_resized_crop(decoder.size(), {}, random);
        photo.flip = random.uniform() < 0.5;
    }
    return photos;
}

}   // namespace drawpoint::bench
