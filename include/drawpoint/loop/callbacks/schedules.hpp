#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

namespace drawpoint {

/// A learning-rate schedule: the rate of the training step with this number, from 0. A pure function of it.
using RateSchedule = std::function<double(std::size_t step)>;

// Each function below throws std::invalid_argument naming parameter and value: rates are above 0 (lowest ones at least
// 0), numbers of steps at least 1.

/// The same rate for ever.
[[nodiscard]] RateSchedule constant(double rate);

/// `then`'s first rate approached in a line from `start_factor` of it, over `steps` steps; then `then` from its step 0.
/// PyTorch's LinearLR followed by another schedule.
[[nodiscard]] RateSchedule warm_up(std::size_t steps, RateSchedule then, double start_factor = 1.0 / 3);

/// Half a cosine from `rate` at step 0 to `min_rate` at step `steps`, which it keeps: PyTorch's CosineAnnealingLR.
[[nodiscard]] RateSchedule cosine(double rate, std::size_t steps, double min_rate = 0);

/// `rate` times `gamma` for every `step_size` steps that are over: PyTorch's StepLR.
[[nodiscard]] RateSchedule step_decay(double rate, std::size_t step_size, double gamma = 0.1);

/// As PyTorch's OneCycleLR (without its momentum cycle).
struct OneCycleOptions {
    double pct_start = 0.3;          ///< share of the steps in which the rate rises, 0 < pct_start < 1
    double div_factor = 25;          ///< the first rate is max_rate / div_factor
    double final_div_factor = 1e4;   ///< the last is max_rate / div_factor / final_div_factor
};
static_assert(std::is_trivially_destructible_v<OneCycleOptions>);

/// Rises in half a cosine to `max_rate` at step pct_start × steps − 1, falls in another to its lowest at step `steps` −
/// 1, which it keeps: PyTorch's OneCycleLR. At least 2 steps.
[[nodiscard]] RateSchedule one_cycle(double max_rate, std::size_t steps, const OneCycleOptions& = {});

/// As fastai's fit_one_cycle (without its momentum cycle).
struct FitOneCycleOptions {
    double pct_start = 0.25;   ///< share of the steps in which the rate rises, 0 < pct_start < 1
    double div = 25;           ///< the first rate is max_rate / div
    double div_final = 1e5;    ///< the rate falls towards max_rate / div_final
};
static_assert(std::is_trivially_destructible_v<FitOneCycleOptions>);

/// The same shape as fastai places it: the top is at pct_start × steps and the lowest rate at step `steps`, one after
/// the last.
[[nodiscard]] RateSchedule fit_one_cycle(double max_rate, std::size_t steps, const FitOneCycleOptions& = {});

}   // namespace drawpoint
