#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <drawpoint/loop/callbacks/metrics.hpp>
#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>

namespace drawpoint {

class Checkpoint;   // loop/callbacks/checkpoint_file.hpp

/// A LibTorch model, made by `small_cnn`, `mlp`, `resnet18` or `resnet50`, or by `model_of` (loop/torch/model.hpp)
/// from a user's own module. A handle; copies share the weights.
class Model {
public:
    struct Impl;
    explicit Model(std::shared_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
    /// Number of trainable values.
    [[nodiscard]] std::size_t num_parameters() const;
    /// Moves the weights to a device, e.g. `DeviceLoader::device()`, and returns the model. Before a learner is made of
    /// it. Throws c10::Error for a device that there is not.
    Model& to(const std::string& device);

private:
    friend class TorchLearner;
    std::shared_ptr<Impl> impl_;
};

/// Four strided convolutions and a mean over the image: [n, 3, h, w] → [n, num_classes], h and w ≥ 32. Small enough
/// for two cores to train on hundreds of 224 × 224 images per second while they decode them. As for the models below,
/// weights depend on `seed` only, and making a model seeds LibTorch's generator.
[[nodiscard]] Model small_cnn(std::size_t num_classes, std::uint64_t seed = 0);

/// Fully connected layers with ReLU between them, over samples of `num_inputs` values of any shape.
[[nodiscard]] Model mlp(std::size_t num_inputs, std::size_t num_classes, const std::vector<std::size_t>& hidden = {256},
                        std::uint64_t seed = 0);

/// ResNets: [n, 3, h, w] → [n, num_classes]. He et al., "Deep residual learning for image recognition", 2015; in
/// ResNet-50 the 3 × 3 convolutions have the strides, as in torchvision.
[[nodiscard]] Model resnet18(std::size_t num_classes, std::uint64_t seed = 0);
[[nodiscard]] Model resnet50(std::size_t num_classes, std::uint64_t seed = 0);

enum class Optimizer : std::uint8_t { sgd, adam };

struct LearnerOptions {
    Optimizer optimizer = Optimizer::adam;
    double learning_rate = 1e-3;   ///< > 0
    double momentum = 0.9;         ///< of SGD, 0 ≤ momentum < 1
    double weight_decay = 0;       ///< ≥ 0
    int threads = 0;               ///< for LibTorch's operators, in the whole process, ≥ 1; 0: unchanged
    bool bf16 = false;             ///< autocast: convolutions and matrix products of forward in bfloat16
    std::size_t top_k = 0;         ///< count samples whose target is among the k largest outputs; 0: do not
};
static_assert(std::is_trivially_destructible_v<LearnerOptions>);

/// Trains a model on batches of float32 (or uint8, scaled to 0 … 1) and their class labels: cross-entropy with SGD or
/// Adam. Batches and model are on the same device, or both in host memory. Outside training no graph is built. All
/// calls on the loop's thread; on a device they only enqueue work, unless stated. Holds nothing of a batch after its
/// step.
class TorchLearner {
public:
    /// Throws std::invalid_argument naming the option and value, also where LibTorch cannot autocast on the device.
    explicit TorchLearner(Model model, const LearnerOptions& options = {});
    ~TorchLearner();
    TorchLearner(TorchLearner&&) noexcept;
    TorchLearner& operator=(TorchLearner&&) noexcept;

    /// Begins training or validation; resets the metrics.
    void begin_phase(bool training);
    /// Computes the model's output for the batch. Throws c10::Error for a shape that the model cannot process.
    void forward(Batch&);
    void forward(DeviceBatch&);
    /// Computes the mean cross-entropy of that output and counts the correct ones. Throws std::invalid_argument for a
    /// target that is not a class.
    void loss(Batch&);
    void loss(DeviceBatch&);
    void backward();
    void opt_step();
    /// Drops gradients, output and graph of the step.
    void zero_grad();
    /// Drops output and graph, but keeps the gradients. Called however the step ended; afterwards nothing refers to the
    /// batch's memory.
    void end_batch() noexcept;
    /// Keeps the loss of this batch, which was last passed to loss(), for later (LateLossLearner). False if the device
    /// cannot write to host memory while the loop goes on. Throws DeviceError.
    [[nodiscard]] bool keep_loss(DeviceBatch&);
    /// Loss of the batch last passed to loss(); waits for the device. NaN before the first.
    [[nodiscard]] double loss_value() const;
    /// Metrics of the phase so far; waits for the device. Costs a step nothing unless called.
    [[nodiscard]] Metrics metrics() const;

    [[nodiscard]] double learning_rate() const;
    /// `rate` ≥ 0. Throws std::invalid_argument.
    void set_learning_rate(double rate);
    /// Multiplies what the current batch adds to the gradients, but not its loss. Call it after loss() and before
    /// backward().
    void scale_gradients(double factor);
    /// Scales all gradients by one factor so that their total 2-norm is at most `max_norm`. Returns the norm before;
    /// waits for the device.
    double clip_gradients(double max_norm);

    /// Puts weights, buffers, gradients, the optimizer's state and rates, and LibTorch's CPU random state into a
    /// checkpoint; waits for the device. Part of it refers to the learner's memory: write the checkpoint before the
    /// next step.
    void save(Checkpoint& to) const;
    /// Restores all of that. Throws CheckpointError naming what does not fit this model or optimizer; then nothing has
    /// changed.
    void load(const Checkpoint& from);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
