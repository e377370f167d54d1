#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// Before each optimizer step, scales all gradients by one factor so that their total 2-norm is at most `max_norm`. It
/// runs after GradientAccumulation, so that only gradients that are stepped are clipped.
template <ClippingLearner L>
class GradientClipping final : public EventCallback<GradientClipping<L>> {
public:
    /// `max_norm` > 0. The learner must outlive it. Throws std::invalid_argument.
    explicit GradientClipping(L& learner, double max_norm = 1.0) : learner_{&learner}, max_norm_{max_norm} {
        if (!(max_norm > 0) || !std::isfinite(max_norm))
            throw std::invalid_argument{"GradientClipping: max_norm must be above 0, got " + std::to_string(max_norm)};
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "GradientClipping"; }
    [[nodiscard]] int order() const noexcept override { return 11; }
    void before_step() { norm_ = learner_->clip_gradients(max_norm_); }

    /// Total norm of the last step's gradients before clipping; 0 before the first step.
    [[nodiscard]] double norm() const noexcept { return norm_; }

private:
    L* learner_;
    double max_norm_, norm_ = 0;
};

}   // namespace drawpoint
