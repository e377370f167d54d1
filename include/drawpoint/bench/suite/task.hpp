#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What a row of a suite measures. It is made, used by one thread, and destroyed in the process that measures the row.
/// A std::exception that it throws is the reason why the row is not run.
class Task {
public:
    virtual ~Task() = default;
    /// One run. `number`: 0 for the one that warms up and does not count, then from 1 on. Every run that counts must do
    /// equally much work, because rows and builds may have different numbers of them in a turn.
    virtual void run(std::size_t number) = 0;
    /// What it measures beyond what every row has: wall time, CPU time, page faults, context switches, peak memory,
    /// items/s. Always the same; names must differ from these and from one another.
    [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }
    /// The value of each of metrics() for one run, e.g. the mean of those that count. Called once, after the last run.
    [[nodiscard]] virtual Turn results() { return {}; }
    /// How many items a run processes, for the rate; 0: they are not counted.
    [[nodiscard]] virtual std::uint64_t items() const noexcept { return 0; }
    /// The same number for the same output; absent: it cannot be checked. Called at most once, before the
    /// first run, so it has to make the output itself.
    [[nodiscard]] virtual std::optional<std::uint64_t> digest() { return std::nullopt; }
};

}   // namespace drawpoint::bench
