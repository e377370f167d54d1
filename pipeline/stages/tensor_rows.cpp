#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "pipeline/stages/copy_rows.hpp"

namespace drawpoint {

TensorRows::TensorRows(std::span<const std::byte> data, const SampleLayout& layout,
                       std::span<const std::int64_t> targets, std::shared_ptr<const void> owner)
    : data_{data}, layout_{layout}, targets_{targets}, owner_{std::move(owner)} {
    const std::size_t row = layout.bytes();
    if (row == 0 || data.size() % row != 0)
        throw std::invalid_argument{
            fmt::format("TensorRows: data must be rows of {} bytes, got {} bytes", row, data.size())};
    size_ = data.size() / row;
    if (!targets.empty() && targets.size() != size_)
        throw std::invalid_argument{
            fmt::format("TensorRows: targets must be {} or none, got {}", size_, targets.size())};
}

std::unique_ptr<WorkerScratch> TensorRows::make_scratch() const { return std::make_unique<WorkerScratch>(); }

void TensorRows::fill(SampleTask& task, WorkerScratch& scratch) const {
    StageTimer timer{task};
    timer.begin();
    SampleRun run{.indices = {&task.index, 1}, .data = task.data.data(), .targets = task.target};
    fill_run(run, scratch);
}

void TensorRows::fill_run(SampleRun& run, WorkerScratch&) const {
    const std::size_t row = layout_.bytes();
    copy_rows(data_.data(), row, row, run.indices, run.data);
    std::int64_t* target = run.targets;
    if (targets_.empty())
        std::fill_n(target, run.indices.size(), 0);
    else
        for (const std::uint64_t index : run.indices)
            *target++ = targets_[static_cast<std::size_t>(index)];
}

}   // namespace drawpoint
