#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "../photos.hpp"

namespace drawpoint::bench {

/// Real JPEG files, decoded to tensors of 3 x 64 x 64.
struct Pictures {
    std::shared_ptr<const SampleSource> source;
    /// core time of each of the first 256 pictures, relative to their mean; only these are used
    std::vector<double> shares;
};

/// What the runs of one process share: pictures, once a case needs them.
class Rig {
public:
    /// `data`: a folder with a folder of JPEG files per class; empty: generated pictures.
    explicit Rig(std::string data = {}) : data_{std::move(data)} {}

    /// Makes and times the pictures on the first call, which takes seconds.
    [[nodiscard]] std::shared_ptr<const Pictures> pictures();

private:
    std::string data_;
    std::optional<TemporaryPhotos> generated_;
    std::shared_ptr<const Pictures> pictures_;
};

}   // namespace drawpoint::bench
