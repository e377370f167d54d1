#include <drawpoint/pipeline/torch/dataset.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/data/datasets/tensor.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "pipeline/torch/scalar_types.hpp"

namespace drawpoint {
namespace {

struct TorchScratch final : WorkerScratch {
    explicit TorchScratch(std::unique_ptr<detail::TorchExamples> copy) : examples{std::move(copy)} {}
    std::unique_ptr<detail::TorchExamples> examples;
};

SampleLayout layout_of(at::IntArrayRef sizes, at::ScalarType of, const char* function) {
    SampleLayout layout;
    if (sizes.size() > layout.shape.size() || std::ranges::count(sizes, 0) > 0)
        throw std::invalid_argument{fmt::format("{}: an example has at most 4 dimensions, none empty, got shape [{}]",
                                                function, fmt::join(sizes, ", "))};
    constexpr std::array types{ScalarType::uint8,   ScalarType::int8,    ScalarType::int16,    ScalarType::int32,
                               ScalarType::int64,   ScalarType::float16, ScalarType::bfloat16, ScalarType::float32,
                               ScalarType::float64, ScalarType::boolean};
    const auto type = std::ranges::find(types, of, torch_type);
    if (type == types.end())
        throw std::invalid_argument{
            fmt::format("{}: examples of type {} cannot be samples", function, c10::toString(of))};
    layout.type = *type;
    layout.rank = static_cast<std::uint8_t>(sizes.size());
    std::ranges::copy(sizes, layout.shape.begin());
    return layout;
}

SampleLayout layout_of(const at::Tensor& data) { return layout_of(data.sizes(), data.scalar_type(), "from_torch"); }

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

TensorRows from_tensors(const at::Tensor& data, const at::Tensor& targets) {
    const at::NoGradGuard no_grad;
    if (!data.defined() || data.dim() == 0 || data.size(0) == 0)
        throw std::invalid_argument{"from_tensors: the data must have rows"};
    const SampleLayout layout = layout_of(data.sizes().slice(1), data.scalar_type(), "from_tensors");
    for (const at::Tensor& tensor : {data, targets})
        if (tensor.defined() && (!tensor.is_cpu() || tensor.layout() != at::kStrided))
            throw std::invalid_argument{fmt::format(
                "from_tensors: tensors must be dense and in this machine's memory, got device {} and layout {}",
                tensor.device().str(), tensor.layout() == at::kStrided ? "strided" : "sparse")};
    if (targets.defined() && (targets.numel() != data.size(0) || targets.is_floating_point() || targets.is_complex()))
        throw std::invalid_argument{fmt::format("from_tensors: targets must be {} whole numbers, got {} of {} values",
                                                data.size(0), c10::toString(targets.scalar_type()), targets.numel())};
    struct Held {
        at::Tensor data, targets;
    };
    const auto held = std::make_shared<const Held>(Held{
        data.detach().contiguous(), targets.defined() ? targets.detach().to(at::kLong).contiguous() : at::Tensor{}});
    const auto* values = static_cast<const std::byte*>(held->data.const_data_ptr());
    std::span<const std::int64_t> numbers;
    if (targets.defined())
        numbers = {held->targets.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(held->targets.numel())};
    return {{values, held->data.nbytes()}, layout, numbers, held};
}

TensorRows from_torch(const torch::data::datasets::TensorDataset& dataset) { return from_tensors(dataset.tensor); }

}   // namespace drawpoint
