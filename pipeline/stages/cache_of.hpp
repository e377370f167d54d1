#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <drawpoint/pipeline/stages/cached.hpp>

#include "pipeline/stages/fingerprint.hpp"

namespace drawpoint::detail {

/// The cache that `stage` asks for, for a data set of `size` samples. For one in a file `add_samples` adds what they
/// depend on to the fingerprint, and says whether all of them come from files.
[[nodiscard]] std::unique_ptr<SampleCache> cache_of(const Cached& stage, std::size_t size,
                                                    const std::function<bool(Fingerprint&)>& add_samples);

/// Why a cache may not stand behind `random_part`.
[[nodiscard]] std::string refused_by_cache(std::string_view random_part);

}   // namespace drawpoint::detail
