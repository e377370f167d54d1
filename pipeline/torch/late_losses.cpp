#include "pipeline/torch/late_losses.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <drawpoint/pipeline/torch/pinned_memory.hpp>

namespace drawpoint {

LateLosses::LateLosses(std::size_t buffers) : buffers_(buffers) {
    const SlotAllocator* const pinned = pinned_memory();
    if (pinned == nullptr)
        return;
    block_ = pinned->allocate(2 * buffers * sizeof(float));
    if (block_.data == nullptr)
        return;
    auto* const floats = reinterpret_cast<float*>(block_.data);
    for (std::size_t i = 0; i < 2 * buffers; ++i)
        places_.push_back(at::from_blob(floats + i, at::IntArrayRef{}, at::TensorOptions{}.dtype(at::kFloat)));
}

LateLosses::~LateLosses() {
    if (block_.data != nullptr)
        pinned_memory()->free(block_);
}

const float* LateLosses::keep(DeviceCalls& calls, std::size_t buffer, const at::Tensor& loss) {
    if (places_.empty())
        return nullptr;
    if (!loss.defined() || loss.numel() != 1)
        throw std::invalid_argument{"keep_loss: a loss is one number, got " +
                                    (loss.defined() ? std::to_string(loss.numel()) : "no tensor")};
    Buffer& of = buffers_[buffer];
    const std::size_t place = 2 * buffer + of.uses % 2;
    calls("copy of a loss", [&] {
        const at::NoGradGuard no_graph;
        places_[place].copy_(loss.reshape({}).to(at::kFloat), true);
    });
    return of.kept = places_[place].const_data_ptr<float>();
}

void LateLosses::issued(std::size_t buffer) noexcept {
    Buffer& of = buffers_[buffer];
    ++of.uses;
    of.awaited = std::exchange(of.kept, nullptr);
}

void LateLosses::ended(std::size_t buffer) noexcept {
    const float* const loss = std::exchange(buffers_[buffer].awaited, nullptr);
    if (loss == nullptr)
        return;
    there_[(first_ + size_) % most_there] = *loss;
    if (size_ < most_there)
        ++size_;
    else
        first_ = (first_ + 1) % most_there;
}

std::optional<double> LateLosses::next() noexcept {
    if (size_ == 0)
        return std::nullopt;
    --size_;
    return there_[std::exchange(first_, (first_ + 1) % most_there)];
}

}   // namespace drawpoint
