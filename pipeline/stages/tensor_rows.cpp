#include <drawpoint/pipeline/tensor_rows.hpp>

#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/stage_timer.hpp>

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

void TensorRows::fill(SampleTask& task, WorkerScratch&) const {
    StageTimer timer{task};
    timer.begin();
    const std::size_t index = static_cast<std::size_t>(task.index), row = task.data.size();
    std::memcpy(task.data.data(), data_.data() + index * row, row);
    *task.target = targets_.empty() ? 0 : targets_[index];
}

}   // namespace drawpoint
