#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <torch/optim/optimizer.h>

#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/model.hpp>

namespace drawpoint {

struct TorchLearner::Impl {
    Model model;
    Optimizer kind;
    std::size_t top_k;
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    bool training = true;
    double gradient_factor = 1;   // of the current batch
    at::Tensor output, loss;
    // Summed on the data's device and read only on request, so that no step waits.
    at::Tensor correct = at::zeros({}, at::kLong), in_top_k = at::zeros({}, at::kLong);
    at::Tensor loss_sum = at::zeros({}, at::kDouble);
    std::uint64_t seen = 0;

    [[nodiscard]] torch::nn::Module& module() const { return *model.impl_->module; }
};

}   // namespace drawpoint
