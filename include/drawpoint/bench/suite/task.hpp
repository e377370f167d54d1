#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What a row of a suite measures. It is made, used by one thread, and destroyed in the process that measures the row;
/// what it throws ends that process, and its what() is the reason why the row is not run.
class Task {
public:
    virtual ~Task() = default;
    /// One run. `number`: 0 for the one that warms up and does not count, then from 1 on. What it does may depend on
    /// the number alone, so that all rows and builds do the same.
    virtual void run(std::size_t number) = 0;
    /// What it measures besides the process's times, page faults, context switches and memory; always the same.
    [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }
    /// A value for each of metrics(), for one of the runs that count. Called once, after the last run.
    [[nodiscard]] virtual Turn results() { return {}; }
    /// How many items a run processes, for the rate; 0: they are not counted.
    [[nodiscard]] virtual std::uint64_t items() const noexcept { return 0; }
    /// The same number for the same output; absent: it cannot be checked. Called at most once, before the first run.
    [[nodiscard]] virtual std::optional<std::uint64_t> digest() { return std::nullopt; }
};

}   // namespace drawpoint::bench
