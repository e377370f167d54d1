#include <drawpoint/loop/torch/learner.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <drawpoint/loop/torch/model.hpp>
#include <drawpoint/pipeline/torch/tensors.hpp>

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

}   // namespace

struct TorchLearner::Impl {
    Model model;
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    bool training = true;
    at::Tensor output, loss;
    at::Tensor correct = at::zeros({}, at::kLong);   // summed where the data is, read only when asked
    std::uint64_t seen = 0;
};

TorchLearner::TorchLearner(Model model, const LearnerOptions& options) {
    check(options);
    if (options.threads > 0)
        at::set_num_threads(options.threads);
    auto optimizer = make_optimizer(*model.impl_->module, options);
    impl_ = std::make_unique<Impl>(Impl{.model = std::move(model), .optimizer = std::move(optimizer)});
}

TorchLearner::~TorchLearner() = default;
TorchLearner::TorchLearner(TorchLearner&&) noexcept = default;
TorchLearner& TorchLearner::operator=(TorchLearner&&) noexcept = default;

void TorchLearner::begin_phase(bool training) {
    impl_->training = training;
    impl_->model.impl_->module->train(training);
    impl_->correct.zero_();
    impl_->seen = 0;
}

void TorchLearner::forward(Batch& batch) {
    const at::AutoGradMode graph{impl_->training};
    at::Tensor samples = data_of(batch);
    if (samples.scalar_type() == at::kByte)
        samples = samples.to(at::kFloat).div_(255);
    impl_->output = impl_->model.impl_->forward(samples);
}

void TorchLearner::loss(Batch& batch) {
    const at::AutoGradMode graph{impl_->training};
    const at::Tensor targets = targets_of(batch);
    const std::int64_t classes = impl_->output.size(1);
    for (const std::int64_t target : batch.targets())
        if (target < 0 || target >= classes)
            throw std::invalid_argument{fmt::format("target {} is none of the model's {} classes", target, classes)};
    impl_->loss = torch::nn::functional::cross_entropy(impl_->output, targets);
    const at::NoGradGuard no_graph;
    impl_->correct += impl_->output.argmax(1).eq(targets).sum();
    impl_->seen += batch.size();
}

void TorchLearner::backward() { impl_->loss.backward(); }

void TorchLearner::opt_step() { impl_->optimizer->step(); }

void TorchLearner::zero_grad() {
    impl_->optimizer->zero_grad();
    impl_->output.reset();
    if (impl_->loss.defined())
        impl_->loss = impl_->loss.detach();   // the graph holds the batch's memory; the value may still be asked for
}

double TorchLearner::loss_value() const {
    return impl_->loss.defined() ? impl_->loss.item<double>() : std::numeric_limits<double>::quiet_NaN();
}

Metrics TorchLearner::metrics() const {
    return {.correct = static_cast<std::uint64_t>(impl_->correct.item<std::int64_t>()), .seen = impl_->seen};
}

}   // namespace drawpoint
