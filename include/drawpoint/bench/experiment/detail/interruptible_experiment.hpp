#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/instrumentation/host/detail/signals.hpp>

namespace drawpoint::bench {

/// Whether there are `rounds`; if that is 0, 15 rounds that took 5 seconds.
[[nodiscard]] bool are_enough(const Measurements&, std::size_t rounds);

/// An experiment that Ctrl-C ends: what was measured until then stays. To be made before any other thread.
class InterruptibleExperiment {
public:
    /// Throws as Experiment.
    InterruptibleExperiment(std::vector<std::unique_ptr<Contender>>, const ExperimentOptions&);

    /// Prepares the contenders, calls `prepared`, calibrates, and runs rounds until `enough`, which is asked after each
    /// of them. Calls `told` with the number of rounds every ten seconds. Returns whether it was interrupted. Throws
    /// NotRun if a contender fails.
    [[nodiscard]] bool run(const std::function<void(const Measurements&)>& prepared,
                           const std::function<bool(const Measurements&)>& enough,
                           const std::function<void(std::size_t rounds)>& told);
    [[nodiscard]] const Measurements& measurements() const noexcept { return experiment_.measurements(); }

private:
    Experiment experiment_;
    Signals signals_;   // ends before what it cancels
};

}   // namespace drawpoint::bench
