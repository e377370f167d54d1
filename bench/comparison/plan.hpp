#pragma once

#include <cstddef>

#include "bench/contenders/workload.hpp"

namespace drawpoint::bench {

/// Sets `workload.items`, and writes into the folder `workload.plan` what contenders need to do the same work in each
/// of `epochs` epochs, in formats that Python reads, too:
///   plan.json (`epochs`, `items`; `paths` and `labels` of photographs),
///   order.i64 [epochs, items] (not for tiny),
///   crops.i32 [epochs, items of the data, 5] (x, y, width, height, flip), and rows.f32 [items, values].
/// Throws std::runtime_error naming a file that cannot be read.
void write_plan(Workload& workload, std::size_t epochs);

}   // namespace drawpoint::bench
