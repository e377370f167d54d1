#pragma once

#include <concepts>
#include <optional>

namespace drawpoint {

/// The model side of training: the loop calls these functions in this order, on its own thread, and times each. Any
/// exception leaves the fit.
template <class L, class Batch>
concept Learner = requires(L& learner, Batch& batch, bool training) {
    learner.begin_phase(training);   // before the first batch of a pass; resets the metrics' counts
    learner.forward(batch);
    learner.loss(batch);
    learner.backward();
    learner.opt_step();
    learner.zero_grad();
    { learner.loss_value() } -> std::convertible_to<double>;   // of the current batch; waits for the device
};

/// A learner that is informed when a batch is over, however its step ended. From then on it holds nothing of the
/// batch's memory, only the value of its loss.
template <class L>
concept ForgettingLearner = requires(L& learner) {
    { learner.end_batch() } noexcept;
};

/// A learner that can keep the loss of a batch where a device computes it, for the batch to read it later: so no
/// training step waits for the device. `keep_loss` returns false if it cannot. `next_loss` returns each loss that was
/// kept once, in order, when the device has computed it; nullopt: there is none yet.
template <class L, class Batch>
concept LateLossLearner = requires(L& learner, Batch& batch) {
    { learner.keep_loss(batch) } -> std::same_as<bool>;
    { batch.next_loss() } noexcept -> std::same_as<std::optional<double>>;
};

/// A batch that knows whether it has targets. If it has none, the learner is only asked to `forward`: the step ends
/// after `after_loss`, in training too. Batches of other types always have targets.
template <class B>
concept TargetedBatch = requires(const B& batch) {
    { batch.has_targets() } -> std::convertible_to<bool>;
};

}   // namespace drawpoint
