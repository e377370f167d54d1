#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/callbacks/schedules.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// The unit of a schedule's steps.
enum class ScheduleUnit : std::uint8_t { batch, epoch };

/// Sets the learning rate before each training batch according to a schedule. Batches are counted from the start of the
/// fit, cancelled ones included; a resumed fit (`LoopState::resumed`) continues the count.
template <TunableLearner L>
class LearningRateSchedule final : public EventCallback<LearningRateSchedule<L>>, public Stateful {
public:
    /// The learner must outlive it.
    LearningRateSchedule(L& learner, RateSchedule schedule, ScheduleUnit unit = ScheduleUnit::batch)
        : learner_{&learner}, schedule_{std::move(schedule)}, unit_{unit} {
        this->run_valid = false;
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "LearningRateSchedule"; }
    [[nodiscard]] int order() const noexcept override { return 60; }
    void before_fit(const LoopState& state) { step_ = state.resumed ? step_ : 0; }
    void before_batch(const LoopState& state) {
        learner_->set_learning_rate(schedule_(unit_ == ScheduleUnit::batch ? step_++ : state.epoch));
    }

    [[nodiscard]] std::string_view state_name() const noexcept override { return name(); }
    void save(Checkpoint& to, const std::string& prefix) const override {
        to.set_integer(prefix + "step", static_cast<std::int64_t>(step_));
    }
    void load(const Checkpoint& from, const std::string& prefix) override {
        step_ = static_cast<std::size_t>(from.integer(prefix + "step"));
    }

private:
    L* learner_;
    RateSchedule schedule_;
    ScheduleUnit unit_;
    std::size_t step_ = 0;   // of the next batch
};

}   // namespace drawpoint
