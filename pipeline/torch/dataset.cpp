#include <drawpoint/pipeline/torch/dataset.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/pipeline/stage_timer.hpp>

#include "pipeline/torch/scalar_types.hpp"

namespace drawpoint {
namespace {

struct TorchScratch final : WorkerScratch {
    explicit TorchScratch(std::unique_ptr<detail::TorchExamples> copy) : examples{std::move(copy)} {}
    std::unique_ptr<detail::TorchExamples> examples;
};

SampleLayout layout_of(const at::Tensor& data) {
    SampleLayout layout;
    if (data.dim() > static_cast<std::int64_t>(layout.shape.size()) || data.numel() == 0)
        throw std::invalid_argument{fmt::format(
            "from_torch: an example has 1 to 4 dimensions, none empty, got shape [{}]", fmt::join(data.sizes(), ", "))};
    const auto types = {ScalarType::float32, ScalarType::uint8, ScalarType::int64};
    const auto* type = std::ranges::find(types, data.scalar_type(), torch_type);
    if (type == types.end())
        throw std::invalid_argument{fmt::format("from_torch: examples must be float32, uint8 or int64, got {}",
                                                c10::toString(data.scalar_type()))};
    layout.type = *type;
    layout.rank = static_cast<std::uint8_t>(data.dim());
    std::ranges::copy(data.sizes(), layout.shape.begin());
    return layout;
}

std::int64_t whole_number(const at::Tensor& target) {
    if (!target.defined())
        return 0;
    if (target.numel() != 1 || target.is_floating_point())
        throw std::invalid_argument{fmt::format("from_torch: a target must be one whole number, got {} of {} values",
                                                c10::toString(target.scalar_type()), target.numel())};
    return target.item<std::int64_t>();
}

}   // namespace

TorchDataset::TorchDataset(std::unique_ptr<detail::TorchExamples> examples) : examples_{std::move(examples)} {
    const std::optional<std::size_t> size = examples_->size();
    if (!size || *size == 0)
        throw std::invalid_argument{"from_torch: the dataset must have a known size of at least 1"};
    size_ = *size;
    const at::NoGradGuard no_grad;
    const auto [data, target] = examples_->clone()->get(0);
    layout_ = layout_of(data);
    (void)whole_number(target);
}

std::unique_ptr<WorkerScratch> TorchDataset::make_scratch() const {
    return std::make_unique<TorchScratch>(examples_->clone());
}

void TorchDataset::fill(SampleTask& task, WorkerScratch& scratch) const {
    StageTimer timer{task};
    timer.begin();
    const at::NoGradGuard no_grad;
    const auto [data, target] = static_cast<TorchScratch&>(scratch).examples->get(static_cast<std::size_t>(task.index));
    if (layout_of(data) != layout_)
        throw std::invalid_argument{fmt::format("from_torch: shape [{}] of {}, but the first example's was [{}]",
                                                fmt::join(data.sizes(), ", "), c10::toString(data.scalar_type()),
                                                fmt::join(std::span{layout_.shape}.first(layout_.rank), ", "))};
    const at::Tensor rows = data.contiguous();
    std::memcpy(task.data.data(), rows.const_data_ptr(), task.data.size());
    *task.target = whole_number(target);
}

}   // namespace drawpoint
