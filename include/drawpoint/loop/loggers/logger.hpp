#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A named number at one moment of a training run, e.g. "throughput/step".
struct Scalar {
    std::string_view name;
    double value = 0;
};

/// A table of texts; every row has one cell per column title.
struct LogTable {
    std::vector<std::string> titles;
    std::vector<std::vector<std::string>> rows;
};

/// A named setting of a run: an option, a version.
struct LogSetting {
    std::string_view name, value;
};

/// How a run ended: by itself, by an error, or unknown because its recording stops inside it.
enum class RunEnd : std::uint8_t { finished, failed, killed };

/// The destination of a training run's numbers. One thread at a time. Users may derive their own; exceptions from it
/// leave the loop like those of any callback. The loggers of drawpoint throw only from constructors: later they keep
/// the first `error()` and continue without logging.
class Logger {
public:
    virtual ~Logger() = default;
    /// Scalars of `step`, the number of training batches finished so far, from 1. They may be NaN or infinite.
    virtual void log_scalars(std::span<const Scalar> scalars, std::uint64_t step) = 0;
    /// All values of one quantity in a run, logged at its end: the durations of a step, the rates of a fit.
    virtual void log_summary(std::string_view name, std::span<const double> values) = 0;
    virtual void log_table(std::string_view name, const LogTable& table) = 0;
    /// A text in Markdown, such as a report. By default it is not logged.
    virtual void log_text(std::string_view name, std::string_view markdown) {
        (void)name;
        (void)markdown;
    }
    /// The run's settings, and the scalars by which runs are compared. Before all else, and once more when settings are
    /// known that were not (TensorBoard keeps those of the first time). By default not logged.
    virtual void log_settings(std::span<const LogSetting> settings, std::span<const std::string_view> metrics) {
        (void)settings;
        (void)metrics;
    }
    /// Writes out buffered records.
    virtual void flush() {}
    /// Ends logging. Idempotent.
    virtual void finish() { flush(); }
    /// Why records are missing ("metrics.csv: No space left on device"); empty if none are.
    [[nodiscard]] virtual std::string error() const { return {}; }

    /// When that happened which is logged from now on, in seconds since 1970; absent: when it is logged.
    void set_time(std::optional<double> seconds) noexcept { time_s_ = seconds; }
    /// What `finish()` says of the run's end.
    void set_end(RunEnd end) noexcept { end_ = end; }

protected:
    Logger() = default;
    Logger(const Logger&) = default;
    Logger& operator=(const Logger&) = default;
    std::optional<double> time_s_;
    RunEnd end_ = RunEnd::finished;
};

}   // namespace drawpoint
