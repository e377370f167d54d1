#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint::test {

struct ConstantRun {
    std::size_t batch_size = 1;
    Demand sample{}, compute{};
    std::size_t steps = 1;
};

/// A run with one worker and depth 2 on eight cores, whose samples and steps are all alike.
inline RecordedRun constant_run(const ConstantRun& of) {
    RecordedRun run;
    run.pipeline = "train";
    run.stages = {"make"};
    run.setting = {.num_workers = 1, .prefetch_depth = 2, .batch_size = of.batch_size};
    run.cores = 8;
    for (std::size_t i = 0; i < of.steps; ++i) {
        for (std::size_t j = 0; j < of.batch_size; ++j) {
            SampleDemand sample{.index = run.samples.size(), .batch = static_cast<std::uint32_t>(i)};
            sample.stages[0] = of.sample;
            run.samples.push_back(sample);
        }
        run.batches.push_back({.bytes = 1000 * of.batch_size, .size = static_cast<std::uint32_t>(of.batch_size)});
        run.steps.push_back({.compute = of.compute, .size = static_cast<std::uint32_t>(of.batch_size)});
    }
    return run;
}

/// A random run: two stages, lognormal samples, 1 to 5 workers, 1 to 4 cores, 60 steps of 1 to 6 samples.
inline RecordedRun random_run(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
        return least + random() % (most - least + 1);
    };
    RecordedRun run = constant_run({.batch_size = pick(1, 6), .steps = 60});
    run.stages = {"read", "decode"};
    run.setting.num_workers = pick(1, 5);
    run.setting.prefetch_depth = pick(1, 6);
    run.cores = static_cast<double>(pick(2, 8)) / 2;
    std::lognormal_distribution<double> long_tail{0, static_cast<double>(pick(1, 12)) / 10};
    const double scale = std::exp2(static_cast<double>(pick(14, 22)));
    for (SampleDemand& sample : run.samples) {
        const double length = long_tail(random) * scale;
        sample.stages[0] = {std::llround(length * 0.05), std::llround(length * 0.6)};
        sample.stages[1] = {std::llround(length), 0};
    }
    const double compute = scale * static_cast<double>(pick(1, 12)) / 2;
    const bool on_cores = pick(0, 1) != 0;
    for (StepDemand& step : run.steps) {
        const std::int64_t ns = std::llround(long_tail(random) * compute);
        step.compute = on_cores ? Demand{ns, 0} : Demand{0, ns};
    }
    return run;
}

/// Options to replay this setting at no cost besides the demands.
inline ReplayOptions exact(const LoaderSetting& setting) {
    return {.setting = setting, .costs = {.wake_ns = 0, .look_ns = 0, .hand_over_ns = 0}};
}

}   // namespace drawpoint::test
