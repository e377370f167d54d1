#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// Accumulates gradients over batches of at least `samples` samples in all before the optimizer steps: earlier batches
/// end with CancelBatch in before_step. Each batch's gradients are weighted by batch size / `samples`; its loss is not
/// changed. Gradients left over at the end of a fit are not stepped, and dropped when another fit starts that is not
/// resumed.
template <ScalingLearner L>
class GradientAccumulation final : public EventCallback<GradientAccumulation<L>>, public Stateful {
public:
    /// `samples` ≥ 1. The learner must outlive it. Throws std::invalid_argument.
    explicit GradientAccumulation(L& learner, std::size_t samples = 32) : learner_{&learner}, samples_{samples} {
        if (samples == 0)
            throw std::invalid_argument{"GradientAccumulation: samples must be at least 1, got 0"};
        this->run_valid = false;
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "GradientAccumulation"; }
    [[nodiscard]] int order() const noexcept override { return 6; }
    void before_fit(const LoopState& state) {
        if (!state.resumed && std::exchange(count_, 0) > 0)
            learner_->zero_grad();
    }
    void after_loss(const LoopState& state) {
        learner_->scale_gradients(static_cast<double>(state.batch_size) / static_cast<double>(samples_));
    }
    void before_step(const LoopState& state) {
        count_ += state.batch_size;
        if (count_ < samples_)
            throw CancelBatch{};
        count_ = 0;
    }

    /// Samples accumulated since the last step.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    [[nodiscard]] std::string_view state_name() const noexcept override { return name(); }
    void save(Checkpoint& to, const std::string& prefix) const override {
        to.set_integer(prefix + "count", static_cast<std::int64_t>(count_));
    }
    void load(const Checkpoint& from, const std::string& prefix) override {
        count_ = static_cast<std::size_t>(from.integer(prefix + "count"));
    }

private:
    L* learner_;
    std::size_t samples_, count_ = 0;
};

}   // namespace drawpoint
