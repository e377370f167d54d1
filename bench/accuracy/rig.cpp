#include "rig.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>

#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "work.hpp"

namespace drawpoint::bench {
namespace {

/// Times each picture three times and takes the fastest, which was disturbed the least.
std::vector<double> shares_of(const SampleSource& pictures) {
    const std::unique_ptr<WorkerScratch> scratch = pictures.make_scratch();
    std::vector<std::byte> data(pictures.layout().bytes());
    std::int64_t target = 0;
    constexpr std::size_t most = 256;
    std::vector<double> fastest_us(std::min(pictures.size(), most), std::numeric_limits<double>::infinity());
    for (int time = 0; time < 3; ++time)
        for (std::size_t index = 0; index < fastest_us.size(); ++index) {
            SampleTask task{.index = index, .data = data, .target = &target};
            const double begin_us = thread_cpu_us();
            pictures.fill(task, *scratch);
            fastest_us[index] = std::min(fastest_us[index], thread_cpu_us() - begin_us);
        }
    const double mean_us =
        std::accumulate(fastest_us.begin(), fastest_us.end(), 0.0) / static_cast<double>(fastest_us.size());
    for (double& us : fastest_us)
        us /= mean_us;
    return fastest_us;
}

}   // namespace

std::shared_ptr<const Pictures> Rig::pictures() {
    if (!pictures_) {
        const std::filesystem::path folder =
            data_.empty() ? generated_.emplace(64, ImageSize{320, 240}).folder() : std::filesystem::path{data_};
        const auto images = std::make_shared<const ImageFolder>(folder);
        const auto source = std::make_shared<const ImageRecipe>(images | decode_image | RandomResizedCrop{64, 64} |
                                                                Normalize::imagenet());
        pictures_ = std::make_shared<const Pictures>(source, shares_of(*source));
    }
    return pictures_;
}

}   // namespace drawpoint::bench
