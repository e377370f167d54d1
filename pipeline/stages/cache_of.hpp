#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <drawpoint/pipeline/stages/cached.hpp>

#include "pipeline/stages/fingerprint.hpp"

namespace drawpoint::detail {

/// Makes the cache that `stage` describes for a data set of `size` samples. For a cache in a file, `add_samples` adds
/// what the samples depend on to the fingerprint, and returns whether all of them come from files.
[[nodiscard]] std::unique_ptr<SampleCache> cache_of(const Cached& stage, std::size_t size,
                                                    const std::function<bool(Fingerprint&)>& add_samples);

/// The error message for a cache behind `random_part`.
[[nodiscard]] std::string refused_by_cache(std::string_view random_part);

}   // namespace drawpoint::detail
