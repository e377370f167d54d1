#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawpoint::bench {

/// A quantity that a contender measures each time it runs.
struct Metric {
    enum class Unit : std::uint8_t { seconds, count, bytes, number };
    std::string name;   ///< "wall time"
    Unit unit = Unit::seconds;
    /// Whether contenders are compared by it: then its values are above 0, and less is better. Else it is only shown.
    bool compared = false;
    bool operator==(const Metric&) const = default;
};

/// A contender cannot run, or its run failed: what() names it and the reason.
struct NotRun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The run was cancelled.
struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error{"cancelled"} {}
};

/// What takes part in an `Experiment`. Between its turns it must use no CPU.
class Contender {
public:
    virtual ~Contender() = default;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;
    /// What it is, for reports, e.g. its command line.
    [[nodiscard]] virtual const std::string& description() const noexcept = 0;
    /// Called once, before metrics() and turns: one that has to run to know what it measures does so
    /// here. Throws NotRun or Cancelled.
    virtual void prepare() {}
    /// Always the same.
    [[nodiscard]] virtual std::span<const Metric> metrics() const noexcept = 0;
    /// Runs so many times, one after the other. `runs`: at least 1. Returns for each metric its mean over the runs.
    /// Throws NotRun or Cancelled.
    [[nodiscard]] virtual std::vector<double> take_turn(std::size_t runs) = 0;
    /// Ends the present turn, if it can, and makes all later ones throw Cancelled. Any thread.
    virtual void cancel() noexcept = 0;
};

}   // namespace drawpoint::bench
