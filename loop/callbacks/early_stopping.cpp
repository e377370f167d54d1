#include <drawpoint/loop/callbacks/early_stopping.hpp>

#include <stdexcept>
#include <string>
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
    end_if_stopped();
}

void EarlyStopping::end_if_stopped() const {
    if (stopped())
        throw CancelFit{"EarlyStopping: " + monitor_.column() + " has not improved for " + std::to_string(waited_) +
                        (waited_ == 1 ? " epoch" : " epochs")};
}

void EarlyStopping::after_epoch() {
    count(monitor_.newest());
    end_if_stopped();
}

}   // namespace drawpoint
