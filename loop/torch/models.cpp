#include <drawpoint/loop/torch/model.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

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

/// Convolutions with a shortcut around them.
class ResidualBlock : public nn::Module {
public:
    ResidualBlock(nn::Sequential inner, nn::Sequential shortcut) : inner_{register_module("inner", std::move(inner))} {
        if (shortcut)
            shortcut_ = register_module("shortcut", std::move(shortcut));
    }

    at::Tensor forward(const at::Tensor& x) {
        return inner_->forward(x).add_(shortcut_ ? shortcut_->forward(x) : x).relu_();
    }

private:
    nn::Sequential inner_, shortcut_{nullptr};
};

enum class Block : std::uint8_t { basic, bottleneck };

std::shared_ptr<ResidualBlock> residual_block(Block kind, std::int64_t in, std::int64_t width, std::int64_t stride) {
    const std::int64_t out = kind == Block::basic ? width : 4 * width;
    nn::Sequential inner;
    if (kind == Block::basic) {
        push_block(inner, in, width, 3, stride);
        inner->push_back(convolution(width, out, 3, 1));
    } else {
        push_block(inner, in, width, 1, 1);
        push_block(inner, width, width, 3, stride);
        inner->push_back(convolution(width, out, 1, 1));
    }
    inner->push_back(nn::BatchNorm2d{out});
    nn::Sequential shortcut{nullptr};
    if (in != out || stride != 1)
        shortcut = nn::Sequential{convolution(in, out, 1, stride), nn::BatchNorm2d{out}};
    return std::make_shared<ResidualBlock>(inner, shortcut);
}

Model resnet(Block kind, const std::array<int, 4>& blocks, std::int64_t classes, std::uint64_t seed) {
    torch::manual_seed(seed);
    nn::Sequential net;
    push_block(net, 3, 64, 7, 2);
    net->push_back(nn::MaxPool2d{nn::MaxPool2dOptions{3}.stride(2).padding(1)});
    std::int64_t channels = 64, width = 64;
    for (const int count : blocks) {
        for (int i = 0; i < count; ++i) {
            net->push_back(residual_block(kind, channels, width, i == 0 && width != 64 ? 2 : 1));
            channels = kind == Block::basic ? width : 4 * width;
        }
        width *= 2;
    }
    push_head(net, channels, classes);
    for (const auto& module : net->modules(false))
        if (auto* conv = module->as<nn::Conv2d>())
            nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
    return model_of(net);
}

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
    return resnet(Block::basic, {2, 2, 2, 2}, at_least_1("resnet18", "num_classes", num_classes), seed);
}

Model resnet50(std::size_t num_classes, std::uint64_t seed) {
    return resnet(Block::bottleneck, {3, 4, 6, 3}, at_least_1("resnet50", "num_classes", num_classes), seed);
}

}   // namespace drawpoint
