#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A named number at some moment of a training: "throughput/step".
struct Scalar {
    std::string_view name;
    double value = 0;
};

/// A table of texts; every row has one cell a title.
struct LogTable {
    std::vector<std::string> titles;
    std::vector<std::vector<std::string>> rows;
};

/// Where a training's numbers go. One thread at a time. A logger of one's own derives from it; what it throws leaves
/// the loop like any callback's exception. Those of drawpoint never throw once made: they keep the first `error()` and
/// go on without.
class Logger {
public:
    virtual ~Logger() = default;
    /// Numbers that belong to `step`: training batches finished so far, from 1. They may be NaN or infinite.
    virtual void log_scalars(std::span<const Scalar> scalars, std::uint64_t step) = 0;
    /// All values of one quantity in a run, known at its end: a step's durations, a fit's rates.
    virtual void log_summary(std::string_view name, std::span<const double> values) = 0;
    virtual void log_table(std::string_view name, const LogTable& table) = 0;
    /// Nothing follows for now: what is buffered goes out.
    virtual void flush() {}
    /// Nothing follows at all. Idempotent.
    virtual void finish() { flush(); }
    /// Why records are missing ("metrics.csv: No space left on device"); empty: none are.
    [[nodiscard]] virtual std::string error() const { return {}; }
};

}   // namespace drawpoint
