#pragma once

#include <cmath>
#include <string>

#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// Ends the fit (CancelFit in after_batch) at the first training or validation batch whose loss is infinite or NaN.
/// Needs `FitOptions::record_loss`.
class TerminateOnNaN final : public EventCallback<TerminateOnNaN> {
public:
    [[nodiscard]] int order() const noexcept override { return -9; }
    void after_batch(const LoopState& state) const {
        if (state.loss && !std::isfinite(*state.loss))
            throw CancelFit{"TerminateOnNaN: the loss is " + std::to_string(*state.loss)};
    }
};

}   // namespace drawpoint
