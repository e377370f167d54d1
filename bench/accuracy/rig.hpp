#pragma once

#include <memory>
#include <optional>
#include <string>

#include <drawpoint/pipeline/sample_source.hpp>

#include "../photos.hpp"

namespace drawpoint::bench {

/// What the runs of one process share: the core's speed and, once a case asks for them, pictures.
class Rig {
public:
    /// `data`: a folder of class folders of JPEG files; empty: generated ones. Measures the core: 20 ms.
    explicit Rig(std::string data = {});

    [[nodiscard]] double turns_per_us() const noexcept { return turns_per_us_; }
    /// Real pictures to tensors of 3 x 64 x 64. Makes them at the first call: seconds.
    [[nodiscard]] std::shared_ptr<const SampleSource> pictures();

private:
    std::string data_;
    double turns_per_us_;
    std::optional<TemporaryPhotos> generated_;
    std::shared_ptr<const SampleSource> pictures_;
};

}   // namespace drawpoint::bench
