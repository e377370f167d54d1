#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <torch/optim/optimizer.h>

#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/model.hpp>

namespace drawpoint {

struct TorchLearner::Impl {
    Model model;
    Optimizer kind;
    bool bf16;
    std::size_t top_k;
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    bool training = true;
    double gradient_factor = 1;   // of the current batch
    at::Tensor output, loss;
    at::Tensor correct, in_top_k, loss_sum;   // on the model's device, read only on request, so that no step waits
    std::uint64_t seen = 0;

    void compute_output(at::Tensor samples);   // float32
    /// `in_host_memory`: the same targets.
    void compute_loss(const at::Tensor& targets, std::span<const std::int64_t> in_host_memory);

    [[nodiscard]] torch::nn::Module& module() const { return *model.impl_->module; }
};

}   // namespace drawpoint
