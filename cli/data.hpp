#pragma once

#include <cstddef>
#include <memory>

#include "cli/options.hpp"
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint::cli {

/// What is trained and validated on.
struct Data {
    std::shared_ptr<const SampleSource> train, valid;   ///< valid: null without validation
    std::unique_ptr<const Sampler> train_sampler, valid_sampler;
    std::size_t classes = 0;
    bool normalizes_on_device = false;   ///< the samples are uint8, for `DeviceOptions::normalize`
};

/// Opens what --data and --valid name. Throws UsageError naming an option, std::invalid_argument or
/// std::filesystem::filesystem_error naming a path, Failure otherwise.
[[nodiscard]] Data open_data(const ProfileOptions&);

}   // namespace drawpoint::cli
