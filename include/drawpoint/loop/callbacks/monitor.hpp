#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/loop/callbacks/metrics_recorder.hpp>

namespace drawpoint {

/// The direction in which a monitored value improves. `automatic`: down if the name contains "loss" or "error", else
/// up.
enum class MonitorMode : std::uint8_t { automatic, min, max };

struct MonitorOptions {
    std::string column = "valid_loss";   ///< in the MetricsRecorder's log
    MonitorMode mode = MonitorMode::automatic;
    double min_delta = 0;    ///< an improvement must be larger than this, ≥ 0
    bool relative = false;   ///< min_delta is a share of the best value, as in PyTorch's plateau schedule
};

/// Tracks the best value of one column of a MetricsRecorder's log. It depends on the log alone, so it need not be
/// saved: a resumed fit reads it from the loaded log.
class Monitor {
public:
    /// The recorder must outlive it. Throws std::invalid_argument naming `who` monitors, and option and value or the
    /// existing columns.
    Monitor(const MetricsRecorder& recorder, MonitorOptions options, std::string who);

    /// Starts before the log's first row.
    void restart() noexcept;
    /// Takes the next row. Returns nullopt if there is none, else whether its value is the best so far, which NaN and a
    /// missing value never are. Throws std::runtime_error naming epoch and column if no row of the log has a value
    /// there.
    [[nodiscard]] std::optional<bool> next();
    /// Takes the row just added. Throws std::logic_error if the recorder is not among the fit's callbacks.
    [[nodiscard]] bool newest();

    [[nodiscard]] std::optional<double> best() const noexcept { return best_; }
    [[nodiscard]] const std::string& column() const noexcept { return options_.column; }

private:
    [[nodiscard]] bool improves(double value) const noexcept;

    const MetricsRecorder* recorder_;
    MonitorOptions options_;
    std::string who_;
    std::size_t column_ = 0, rows_ = 0;
    std::optional<double> best_;
};

}   // namespace drawpoint
