#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/callbacks/monitor.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// The options of PyTorch's ReduceLROnPlateau.
struct PlateauOptions {
    std::string column = "valid_loss";   ///< in the MetricsRecorder's log
    MonitorMode mode = MonitorMode::automatic;
    double threshold = 1e-4;     ///< an improvement must be larger than this, ≥ 0
    bool relative = true;        ///< the threshold is a share of the best value
    double factor = 0.1;         ///< the rate is multiplied by this, 0 < factor < 1
    std::size_t patience = 10;   ///< epochs in a row without improvement that are tolerated; one more reduces the rate
    std::size_t cooldown = 0;    ///< epochs after a reduction that are not counted
    double min_rate = 0;         ///< ≥ 0
    double eps = 1e-8;           ///< a smaller change of the rate is not made
};

/// Counts epochs without improvement; independent of the learner.
class PlateauCounter {
public:
    /// Throws std::invalid_argument naming option and value.
    PlateauCounter(const MetricsRecorder& recorder, const PlateauOptions& options);
    /// Replays the recorder's log, for a resumed fit.
    void restart();
    /// Takes the newest epoch; returns whether to reduce the rate.
    [[nodiscard]] bool newest() { return count(monitor_.newest()); }

private:
    [[nodiscard]] bool count(bool improved) noexcept;
    Monitor monitor_;
    std::size_t patience_, cooldown_, bad_epochs_ = 0, cooling_ = 0;
};

/// Reduces the learning rate at the end of an epoch when the monitored value has stopped improving. Not together with a
/// schedule, which would set the rate again.
template <TunableLearner L>
class ReduceOnPlateau final : public EventCallback<ReduceOnPlateau<L>> {
public:
    /// Both arguments must outlive it; the recorder must be among the callbacks. Throws std::invalid_argument naming
    /// option and value.
    ReduceOnPlateau(L& learner, const MetricsRecorder& recorder, const PlateauOptions& options = {})
        : learner_{&learner},
          counter_{recorder, options},
          factor_{options.factor},
          min_rate_{options.min_rate},
          eps_{options.eps} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "ReduceOnPlateau"; }
    [[nodiscard]] int order() const noexcept override { return 60; }   // before a checkpoint is written
    void before_fit() { counter_.restart(); }
    void after_epoch() {
        if (!counter_.newest())
            return;
        const double rate = learner_->learning_rate(), reduced = std::max(rate * factor_, min_rate_);
        if (rate - reduced > eps_)
            learner_->set_learning_rate(reduced);
    }

private:
    L* learner_;
    PlateauCounter counter_;
    double factor_, min_rate_, eps_;
};

}   // namespace drawpoint
