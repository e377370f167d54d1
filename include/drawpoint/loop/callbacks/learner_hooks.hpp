#pragma once

#include <concepts>
#include <cstddef>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/metrics.hpp>

// What callbacks require of a learner beyond the loop's own calls (loop/learner.hpp). Each callback names the concept
// it needs, so a learner implements only what its callbacks use.

namespace drawpoint {

/// A learner whose learning rate can be read and set between steps.
template <class L>
concept TunableLearner = requires(L& learner, const L& const_learner, double rate) {
    { const_learner.learning_rate() } -> std::convertible_to<double>;
    learner.set_learning_rate(rate);
};

/// A learner that can scale its gradients to a total 2-norm of at most `max_norm`; returns the norm before.
template <class L>
concept ClippingLearner = requires(L& learner, double max_norm) {
    { learner.clip_gradients(max_norm) } -> std::convertible_to<double>;
};

/// A learner that can multiply the gradients of the current batch, but not its loss; called between loss and backward.
template <class L>
concept ScalingLearner = requires(L& learner, double factor) {
    learner.scale_gradients(factor);
    learner.zero_grad();
};

/// A learner that counts the results of a pass.
template <class L>
concept MeasuredLearner = requires(const L& learner) {
    { learner.metrics() } -> std::convertible_to<Metrics>;
};

/// A learner that can be stored in a checkpoint. `load` throws CheckpointError for a checkpoint that does not fit, and
/// then changes nothing.
template <class L>
concept SavableLearner = requires(L& learner, const L& const_learner, Checkpoint& to, const Checkpoint& from) {
    const_learner.save(to);
    learner.load(from);
};

}   // namespace drawpoint
