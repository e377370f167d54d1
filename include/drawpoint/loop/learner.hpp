#pragma once

#include <concepts>

namespace drawpoint {

/// What is trained: the loop calls these in this order, on its own thread, and times each. Any exception leaves the fit.
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

}   // namespace drawpoint
