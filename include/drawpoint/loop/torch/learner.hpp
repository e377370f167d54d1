#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <drawpoint/loop/callbacks/metrics.hpp>
#include <drawpoint/pipeline/loader/batch_slots.hpp>

namespace drawpoint {

class Checkpoint;   // loop/callbacks/checkpoint_file.hpp

/// A LibTorch model: what `small_cnn`, `mlp` and `resnet18` make, or `model_of` (loop/torch/model.hpp) from a user's
/// own module. A handle; copies share the weights.
class Model {
public:
    struct Impl;
    explicit Model(std::shared_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
    /// Trainable values.
    [[nodiscard]] std::size_t num_parameters() const;

private:
    friend class TorchLearner;
    std::shared_ptr<Impl> impl_;
};

/// Four strided convolutions and a mean over the image: [n, 3, h, w] → [n, num_classes], h and w ≥ 32. Small enough
/// that two cores train hundreds of 224 × 224 images a second beside decoding them. Weights depend on `seed` only (as
/// for the others: making a model seeds LibTorch's generator).
[[nodiscard]] Model small_cnn(std::size_t num_classes, std::uint64_t seed = 0);

/// Fully connected layers with ReLU between them, over samples of `num_inputs` values of any shape.
[[nodiscard]] Model mlp(std::size_t num_inputs, std::size_t num_classes, const std::vector<std::size_t>& hidden = {256},
                        std::uint64_t seed = 0);

/// ResNet-18: [n, 3, h, w] → [n, num_classes]. Source: He et al., "Deep residual learning for image recognition", 2015.
[[nodiscard]] Model resnet18(std::size_t num_classes, std::uint64_t seed = 0);

enum class Optimizer : std::uint8_t { sgd, adam };

struct LearnerOptions {
    Optimizer optimizer = Optimizer::adam;
    double learning_rate = 1e-3;   ///< > 0
    double momentum = 0.9;         ///< of SGD, 0 ≤ momentum < 1
    double weight_decay = 0;       ///< ≥ 0
    int threads = 0;               ///< of LibTorch's operators, in the whole process, ≥ 1; 0: as they are
    std::size_t top_k = 0;         ///< counts samples whose target is among the k largest outputs; 0: does not
};
static_assert(std::is_trivially_destructible_v<LearnerOptions>);

/// Trains a model on batches of float32 (or uint8, taken as 0 … 1) and their class labels: cross-entropy, SGD or Adam.
/// Outside training no graph is built. All calls from the loop's thread. Keeps nothing of a batch beyond its step.
class TorchLearner {
public:
    /// Throws std::invalid_argument naming the option and value.
    explicit TorchLearner(Model model, const LearnerOptions& options = {});
    ~TorchLearner();
    TorchLearner(TorchLearner&&) noexcept;
    TorchLearner& operator=(TorchLearner&&) noexcept;

    /// Training or validation begins; metrics count from here.
    void begin_phase(bool training);
    /// The model's output for the batch. Throws c10::Error for a shape the model cannot take.
    void forward(Batch&);
    /// The mean cross-entropy of that output, and whether it was right. Throws std::invalid_argument for a target that
    /// is no class.
    void loss(Batch&);
    void backward();
    void opt_step();
    /// Forgets gradients, output and graph of the step.
    void zero_grad();
    /// Forgets output and graph; gradients stay. However the step ended, nothing of the batch's memory is held from
    /// here on.
    void end_batch() noexcept;
    /// Of the batch last given to loss(); waits for it. NaN before the first.
    [[nodiscard]] double loss_value() const;
    /// Of the phase so far; waits for it. Costs a step nothing until asked.
    [[nodiscard]] Metrics metrics() const;

    [[nodiscard]] double learning_rate() const;
    /// ≥ 0. Throws std::invalid_argument.
    void set_learning_rate(double rate);
    /// Multiplies what the batch at hand adds to the gradients; its loss stays. After loss() and before backward().
    void scale_gradients(double factor);
    /// Shrinks all gradients by one factor so that their total 2-norm is at most `max_norm`. The norm before; waits for
    /// it.
    double clip_gradients(double max_norm);

    /// Puts weights, buffers, gradients, the optimizer's state and rates, and LibTorch's CPU random state into a
    /// checkpoint. Some of it is not copied: write it before the next step.
    void save(Checkpoint& to) const;
    /// Takes all of that over. Throws CheckpointError naming what does not fit this model or optimizer; then nothing
    /// changed.
    void load(const Checkpoint& from);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
