#include <drawpoint/bench/experiment/detail/interruptible_experiment.hpp>

#include <chrono>
#include <utility>

namespace drawpoint::bench {

bool are_enough(const Measurements& measured, std::size_t rounds) {
    constexpr std::size_t usual_rounds = 15;
    constexpr double usual_seconds = 5;
    const std::size_t done = measured.rounds.size();
    return rounds != 0 ? done >= rounds : done >= usual_rounds && measured.seconds() >= usual_seconds;
}

InterruptibleExperiment::InterruptibleExperiment(std::vector<std::unique_ptr<Contender>> contenders,
                                                 const ExperimentOptions& options)
    : experiment_{std::move(contenders), options}, signals_{[this](int) { experiment_.cancel(); }} {}

bool InterruptibleExperiment::run(const std::function<void(const Measurements&)>& prepared,
                                  const std::function<bool(const Measurements&)>& enough,
                                  const std::function<void(std::size_t)>& told) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds pause{10};
    try {
        experiment_.prepare();
        prepared(measurements());
        experiment_.calibrate();
        Clock::time_point last = Clock::now();
        do {
            experiment_.run_round();
            if (Clock::now() - last < pause)
                continue;
            last = Clock::now();
            told(measurements().rounds.size());
        } while (!enough(measurements()));
    } catch (const Cancelled&) {
        return true;
    }
    return false;
}

}   // namespace drawpoint::bench
