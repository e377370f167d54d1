#include "rig.hpp"

#include <filesystem>
#include <utility>

#include <drawpoint/pipeline/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "work.hpp"

namespace drawpoint::bench {

Rig::Rig(std::string data) : data_{std::move(data)}, turns_per_us_{measure_turns_per_us()} {}

std::shared_ptr<const SampleSource> Rig::pictures() {
    if (!pictures_) {
        const std::filesystem::path folder =
            data_.empty() ? generated_.emplace(64).folder() : std::filesystem::path{data_};
        const auto images = std::make_shared<const ImageFolder>(folder);
        pictures_ = std::make_shared<const ImageRecipe>(images | decode_image | RandomResizedCrop{64, 64} |
                                                        Normalize::imagenet());
    }
    return pictures_;
}

}   // namespace drawpoint::bench
