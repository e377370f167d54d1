#pragma once

#include <cstdint>
#include <vector>

namespace drawpoint {

/// The numbers of the cores that the scheduler may run the calling thread on, in order; at least one.
[[nodiscard]] std::vector<std::uint32_t> affinity_mask();

}   // namespace drawpoint
