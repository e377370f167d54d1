#pragma once

#include <span>
#include <string>

#include <drawpoint/bench/experiment/experiment.hpp>

namespace drawpoint::bench {

/// One page of HTML that needs nothing from elsewhere: the ratios with their bounds as a picture, and all medians.
[[nodiscard]] std::string experiment_page(const Measurements&, std::span<const Comparison>);

}   // namespace drawpoint::bench
