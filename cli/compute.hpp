#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <drawpoint/loop/callback.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint::cli {

/// Sleeps in each step, as a loop does that waits for a device.
class Delay {
public:
    /// The n-th wait takes `base` times a factor between 1 - jitter and 1 + jitter that depends on seed and n alone.
    Delay(std::chrono::nanoseconds base, double jitter, std::uint64_t seed) noexcept
        : base_{base}, jitter_{jitter}, seed_{seed} {}

    [[nodiscard]] std::chrono::nanoseconds base() const noexcept { return base_; }
    void wait() {
        const double factor = 1 + jitter_ * (2 * CounterRng{seed_, 0, count_++}.uniform() - 1);
        std::this_thread::sleep_for(
            std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(base_.count()) * factor)});
    }

private:
    std::chrono::nanoseconds base_;
    double jitter_;
    std::uint64_t seed_, count_ = 0;
};

/// `base` plus the delay of --inject compute, with the jitter of --inject compute-jitter.
[[nodiscard]] inline Delay delay_of(const std::vector<Injection>& injections, std::chrono::nanoseconds base,
                                    std::uint64_t seed) {
    double jitter = 0;
    for (const Injection& injection : injections) {
        base += injection.kind == InjectionKind::compute ? injection.delay : std::chrono::nanoseconds{0};
        jitter += injection.kind == InjectionKind::compute_jitter ? injection.share : 0;
    }
    return {base, jitter, seed};
}

/// Makes each forward pass of a model longer.
class SlowForward final : public Callback {
public:
    explicit SlowForward(const Delay& delay) noexcept : delay_{delay} {}
    [[nodiscard]] std::string_view name() const noexcept override { return "SlowForward"; }
    [[nodiscard]] EventSet events() const noexcept override { return {Event::before_batch}; }
    void on(Event, LoopState&) override { delay_.wait(); }

private:
    Delay delay_;
};

/// The learner of --model none, which only waits.
class WaitingLearner {
public:
    explicit WaitingLearner(const Delay& delay) noexcept : delay_{delay} {}
    void begin_phase(bool) noexcept {}
    void forward(auto&) {
        if (delay_.base().count() > 0)
            delay_.wait();
    }
    void loss(auto&) noexcept {}
    void backward() noexcept {}
    void opt_step() noexcept {}
    void zero_grad() noexcept {}
    [[nodiscard]] double loss_value() const noexcept { return 0; }

private:
    Delay delay_;
};

}   // namespace drawpoint::cli
