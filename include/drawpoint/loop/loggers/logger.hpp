#pragma once

#include <cstdint>
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
    /// Writes out buffered records.
    virtual void flush() {}
    /// Ends logging. Idempotent.
    virtual void finish() { flush(); }
    /// Why records are missing ("metrics.csv: No space left on device"); empty if none are.
    [[nodiscard]] virtual std::string error() const { return {}; }
};

}   // namespace drawpoint
