#include <drawpoint/loop/torch/model.hpp>

#include <stdexcept>

#include <fmt/format.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules.h>
#include <torch/utils.h>

namespace drawpoint {
namespace {

namespace nn = torch::nn;

std::int64_t at_least_1(const char* model, const char* field, std::size_t value) {
    if (value < 1)
        throw std::invalid_argument{fmt::format("{}: {} must be at least 1, got 0", model, field)};
    return static_cast<std::int64_t>(value);
}

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    return nn::Conv2d{nn::Conv2dOptions{in, out, kernel}.stride(stride).padding(kernel / 2).bias(false)};
}

void push_block(nn::Sequential& net, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    net->push_back(convolution(in, out, kernel, stride));
    net->push_back(nn::BatchNorm2d{out});
    net->push_back(nn::ReLU{nn::ReLUOptions{}.inplace(true)});
}

void push_head(nn::Sequential& net, std::int64_t channels, std::int64_t num_classes) {
    net->push_back(nn::AdaptiveAvgPool2d{1});
    net->push_back(nn::Flatten{});
    net->push_back(nn::Linear{channels, num_classes});
}

/// Two 3 × 3 convolutions with a shortcut around them.
class ResidualBlock : public nn::Module {
public:
    ResidualBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
        : first_{register_module("conv1", convolution(in, out, 3, stride))},
          second_{register_module("conv2", convolution(out, out, 3, 1))},
          first_norm_{register_module("bn1", nn::BatchNorm2d{out})},
          second_norm_{register_module("bn2", nn::BatchNorm2d{out})} {
        if (in != out || stride != 1)
            shortcut_ =
                register_module("downsample", nn::Sequential{convolution(in, out, 1, stride), nn::BatchNorm2d{out}});
    }

    at::Tensor forward(const at::Tensor& x) {
        const at::Tensor inner = first_norm_(first_(x)).relu_();
        return second_norm_(second_(inner)).add_(shortcut_ ? shortcut_->forward(x) : x).relu_();
    }

private:
    nn::Conv2d first_, second_;
    nn::BatchNorm2d first_norm_, second_norm_;
    nn::Sequential shortcut_{nullptr};
};

}   // namespace

std::size_t Model::num_parameters() const {
    std::size_t count = 0;
    for (const at::Tensor& parameter : impl_->module->parameters())
        count += static_cast<std::size_t>(parameter.numel());
    return count;
}

Model& Model::to(const std::string& device) {
    impl_->module->to(at::Device{device});
    return *this;
}

Model small_cnn(std::size_t num_classes, std::uint64_t seed) {
    const std::int64_t classes = at_least_1("small_cnn", "num_classes", num_classes);
    torch::manual_seed(seed);
    nn::Sequential net;
    push_block(net, 3, 8, 5, 4);
    push_block(net, 8, 24, 3, 2);
    push_block(net, 24, 48, 3, 2);
    push_block(net, 48, 96, 3, 2);
    push_head(net, 96, classes);
    return model_of(net);
}

Model mlp(std::size_t num_inputs, std::size_t num_classes, const std::vector<std::size_t>& hidden, std::uint64_t seed) {
    torch::manual_seed(seed);
    std::int64_t width = at_least_1("mlp", "num_inputs", num_inputs);
    nn::Sequential net{nn::Flatten{}};
    for (const std::size_t layer : hidden) {
        const std::int64_t out = at_least_1("mlp", "hidden", layer);
        net->push_back(nn::Linear{width, out});
        net->push_back(nn::ReLU{nn::ReLUOptions{}.inplace(true)});
        width = out;
    }
    net->push_back(nn::Linear{width, at_least_1("mlp", "num_classes", num_classes)});
    return model_of(net);
}

Model resnet18(std::size_t num_classes, std::uint64_t seed) {
    const std::int64_t classes = at_least_1("resnet18", "num_classes", num_classes);
    torch::manual_seed(seed);
    nn::Sequential net;
    push_block(net, 3, 64, 7, 2);
    net->push_back(nn::MaxPool2d{nn::MaxPool2dOptions{3}.stride(2).padding(1)});
    std::int64_t channels = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
        net->push_back(std::make_shared<ResidualBlock>(channels, out, out == 64 ? 1 : 2));
        net->push_back(std::make_shared<ResidualBlock>(out, out, 1));
        channels = out;
    }
    push_head(net, channels, classes);
    for (const auto& module : net->modules(false))
        if (auto* conv = module->as<nn::Conv2d>())
            nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
    return model_of(net);
}

}   // namespace drawpoint
