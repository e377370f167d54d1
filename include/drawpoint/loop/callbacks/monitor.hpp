#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/loop/callbacks/metrics_recorder.hpp>

namespace drawpoint {

/// Which way a monitored value improves. `automatic`: down for a name with "loss" or "error" in it, else up.
enum class MonitorMode : std::uint8_t { automatic, min, max };

struct MonitorOptions {
    std::string column = "valid_loss";   ///< of the MetricsRecorder's log
    MonitorMode mode = MonitorMode::automatic;
    double min_delta = 0;    ///< an improvement is larger than this, ≥ 0
    bool relative = false;   ///< min_delta is a share of the best value, as in PyTorch's plateau schedule
};

/// Watches one column of a MetricsRecorder's log and knows the best value so far. It follows from the log alone, so it
/// needs no saving: a resumed fit reads it off the log that was loaded.
class Monitor {
public:
    /// Throws std::invalid_argument naming `who` watches, option and value, or the columns there are. The recorder
    /// outlives it.
    Monitor(const MetricsRecorder& recorder, MonitorOptions options, std::string who);

    /// Begins before the log's first row.
    void restart() noexcept;
    /// Takes the next row; nullopt when there is none, else whether it is the best so far; NaN never is, nor is a
    /// row without a value there. Throws std::runtime_error naming epoch and column when no row of the log has one.
    [[nodiscard]] std::optional<bool> next();
    /// The row that has just been added. Throws std::logic_error when the recorder is not among the fit's callbacks.
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
