#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include "loop/torch/learner_impl.hpp"

namespace drawpoint {
namespace {

using torch::optim::AdamOptions, torch::optim::AdamParamState, torch::optim::SGDOptions, torch::optim::SGDParamState;

constexpr std::array<std::pair<at::ScalarType, std::string_view>, 9> type_names{{{at::kDouble, "F64"},
                                                                                 {at::kFloat, "F32"},
                                                                                 {at::kHalf, "F16"},
                                                                                 {at::kBFloat16, "BF16"},
                                                                                 {at::kLong, "I64"},
                                                                                 {at::kInt, "I32"},
                                                                                 {at::kShort, "I16"},
                                                                                 {at::kByte, "U8"},
                                                                                 {at::kBool, "BOOL"}}};

std::string name_of_type(const at::Tensor& tensor, const std::string& name) {
    for (const auto& [type, text] : type_names)
        if (type == tensor.scalar_type())
            return std::string{text};
    throw CheckpointError{
        fmt::format("{}: a checkpoint cannot hold values of type {}", name, c10::toString(tensor.scalar_type()))};
}

void put(Checkpoint& to, const std::string& name, const at::Tensor& tensor) {
    const auto kept = std::make_shared<const at::Tensor>(tensor.detach().cpu().contiguous());
    to.set(name, {name_of_type(tensor, name),
                  tensor.sizes().vec(),
                  {static_cast<const std::byte*>(kept->const_data_ptr()), kept->nbytes()},
                  kept});
}

std::string shape_and_type(const std::vector<std::int64_t>& shape, std::string_view type) {
    return fmt::format("[{}] of {}", fmt::join(shape, ", "), type);
}

/// The array of that name as a tensor on the device of `like`. Throws for another shape or type.
at::Tensor take(const Checkpoint& from, const std::string& name, const at::Tensor& like) {
    const Checkpoint::Array* array = from.find(name);
    if (array == nullptr)
        from.refuse(fmt::format("has no {}", name));
    const std::string type = name_of_type(like, name);
    if (array->shape != like.sizes().vec() || array->type != type)
        from.refuse(fmt::format("{} is {} there, {} here", name, shape_and_type(array->shape, array->type),
                                shape_and_type(like.sizes().vec(), type)));
    at::Tensor tensor =
        at::empty(like.sizes(), like.options().device(at::kCPU).requires_grad(false), at::MemoryFormat::Contiguous);
    if (!array->data.empty())
        std::memcpy(tensor.mutable_data_ptr(), array->data.data(), array->data.size());
    return tensor.to(like.device());
}

const char* name_of(Optimizer kind) noexcept { return kind == Optimizer::adam ? "adam" : "sgd"; }

/// The model's parameters, then its buffers, such as the running means of a batch norm.
std::vector<std::pair<std::string, at::Tensor>> weights_of(const torch::nn::Module& module) {
    std::vector<std::pair<std::string, at::Tensor>> weights;
    for (const auto& item : module.named_parameters())
        weights.emplace_back(item.key(), item.value());
    for (const auto& item : module.named_buffers())
        weights.emplace_back(item.key(), item.value());
    return weights;
}

template <class State>
const State* state_of(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
    const auto& states = optimizer.state();
    const auto found = states.find(parameter.unsafeGetTensorImpl());
    return found == states.end() ? nullptr : static_cast<const State*>(found->second.get());
}

at::Tensor random_state() {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock{generator.mutex()};
    return generator.get_state();
}

using StatePointer = std::unique_ptr<torch::optim::OptimizerParamState>;

StatePointer load_adam(const Checkpoint& from, const std::string& prefix, const at::Tensor& parameter) {
    auto state = std::make_unique<AdamParamState>();
    state->step(from.integer(prefix + "step"));
    state->exp_avg(take(from, prefix + "exp_avg", parameter));
    state->exp_avg_sq(take(from, prefix + "exp_avg_sq", parameter));
    return state;
}

StatePointer load_sgd(const Checkpoint& from, const std::string& prefix, const at::Tensor& parameter) {
    auto state = std::make_unique<SGDParamState>();
    state->momentum_buffer(take(from, prefix + "momentum_buffer", parameter));
    return state;
}

}   // namespace

void TorchLearner::save(Checkpoint& to) const {
    torch::optim::Optimizer& optimizer = *impl_->optimizer;
    for (const auto& [name, tensor] : weights_of(impl_->module()))
        put(to, "model." + name, tensor);
    for (const auto& item : impl_->module().named_parameters()) {
        const std::string prefix = fmt::format("optimizer.{}.", item.key());
        if (impl_->kind == Optimizer::adam) {
            if (const auto* state = state_of<AdamParamState>(optimizer, item.value())) {
                to.set_integer(prefix + "step", state->step());
                put(to, prefix + "exp_avg", state->exp_avg());
                put(to, prefix + "exp_avg_sq", state->exp_avg_sq());
            }
        } else if (const auto* state = state_of<SGDParamState>(optimizer, item.value());
                   state != nullptr && state->momentum_buffer().defined()) {
            put(to, prefix + "momentum_buffer", state->momentum_buffer());
        }
        if (item.value().grad().defined())   // gradients that are being accumulated
            put(to, "gradient." + item.key(), item.value().grad());
    }
    to.set_text("optimizer", name_of(impl_->kind));
    to.set_number("learning_rate", learning_rate());
    if (impl_->kind == Optimizer::adam) {
        const auto& options = static_cast<const AdamOptions&>(optimizer.param_groups().front().options());
        to.set_number("weight_decay", options.weight_decay());
    } else {
        const auto& options = static_cast<const SGDOptions&>(optimizer.param_groups().front().options());
        to.set_number("weight_decay", options.weight_decay());
        to.set_number("momentum", options.momentum());
    }
    put(to, "random.cpu", random_state());
}

void TorchLearner::load(const Checkpoint& from) {
    // Everything that can be refused is read first, before anything changes.
    if (const std::string& kind = from.text("optimizer"); kind != name_of(impl_->kind))
        from.refuse(fmt::format("its optimizer is {}, this learner's is {}", kind, name_of(impl_->kind)));
    const auto weights = weights_of(impl_->module());
    std::vector<at::Tensor> values;
    for (const auto& [name, tensor] : weights)
        values.push_back(take(from, "model." + name, tensor));
    if (const std::vector<std::string> names = from.names("model."); names.size() != weights.size())
        for (const std::string& name : names)
            if (std::ranges::none_of(weights, [&](const auto& weight) { return "model." + weight.first == name; }))
                from.refuse(fmt::format("has {}, which this model has not", name));

    struct PerParameter {
        at::Tensor parameter, gradient;
        StatePointer state;
    };
    std::vector<PerParameter> parameters;
    for (const auto& item : impl_->module().named_parameters()) {
        PerParameter& entry = parameters.emplace_back();
        entry.parameter = item.value();
        if (from.find("gradient." + item.key()) != nullptr)
            entry.gradient = take(from, "gradient." + item.key(), item.value());
        const std::string prefix = fmt::format("optimizer.{}.", item.key());
        if (!from.names(prefix).empty())
            entry.state = impl_->kind == Optimizer::adam ? load_adam(from, prefix, item.value())
                                                         : load_sgd(from, prefix, item.value());
    }
    const at::Tensor random = take(from, "random.cpu", random_state());
    const double rate = from.number("learning_rate"), decay = from.number("weight_decay");
    const double momentum = impl_->kind == Optimizer::sgd ? from.number("momentum") : 0;

    {
        at::Generator generator = at::detail::getDefaultCPUGenerator();
        const std::lock_guard lock{generator.mutex()};
        generator.set_state(random);
    }
    const at::NoGradGuard no_graph;
    for (std::size_t i = 0; i < weights.size(); ++i)
        at::Tensor{weights[i].second}.copy_(values[i]);
    auto& states = impl_->optimizer->state();
    states.clear();
    for (PerParameter& entry : parameters) {
        entry.parameter.mutable_grad() = entry.gradient;
        if (entry.state)
            states[entry.parameter.unsafeGetTensorImpl()] = std::move(entry.state);
    }
    for (torch::optim::OptimizerParamGroup& group : impl_->optimizer->param_groups()) {
        group.options().set_lr(rate);
        if (impl_->kind == Optimizer::adam)
            static_cast<AdamOptions&>(group.options()).weight_decay(decay);
        else
            static_cast<SGDOptions&>(group.options()).weight_decay(decay).momentum(momentum);
    }
}

}   // namespace drawpoint
