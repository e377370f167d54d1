#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawpoint::bench {

/// A quantity that a contender measures each time it runs.
struct Metric {
    /// `count`, `bytes`: of something that other processes do not change; `number`: anything else.
    enum class Unit : std::uint8_t { seconds, count, bytes, number };
    std::string name;   ///< "wall time"
    Unit unit = Unit::seconds;
    /// Whether contenders are compared by it: then its values are above 0, and less is better. Else it is only shown.
    bool compared = false;
    /// Whether a turn has a value for each item, too. Then two contenders are compared item by item: the ratio of a
    /// round is the median of the items' ratios, which noise that hits some items does not move.
    bool by_item = false;
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

/// What a contender measured in a turn.
struct Turn {
    std::vector<double> values;   ///< of each metric: for a run; NaN: this contender does not measure it
    /// Of each metric: empty, or the values of the items, which have the same places in all turns of all contenders;
    /// NaN or left out at the end: none of this item.
    std::vector<std::vector<float>> by_item;
    /// What the runs took, if the turn does more than them, such as starting a process; 0: it does not.
    double seconds = 0;
};

/// One of the things that a contender runs, e.g. a row of a suite.
struct Part {
    std::string name;                    ///< empty: the contender is one thing
    std::optional<std::string> digest;   ///< of its output: that of parts with the same name should be the same
    std::string not_run;                 ///< why it is left out; empty: it takes part
};

/// What takes part in an `Experiment`. Between its turns it must use no CPU.
class Contender {
public:
    virtual ~Contender() = default;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;
    /// What it is, for reports, e.g. its command line.
    [[nodiscard]] virtual const std::string& description() const noexcept = 0;
    /// After prepare(): why its times mean nothing, as a sentence; empty: nothing is known against them.
    [[nodiscard]] virtual std::string flaw() const { return {}; }
    /// Called once, before metrics() and turns: one that has to run to know what it measures does so
    /// here. Throws NotRun or Cancelled.
    virtual void prepare() {}
    /// Always the same, each with a name of its own.
    [[nodiscard]] virtual std::span<const Metric> metrics() const noexcept = 0;
    /// After prepare(), and always the same then. Empty: nothing is known of them.
    [[nodiscard]] virtual std::span<const Part> parts() const noexcept { return {}; }
    /// Runs so many times, one after the other. `runs`: at least 1. Throws NotRun or Cancelled.
    [[nodiscard]] virtual Turn take_turn(std::size_t runs) = 0;
    /// CPU time that its processes have used so far which still run, or that this process has not waited for: it is not
    /// what other programs use.
    [[nodiscard]] virtual double running_cpu_seconds() const { return 0; }
    /// Ends the present turn, if it can, and makes all later ones throw Cancelled. Any thread.
    virtual void cancel() noexcept = 0;
};

/// A contender that can pause between runs. An `Experiment` of such contenders alone lets them run in slices, which
/// have orders of their own: so the machine's speed, which changes from one tenth of a second to the next, is the
/// same for all of them. While it pauses it must use no CPU.
class PausingContender : public Contender {
public:
    /// A turn has sections, which are measured one after the other, e.g. the rows of a suite. Sections with the same
    /// name are measured together. Known after prepare().
    [[nodiscard]] virtual std::span<const std::string> sections() const noexcept;
    /// Begins a section: all that has to be done before its first run. One that was not ended is given up. In a turn
    /// each section is begun once. Throws NotRun or Cancelled, as the others do.
    virtual void begin(std::size_t section) = 0;
    /// Runs so many times, one after the other; several times in a section. `runs`: at least 1.
    virtual void run(std::size_t runs) = 0;
    virtual void end() = 0;
    /// What was measured in the turn, when all sections have ended.
    [[nodiscard]] virtual Turn results() = 0;

    /// All sections without a pause.
    Turn take_turn(std::size_t runs) final;
};

}   // namespace drawpoint::bench
