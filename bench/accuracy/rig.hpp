#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "../photos.hpp"
#include "work.hpp"

namespace drawpoint::bench {

/// Real JPEG files, decoded to tensors of 3 x 64 x 64.
struct Pictures {
    std::shared_ptr<const SampleSource> source;
    /// core time of each of the first 256 pictures, relative to their mean; only these are used
    std::vector<double> shares;
};

/// What the runs of one process share: the speed of a core and, once a case needs them, pictures.
class Rig {
public:
    /// `data`: a folder with a folder of JPEG files per class; empty: generated pictures.
    explicit Rig(std::string data = {}, double turns_per_us = measure_turns_per_us())
        : data_{std::move(data)}, turns_per_us_{turns_per_us} {}

    /// What a microsecond of work is: the same for all runs, so that they do the same work. A host's speed may change
    /// by a fifth from one moment to the next, and a run that measured it for itself would have the noise twice.
    [[nodiscard]] double turns_per_us() const noexcept { return turns_per_us_; }
    /// Makes and times the pictures on the first call, which takes seconds.
    [[nodiscard]] std::shared_ptr<const Pictures> pictures();

private:
    std::string data_;
    double turns_per_us_;
    std::optional<TemporaryPhotos> generated_;
    std::shared_ptr<const Pictures> pictures_;
};

}   // namespace drawpoint::bench
