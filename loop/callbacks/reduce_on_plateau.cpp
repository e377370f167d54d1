#include <drawpoint/loop/callbacks/reduce_on_plateau.hpp>

#include <fmt/format.h>

namespace drawpoint {

PlateauCounter::PlateauCounter(const MetricsRecorder& recorder, const PlateauOptions& options)
    : monitor_{recorder, {options.column, options.mode, options.threshold, options.relative}, "ReduceOnPlateau"},
      patience_{options.patience},
      cooldown_{options.cooldown} {
    const auto require = [](bool holds, const char* field, const char* range, double value) {
        if (!holds)
            throw std::invalid_argument{fmt::format("ReduceOnPlateau: {} must be {}, got {}", field, range, value)};
    };
    require(options.factor > 0 && options.factor < 1, "factor", "above 0 and below 1", options.factor);
    require(options.min_rate >= 0 && std::isfinite(options.min_rate), "min_rate", "at least 0", options.min_rate);
    require(options.eps >= 0 && std::isfinite(options.eps), "eps", "at least 0", options.eps);
}

void PlateauCounter::restart() {
    monitor_.restart();
    bad_epochs_ = cooling_ = 0;
    while (const std::optional<bool> improved = monitor_.next())
        (void)count(*improved);   // these reductions are already in the learner's saved rate
}

bool PlateauCounter::count(bool improved) noexcept {
    bad_epochs_ = improved ? 0 : bad_epochs_ + 1;
    if (cooling_ > 0) {
        --cooling_;
        bad_epochs_ = 0;
    }
    if (bad_epochs_ <= patience_)
        return false;
    cooling_ = cooldown_;
    bad_epochs_ = 0;
    return true;
}

}   // namespace drawpoint
