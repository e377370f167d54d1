#pragma once

#include <cstdint>
#include <span>

#include "workload.hpp"

namespace drawpoint::bench {

/// The rows of the plan's file rows.f32 in memory, shared by all contenders.
class RowsFile {
public:
    explicit RowsFile(const Workload&);
    ~RowsFile();
    RowsFile(const RowsFile&) = delete;
    RowsFile& operator=(const RowsFile&) = delete;

    [[nodiscard]] const float* row(std::uint64_t index) const noexcept { return rows_.data() + index * values_; }
    [[nodiscard]] std::span<const float> all() const noexcept { return rows_; }

private:
    std::span<const float> rows_;
    std::size_t values_;
};

}   // namespace drawpoint::bench
