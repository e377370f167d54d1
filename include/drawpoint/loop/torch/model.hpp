#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include <drawpoint/loop/torch/learner.hpp>

namespace drawpoint {

struct Model::Impl {
    std::shared_ptr<torch::nn::Module> module;
    std::function<at::Tensor(const at::Tensor&)> forward;   // float32 samples to one output per class
};

/// Makes a model from a user's own module or module holder (`TORCH_MODULE`), whose forward takes a tensor and returns
/// one output per class.
template <class Module>
[[nodiscard]] Model model_of(std::shared_ptr<Module> module) {
    auto forward = [net = module.get()](const at::Tensor& samples) { return net->forward(samples); };
    return Model{std::make_shared<Model::Impl>(Model::Impl{std::move(module), std::move(forward)})};
}
template <class Contained>
[[nodiscard]] Model model_of(const torch::nn::ModuleHolder<Contained>& holder) {
    return model_of(holder.ptr());
}

}   // namespace drawpoint
