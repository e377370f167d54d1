#include <drawpoint/loop/callbacks/early_stopping.hpp>

#include <stdexcept>
#include <utility>

#include <drawpoint/loop/cancel.hpp>

namespace drawpoint {

EarlyStopping::EarlyStopping(const MetricsRecorder& recorder, MonitorOptions monitor, std::size_t patience)
    : monitor_{recorder, std::move(monitor), "EarlyStopping"}, patience_{patience} {
    if (patience == 0)
        throw std::invalid_argument{"EarlyStopping: patience must be at least 1, got 0"};
}

void EarlyStopping::before_fit() {
    monitor_.restart();
    waited_ = 0;
    while (const std::optional<bool> improved = monitor_.next())
        count(*improved);
    if (stopped())
        throw CancelFit{};
}

void EarlyStopping::after_epoch() {
    count(monitor_.newest());
    if (stopped())
        throw CancelFit{};
}

}   // namespace drawpoint
