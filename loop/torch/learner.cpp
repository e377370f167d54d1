#include <drawpoint/loop/torch/learner.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <drawpoint/pipeline/torch/tensors.hpp>
#include "loop/torch/learner_impl.hpp"

namespace drawpoint {
namespace {

void check(const LearnerOptions& options) {
    const auto require = [](bool holds, const char* field, const char* range, double value) {
        if (!holds)
            throw std::invalid_argument{fmt::format("{} must be {}, got {}", field, range, value)};
    };
    require(options.learning_rate > 0 && std::isfinite(options.learning_rate), "learning_rate", "above 0",
            options.learning_rate);
    require(options.momentum >= 0 && options.momentum < 1, "momentum", "at least 0 and below 1", options.momentum);
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight_decay", "at least 0",
            options.weight_decay);
    require(options.threads >= 0, "threads", "at least 1, or 0 for no change", options.threads);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const torch::nn::Module& module,
                                                        const LearnerOptions& options) {
    const std::vector<at::Tensor> parameters = module.parameters();
    if (options.optimizer == Optimizer::sgd)
        return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions{options.learning_rate}
                                                                   .momentum(options.momentum)
                                                                   .weight_decay(options.weight_decay));
    return std::make_unique<torch::optim::Adam>(
        parameters, torch::optim::AdamOptions{options.learning_rate}.weight_decay(options.weight_decay));
}

/// Convolutions and matrix products in bfloat16 while it lives, as `torch.autocast`.
class Autocast {
public:
    explicit Autocast(at::DeviceType type)
        : type_{type},
          was_enabled_{at::autocast::is_autocast_enabled(type)},
          dtype_before_{at::autocast::get_autocast_dtype(type)} {
        at::autocast::set_autocast_enabled(type, true);
        at::autocast::set_autocast_dtype(type, at::kBFloat16);
        at::autocast::increment_nesting();
    }
    ~Autocast() {
        if (at::autocast::decrement_nesting() == 0)
            at::autocast::clear_cache();   // of weights in bfloat16, which the next step changes
        at::autocast::set_autocast_enabled(type_, was_enabled_);
        at::autocast::set_autocast_dtype(type_, dtype_before_);
    }
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

private:
    at::DeviceType type_;
    bool was_enabled_;
    at::ScalarType dtype_before_;
};

}   // namespace

TorchLearner::TorchLearner(Model model, const LearnerOptions& options) {
    check(options);
    if (options.threads > 0)
        at::set_num_threads(options.threads);
    auto optimizer = make_optimizer(*model.impl_->module, options);
    const std::vector<at::Tensor> parameters = model.impl_->module->parameters();
    const at::Device device = parameters.empty() ? at::Device{at::kCPU} : parameters.front().device();
    if (options.bf16 && !at::autocast::is_autocast_available(device.type()))
        throw std::invalid_argument{fmt::format("bf16: LibTorch has no autocast on {}", device.str())};
    const at::TensorOptions counts = at::TensorOptions{}.dtype(at::kLong).device(device);
    const at::ScalarType sums = device.is_mps() ? at::kFloat : at::kDouble;   // which MPS does not have
    impl_ = std::make_unique<Impl>(Impl{.model = std::move(model),
                                        .kind = options.optimizer,
                                        .bf16 = options.bf16,
                                        .top_k = options.top_k,
                                        .optimizer = std::move(optimizer),
                                        .correct = at::zeros({}, counts),
                                        .in_top_k = at::zeros({}, counts),
                                        .loss_sum = at::zeros({}, counts.dtype(sums))});
}

TorchLearner::~TorchLearner() = default;
TorchLearner::TorchLearner(TorchLearner&&) noexcept = default;
TorchLearner& TorchLearner::operator=(TorchLearner&&) noexcept = default;

void TorchLearner::begin_phase(bool training) {
    impl_->training = training;
    impl_->module().train(training);
    impl_->correct.zero_();
    impl_->in_top_k.zero_();
    impl_->loss_sum.zero_();
    impl_->seen = 0;
}

void TorchLearner::Impl::compute_output(at::Tensor samples) {
    const at::AutoGradMode graph{training};
    if (samples.scalar_type() == at::kByte)
        samples = samples.to(at::kFloat).div_(255);
    std::optional<Autocast> autocast;
    if (bf16)
        autocast.emplace(samples.device().type());
    output = model.impl_->forward(samples).to(at::kFloat);
}

void TorchLearner::Impl::compute_loss(const at::Tensor& targets, std::span<const std::int64_t> in_host_memory) {
    const at::AutoGradMode graph{training};
    const std::int64_t classes = output.size(1);
    for (const std::int64_t target : in_host_memory)
        if (target < 0 || target >= classes)
            throw std::invalid_argument{fmt::format("target {} is none of the model's {} classes", target, classes)};
    loss = torch::nn::functional::cross_entropy(output, targets);
    gradient_factor = 1;
    const at::NoGradGuard no_graph;
    correct += output.argmax(1).eq(targets).sum();
    if (top_k > 0) {
        const std::int64_t k = std::min(static_cast<std::int64_t>(top_k), classes);
        in_top_k += std::get<1>(output.topk(k, 1, true, false)).eq(targets.unsqueeze(1)).sum();
    }
    loss_sum.add_(loss, static_cast<double>(in_host_memory.size()));
    seen += in_host_memory.size();
}

void TorchLearner::forward(Batch& batch) { impl_->compute_output(data_of(batch)); }
void TorchLearner::forward(DeviceBatch& batch) { impl_->compute_output(data_of(batch)); }
void TorchLearner::loss(Batch& batch) { impl_->compute_loss(targets_of(batch), batch.targets()); }
void TorchLearner::loss(DeviceBatch& batch) { impl_->compute_loss(targets_of(batch), batch.targets()); }

void TorchLearner::scale_gradients(double factor) { impl_->gradient_factor = factor; }

void TorchLearner::backward() {
    impl_->loss.backward(impl_->gradient_factor == 1 ? at::Tensor{}
                                                     : at::full_like(impl_->loss, impl_->gradient_factor));
}

void TorchLearner::opt_step() { impl_->optimizer->step(); }

void TorchLearner::zero_grad() {
    impl_->optimizer->zero_grad();
    end_batch();
}

void TorchLearner::end_batch() noexcept {
    impl_->output.reset();
    if (impl_->loss.defined())
        impl_->loss.detach_();   // releases the graph, which holds the batch's memory, but keeps the value
}

bool TorchLearner::keep_loss(DeviceBatch& batch) { return drawpoint::keep_loss(batch, impl_->loss); }

double TorchLearner::loss_value() const {
    return impl_->loss.defined() ? impl_->loss.item<double>() : std::numeric_limits<double>::quiet_NaN();
}

Metrics TorchLearner::metrics() const {
    return {.correct = static_cast<std::uint64_t>(impl_->correct.item<std::int64_t>()),
            .seen = impl_->seen,
            .in_top_k = static_cast<std::uint64_t>(impl_->in_top_k.item<std::int64_t>()),
            .top_k = impl_->top_k,
            .loss_sum = impl_->loss_sum.item<double>()};
}

double TorchLearner::learning_rate() const { return impl_->optimizer->param_groups().front().options().get_lr(); }

void TorchLearner::set_learning_rate(double rate) {
    if (!(rate >= 0) || !std::isfinite(rate))
        throw std::invalid_argument{fmt::format("learning_rate must be at least 0, got {}", rate)};
    for (torch::optim::OptimizerParamGroup& group : impl_->optimizer->param_groups())
        group.options().set_lr(rate);
}

double TorchLearner::clip_gradients(double max_norm) {
    return torch::nn::utils::clip_grad_norm_(impl_->module().parameters(), max_norm);
}

}   // namespace drawpoint
