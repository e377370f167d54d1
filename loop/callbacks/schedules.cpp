#include <drawpoint/loop/callbacks/schedules.hpp>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace drawpoint {
namespace {

void require(bool holds, const char* schedule, const char* field, const char* range, double value) {
    if (!holds)
        throw std::invalid_argument{fmt::format("{}: {} must be {}, got {}", schedule, field, range, value)};
}

void require_rate(const char* schedule, const char* field, double rate) {
    require(rate > 0 && std::isfinite(rate), schedule, field, "above 0", rate);
}

void require_steps(const char* schedule, const char* field, std::size_t steps, std::size_t least = 1) {
    require(steps >= least, schedule, field, least == 1 ? "at least 1" : "at least 2", static_cast<double>(steps));
}

/// Half a cosine, from `from` at 0 to `to` at 1.
double half_cosine(double from, double to, double at) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * at));
}

}   // namespace

RateSchedule constant(double rate) {
    require_rate("constant", "rate", rate);
    return [=](std::size_t) { return rate; };
}

RateSchedule warm_up(std::size_t steps, RateSchedule then, double start_factor) {
    require_steps("warm_up", "steps", steps);
    require(start_factor > 0 && start_factor <= 1, "warm_up", "start_factor", "above 0 and at most 1", start_factor);
    return [=, then = std::move(then)](std::size_t step) {
        if (step >= steps)
            return then(step - steps);
        const double way = static_cast<double>(step) / static_cast<double>(steps);
        return then(0) * (start_factor + (1 - start_factor) * way);
    };
}

RateSchedule cosine(double rate, std::size_t steps, double min_rate) {
    require_rate("cosine", "rate", rate);
    require_steps("cosine", "steps", steps);
    require(min_rate >= 0 && min_rate <= rate, "cosine", "min_rate", "at least 0 and at most rate", min_rate);
    return [=](std::size_t step) {
        if (step >= steps)
            return min_rate;
        return half_cosine(rate, min_rate, static_cast<double>(step) / static_cast<double>(steps));
    };
}

RateSchedule step_decay(double rate, std::size_t step_size, double gamma) {
    require_rate("step_decay", "rate", rate);
    require_steps("step_decay", "step_size", step_size);
    require(gamma > 0 && gamma <= 1, "step_decay", "gamma", "above 0 and at most 1", gamma);
    return [=](std::size_t step) { return rate * std::pow(gamma, static_cast<double>(step / step_size)); };
}

RateSchedule one_cycle(double max_rate, std::size_t steps, const OneCycleOptions& options) {
    require_rate("one_cycle", "max_rate", max_rate);
    require_steps("one_cycle", "steps", steps, 2);
    require(options.pct_start > 0 && options.pct_start < 1, "one_cycle", "pct_start", "above 0 and below 1",
            options.pct_start);
    require_rate("one_cycle", "div_factor", options.div_factor);
    require_rate("one_cycle", "final_div_factor", options.final_div_factor);
    const double first = max_rate / options.div_factor, lowest = first / options.final_div_factor;
    const double end = static_cast<double>(steps) - 1, top = options.pct_start * static_cast<double>(steps) - 1;
    return [=](std::size_t step) {
        const double at = static_cast<double>(step);
        if (at >= end)
            return lowest;
        if (at <= top && top > 0)
            return half_cosine(first, max_rate, at / top);
        return half_cosine(max_rate, lowest, (at - top) / (end - top));
    };
}

RateSchedule fit_one_cycle(double max_rate, std::size_t steps, const FitOneCycleOptions& options) {
    require_rate("fit_one_cycle", "max_rate", max_rate);
    require_steps("fit_one_cycle", "steps", steps);
    require(options.pct_start > 0 && options.pct_start < 1, "fit_one_cycle", "pct_start", "above 0 and below 1",
            options.pct_start);
    require_rate("fit_one_cycle", "div", options.div);
    require_rate("fit_one_cycle", "div_final", options.div_final);
    return [=](std::size_t step) {
        const double at = static_cast<double>(step) / static_cast<double>(steps);
        if (at >= 1)
            return max_rate / options.div_final;
        if (at < options.pct_start)
            return half_cosine(max_rate / options.div, max_rate, at / options.pct_start);
        return half_cosine(max_rate, max_rate / options.div_final, (at - options.pct_start) / (1 - options.pct_start));
    };
}

}   // namespace drawpoint
