#pragma once

#include <cstddef>
#include <optional>

#include <drawpoint/loop/callbacks/monitor.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// Ends the fit (CancelFit in after_epoch) when the monitored value has not improved for `patience` epochs. A resumed
/// fit continues the count from the recorder's log, and ends at once if it had stopped already.
class EarlyStopping final : public EventCallback<EarlyStopping> {
public:
    /// `patience` ≥ 1. The recorder must outlive it and be among the callbacks. Throws std::invalid_argument naming
    /// option and value.
    explicit EarlyStopping(const MetricsRecorder& recorder, MonitorOptions monitor = {}, std::size_t patience = 1);

    [[nodiscard]] int order() const noexcept override { return 63; }
    void before_fit();
    void after_epoch();

    [[nodiscard]] std::optional<double> best() const noexcept { return monitor_.best(); }
    /// Epochs since the best one.
    [[nodiscard]] std::size_t waited() const noexcept { return waited_; }
    [[nodiscard]] bool stopped() const noexcept { return waited_ >= patience_; }

private:
    void count(bool improved) noexcept { waited_ = improved ? 0 : waited_ + 1; }
    void end_if_stopped() const;

    Monitor monitor_;
    std::size_t patience_, waited_ = 0;
};

}   // namespace drawpoint
