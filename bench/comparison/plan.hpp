#pragma once

#include <cstddef>
#include <filesystem>

#include "bench/contenders/workload.hpp"

namespace drawpoint::bench {

/// A temporary folder, in memory where the system has such a place; the destructor removes it.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Sets `workload.items`, and writes into the folder `workload.plan` what contenders need to do the same work in each
/// of `epochs` epochs, in formats that Python reads, too:
///   plan.json (`epochs`, `items`; `paths` and `labels` of photographs),
///   order.i64 [epochs, items] (not for tiny),
///   crops.i32 [epochs, items of the data, 5] (x, y, width, height, flip), and rows.f32 [items, values].
/// Throws std::runtime_error naming a file that cannot be read.
void write_plan(Workload& workload, std::size_t epochs);

}   // namespace drawpoint::bench
