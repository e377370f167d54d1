#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>

#include "case.hpp"
#include "work.hpp"

namespace drawpoint::bench {

/// A learner that only waits and burns core time, and records when each step began.
class CaseLearner {
public:
    explicit CaseLearner(const Case& of) : case_{&of}, team_{of.consumer.threads} { begins_.reserve(of.steps); }
    CaseLearner(const CaseLearner&) = delete;
    CaseLearner& operator=(const CaseLearner&) = delete;

    void begin_phase(bool) noexcept {}
    void forward(auto&) {
        const std::size_t step = begins_.size();
        begins_.push_back(SteadyClock{}.now_ns());
        disturb(static_cast<double>(step) / static_cast<double>(case_->steps));
        const double factor = pace_ * step_factor(case_->consumer, step, case_->sample_set);
        sleep_us(case_->consumer.wait_us * factor);
        team_.burn_together(case_->consumer.work_us * factor);
    }
    void loss(auto&) noexcept {}
    void backward() noexcept {}
    void opt_step() noexcept {}
    void zero_grad() noexcept {}
    [[nodiscard]] double loss_value() const noexcept { return 0; }

    /// Multiplies the step's own time by `factor`, from the next step on.
    void set_pace(double factor) noexcept { pace_ = factor; }
    [[nodiscard]] const std::vector<std::int64_t>& begins_ns() const noexcept { return begins_; }

private:
    void disturb(double at) {
        if (case_->disturbance != Disturbance::external_load)
            return;
        if (at >= case_->disturbance_to)
            load_.reset();
        else if (at >= case_->disturbance_from && !load_)
            load_.emplace(static_cast<std::size_t>(case_->disturbance_size));
    }

    const Case* case_;
    double pace_ = 1;
    WorkTeam team_;
    std::vector<std::int64_t> begins_;
    std::optional<ForeignLoad> load_;
};

}   // namespace drawpoint::bench
