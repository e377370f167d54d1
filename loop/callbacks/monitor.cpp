#include <drawpoint/loop/callbacks/monitor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace drawpoint {

Monitor::Monitor(const MetricsRecorder& recorder, MonitorOptions options, std::string who)
    : recorder_{&recorder}, options_{std::move(options)}, who_{std::move(who)} {
    if (!(options_.min_delta >= 0) || !std::isfinite(options_.min_delta))
        throw std::invalid_argument{fmt::format("{}: min_delta must be at least 0, got {}", who_, options_.min_delta)};
    if (options_.mode == MonitorMode::automatic) {
        const bool down =
            options_.column.find("loss") != std::string::npos || options_.column.find("error") != std::string::npos;
        options_.mode = down ? MonitorMode::min : MonitorMode::max;
    }
    column_ = recorder.column(options_.column, who_);
}

void Monitor::restart() noexcept {
    rows_ = 0;
    best_.reset();
}

std::optional<bool> Monitor::next() {
    if (rows_ >= recorder_->log().size())
        return std::nullopt;
    const EpochMetrics& row = recorder_->log()[rows_++];
    const std::optional<double> value = row.values[column_];
    if (!value) {
        const auto has_value = [this](const EpochMetrics& any) { return any.values[column_].has_value(); };
        if (std::ranges::none_of(recorder_->log(), has_value))
            throw std::runtime_error{fmt::format("{}: epoch {} has no {}; was there no such pass, or record_loss off?",
                                                 who_, row.epoch, options_.column)};
        return false;   // its pass was cancelled
    }
    const bool improved = improves(*value);
    if (improved)
        best_ = value;
    return improved;
}

bool Monitor::newest() {
    const std::optional<bool> improved = next();
    if (!improved)
        throw std::logic_error{who_ + ": the MetricsRecorder it watches is not among the callbacks of this fit"};
    return *improved;
}

bool Monitor::improves(double value) const noexcept {
    const bool down = options_.mode == MonitorMode::min;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double best = best_.value_or(down ? infinity : -infinity);
    const double delta = down ? -options_.min_delta : options_.min_delta;
    const double threshold = options_.relative ? best * (1 + delta) : best + delta;   // as PyTorch, also for best < 0
    return down ? value < threshold : value > threshold;
}

}   // namespace drawpoint
