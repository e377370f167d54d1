#pragma once

#include <concepts>
#include <cstddef>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/metrics.hpp>

// What callbacks may ask of a learner beyond the loop's own calls (loop/learner.hpp): each callback names the one it
// needs, so a learner offers what it can and no more.

namespace drawpoint {

/// A learner whose learning rate can be read and set between two steps.
template <class L>
concept TunableLearner = requires(L& learner, const L& const_learner, double rate) {
    { const_learner.learning_rate() } -> std::convertible_to<double>;
    learner.set_learning_rate(rate);
};

/// A learner that can shrink its gradients, all by one factor, to a total 2-norm of `max_norm`; says the norm before.
template <class L>
concept ClippingLearner = requires(L& learner, double max_norm) {
    { learner.clip_gradients(max_norm) } -> std::convertible_to<double>;
};

/// A learner that can multiply the gradients of the batch at hand, not its loss; between its loss and its backward.
template <class L>
concept ScalingLearner = requires(L& learner, double factor) {
    learner.scale_gradients(factor);
    learner.zero_grad();
};

/// A learner that counts what a pass has seen.
template <class L>
concept MeasuredLearner = requires(const L& learner) {
    { learner.metrics() } -> std::convertible_to<Metrics>;
};

/// A learner that a checkpoint can hold. `load` throws CheckpointError for one that does not fit, and then changes
/// nothing.
template <class L>
concept SavableLearner = requires(L& learner, const L& const_learner, Checkpoint& to, const Checkpoint& from) {
    const_learner.save(to);
    learner.load(from);
};

}   // namespace drawpoint
