#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

namespace drawpoint {

/// A learning-rate schedule: the rate as a pure function of the training step's number, from 0.
using RateSchedule = std::function<double(std::size_t step)>;

// Each function below throws std::invalid_argument naming parameter and value if one is out of range: rates must be
// above 0, `min_rate` 0 … rate, numbers of steps at least 1, `start_factor` and `gamma` above 0 and at most 1.

/// The same rate for ever.
[[nodiscard]] RateSchedule constant(double rate);

/// Linear warm-up: rises over `steps` steps from `start_factor` × `then`'s first rate to that rate, and continues with
/// `then` from its step 0. PyTorch's LinearLR followed by another schedule.
[[nodiscard]] RateSchedule warm_up(std::size_t steps, RateSchedule then, double start_factor = 1.0 / 3);

/// Half a cosine from `rate` at step 0 to `min_rate` at step `steps`, then constant: PyTorch's CosineAnnealingLR.
[[nodiscard]] RateSchedule cosine(double rate, std::size_t steps, double min_rate = 0);

/// Multiplies `rate` by `gamma` after every `step_size` steps: PyTorch's StepLR.
[[nodiscard]] RateSchedule step_decay(double rate, std::size_t step_size, double gamma = 0.1);

/// Options of PyTorch's OneCycleLR (without its momentum cycle).
struct OneCycleOptions {
    double pct_start = 0.3;          ///< share of the steps in which the rate rises, 0 < pct_start < 1
    double div_factor = 25;          ///< the first rate is max_rate / div_factor; > 0
    double final_div_factor = 1e4;   ///< the last rate is max_rate / div_factor / final_div_factor; > 0
};
static_assert(std::is_trivially_destructible_v<OneCycleOptions>);

/// Rises along half a cosine to `max_rate` at step pct_start × steps − 1, falls along another to its minimum at step
/// `steps` − 1, then constant: PyTorch's OneCycleLR. At least 2 steps.
[[nodiscard]] RateSchedule one_cycle(double max_rate, std::size_t steps, const OneCycleOptions& = {});

/// Options of fastai's fit_one_cycle (without its momentum cycle).
struct FitOneCycleOptions {
    double pct_start = 0.25;   ///< share of the steps in which the rate rises, 0 < pct_start < 1
    double div = 25;           ///< the first rate is max_rate / div; > 0
    double div_final = 1e5;    ///< the rate falls towards max_rate / div_final; > 0
};
static_assert(std::is_trivially_destructible_v<FitOneCycleOptions>);

/// The same shape with fastai's placement: the maximum is at pct_start × steps and the minimum at step `steps`, one
/// after the last.
[[nodiscard]] RateSchedule fit_one_cycle(double max_rate, std::size_t steps, const FitOneCycleOptions& = {});

}   // namespace drawpoint
