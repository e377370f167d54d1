#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/loader/sample_source.hpp>

#include "../photos.hpp"
#include "work.hpp"

namespace drawpoint::bench {

/// Real JPEG files, decoded to tensors of 3 x 64 x 64.
struct Pictures {
    std::shared_ptr<const SampleSource> source;
    std::vector<double>
        shares;   ///< what each of the first 256 takes of a core, as a share of their mean; no other is used
};

/// What the runs of one process share: how fast a core is and, once a case asks for them, pictures.
class Rig {
public:
    /// `data`: a folder of class folders of JPEG files; empty: generated ones.
    explicit Rig(std::string data = {}) : data_{std::move(data)} {}

    /// Of `burn`, just now: a host drifts within minutes. Takes 10 ms.
    [[nodiscard]] double turns_per_us() const { return measure_turns_per_us(); }
    /// Makes and times them at the first call: seconds.
    [[nodiscard]] std::shared_ptr<const Pictures> pictures();

private:
    std::string data_;
    std::optional<TemporaryPhotos> generated_;
    std::shared_ptr<const Pictures> pictures_;
};

}   // namespace drawpoint::bench
