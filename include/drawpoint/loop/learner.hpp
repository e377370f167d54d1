#pragma once

#include <concepts>

namespace drawpoint {

/// What is trained: the loop calls these in this order, on its own thread, and times each. Any exception leaves the
/// fit.
template <class L, class Batch>
concept Learner = requires(L& learner, Batch& batch, bool training) {
    learner.begin_phase(training);   // before the first batch of a pass; resets what metrics count
    learner.forward(batch);
    learner.loss(batch);
    learner.backward();
    learner.opt_step();
    learner.zero_grad();
    { learner.loss_value() } -> std::convertible_to<double>;   // of the batch at hand; waits for the device
};

/// A learner that is told when a batch is over, whichever way its step ended: it keeps nothing of the batch's memory,
/// but the value of its loss.
template <class L>
concept ForgettingLearner = requires(L& learner) {
    { learner.end_batch() } noexcept;
};

/// A batch that knows whether it has targets. Without any, nothing is asked of the learner but `forward`: the step ends
/// after `after_loss`, in training too. Other batches always have them.
template <class B>
concept TargetedBatch = requires(const B& batch) {
    { batch.has_targets() } -> std::convertible_to<bool>;
};

}   // namespace drawpoint
