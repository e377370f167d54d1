// Measures how fast and how accurately a run is replayed: records real loaders at one setting, predicts others, and
// runs those. Samples and steps only wait, so other load on the machine hardly matters.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;

struct Options {
    std::size_t steps = 150, batch_size = 8, rounds = 1;
    bool real_time = false;
};

// ---------------------------------------------------------------------------------------------- speed

RecordedRun made_up_run(const LoaderSetting& setting, bool waits, std::size_t steps) {
    RecordedRun run;
    run.stages = {"read", "decode"};
    run.setting = setting;
    run.cores = 2;
    CounterRng random{1, 0, 0};
    const auto ns = [&random](double mean) { return static_cast<std::int64_t>(mean * 2 * random.uniform()); };
    for (std::size_t i = 0; i < steps; ++i) {
        for (std::size_t j = 0; j < setting.batch_size; ++j) {
            SampleDemand sample{.index = run.samples.size(), .batch = static_cast<std::uint32_t>(i)};
            sample.stages[0] = {ns(5e4), waits ? ns(5e5) : 0};
            sample.stages[1] = {ns(5e5), 0};
            run.samples.push_back(sample);
        }
        run.batches.push_back({.bytes = 1 << 20});
        run.steps.push_back({.compute = {0, ns(5e5 * static_cast<double>(setting.batch_size))}});
    }
    return run;
}

void print_speed() {
    fmt::print("{:<44}{:>12}{:>16}{:>18}\n", "replayed", "events", "million/s", "with rows");
    struct Kind {
        const char* name;
        LoaderSetting setting;
        bool waits;
        std::size_t steps;
    };
    for (const Kind& kind : {Kind{"2 workers, batches of 16, computing", {2, 4, 16}, false, 4000},
                             Kind{"4 workers, batches of 64, waiting too", {4, 4, 64}, true, 800},
                             Kind{"16 workers, batches of 32, waiting too", {16, 8, 32}, true, 1500},
                             Kind{"4 workers, batches of 1", {4, 2, 1}, false, 40000}}) {
        const RecordedRun run = made_up_run(kind.setting, kind.waits, kind.steps);
        std::array<double, 2> best{};
        std::uint64_t events = 0;
        for (int round = 0; round < 7; ++round)
            for (const bool rows : {false, true}) {
                const auto begin = std::chrono::steady_clock::now();
                events = replay(run, {.setting = run.setting, .keep_rows = rows}).events;
                const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
                best[rows] = std::max(best[rows], static_cast<double>(events) / took.count());
            }
        fmt::print("{:<44}{:>12}{:>16.1f}{:>18.1f}\n", kind.name, events, best[0] * 1e-6, best[1] * 1e-6);
    }
}

// ---------------------------------------------------------------------------------------------- truth

/// Lets the timers of a waiting thread end within microseconds.
void wait_precisely() noexcept { ::prctl(PR_SET_TIMERSLACK, 1000); }
/// Also lets it run at once, whatever else uses the cores. A loader that only waits hardly needs them.
void wait_precisely_in_real_time() noexcept {
    wait_precisely();
    const sched_param lowest{.sched_priority = 1};
    ::sched_setscheduler(0, SCHED_FIFO, &lowest);
}

struct Workload {
    const char* name;
    std::chrono::nanoseconds (*sample)(double uniform, double other);
    std::chrono::nanoseconds step;
};

std::chrono::nanoseconds even(double, double) { return 2ms; }
std::chrono::nanoseconds heavy(double u, double v) {   // lognormal, sigma 0.8
    const double normal = std::sqrt(-2 * std::log(std::max(u, 1e-12))) * std::cos(6.283185307179586 * v);
    return std::chrono::nanoseconds{std::llround(2e6 * std::exp(0.8 * normal - 0.32))};
}
std::chrono::nanoseconds stragglers(double u, double) { return u < 0.01 ? 30ms : 1500us; }

constexpr std::array workloads{
    Workload{"even 2 ms, steps of 6 ms", even, 6ms}, Workload{"lognormal 2 ms, steps of 6 ms", heavy, 6ms},
    Workload{"1 % of 30 ms, steps of 5 ms", stragglers, 5ms}, Workload{"lognormal 2 ms, steps of 25 ms", heavy, 25ms}};

struct WaitingLearner {
    std::chrono::nanoseconds step;
    void begin_phase(bool) {}
    void forward(Batch&) { std::this_thread::sleep_for(step); }
    void loss(Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    [[nodiscard]] double loss_value() const { return 0; }
};

Ledger run_really(const Workload& workload, const Options& options, const LoaderSetting& setting) {
    Recorder recorder;
    Runtime runtime{{.workers = WorkerThreads::threads,
                     .on_worker_start = options.real_time ? wait_precisely_in_real_time : wait_precisely},
                    recorder};
    const auto rows = from_function(options.steps * options.batch_size, {ScalarType::float32, 1, {64}}, "wait",
                                    [&workload](SampleView& sample) {
                                        CounterRng random{5, 0, sample.index};
                                        const double u = random.uniform();
                                        std::this_thread::sleep_for(workload.sample(u, random.uniform()));
                                    });
    const SequentialSampler order{rows.size()};
    DataLoader loader{runtime, rows, order, options_of(setting)};
    WaitingLearner learner{workload.step};
    run(runtime, fit(learner, loader, FitOptions{}, recorder));
    return recorder.ledger();
}

/// Steps until all threads run and all slots are full.
constexpr std::size_t warm_up = 10;

std::int64_t wall_of(const Ledger& ledger) {
    std::int64_t sum = 0;
    for (const StepRow& row : std::span{ledger.steps}.subspan(warm_up))
        for (const SpanRow& span : ledger.spans_of(row))
            sum += span.ns;
    return sum;
}

struct Errors {
    std::vector<double> all;
    void add(double error) { all.push_back(std::abs(error)); }
    [[nodiscard]] double mean() const {
        double sum = 0;
        for (const double error : all)
            sum += error;
        return all.empty() ? 0 : sum / static_cast<double>(all.size());
    }
    [[nodiscard]] double p90() {
        std::ranges::sort(all);
        return all.empty() ? 0 : all[(all.size() - 1) * 9 / 10];
    }
};

void print_errors(const Options& options) {
    (options.real_time ? wait_precisely_in_real_time : wait_precisely)();
    Errors errors, own;
    fmt::print("\n{} steps of {} samples, recorded with 2 workers, depth 4; the first {} steps apart\n", options.steps,
               options.batch_size, warm_up);
    for (const Workload& workload : workloads) {
        fmt::print("\n{:<34}{:>8}{:>8}{:>8}{:>14}{:>14}{:>9}\n", workload.name, "workers", "depth", "order",
                   "predicted s", "real s", "error");
        const LoaderSetting recorded{.num_workers = 2, .prefetch_depth = 4, .batch_size = options.batch_size};
        const RecordedRun run = recorded_run(run_really(workload, options, recorded), warm_up);
        for (const auto& [workers, depth, free] :
             {std::tuple{2u, 4u, false}, std::tuple{1u, 2u, false}, std::tuple{2u, 1u, false},
              std::tuple{3u, 2u, false}, std::tuple{4u, 4u, false}, std::tuple{8u, 8u, false},
              std::tuple{4u, 4u, true}}) {
            LoaderSetting setting = recorded;
            setting.num_workers = workers;
            setting.prefetch_depth = depth;
            setting.order = free ? OrderRule::out_of_order() : OrderRule::in_order();
            const Replayed replayed = replay(run, {.setting = setting, .warm_up_steps = warm_up, .ends = true});
            const double predicted = static_cast<double>(replayed.wall_ns) * 1e-9;
            std::vector<double> walls;
            for (std::size_t round = 0; round < options.rounds; ++round)
                walls.push_back(static_cast<double>(wall_of(run_really(workload, options, setting))) * 1e-9);
            const double real = *std::ranges::min_element(walls);
            const double error = predicted / real - 1;
            ((setting == recorded) ? own : errors).add(error);
            fmt::print("{:<34}{:>8}{:>8}{:>8}{:>14.4f}{:>14.4f}{:>8.2f}%\n", "", workers, depth, free ? "free" : "kept",
                       predicted, real, 100 * error);
        }
    }
    fmt::print("\nsettings never recorded: mean |error| {:.2f} %, p90 {:.2f} %; the recorded one again: {:.2f} %\n",
               100 * errors.mean(), 100 * errors.p90(), 100 * own.mean());
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Speed of the replay, and its error against real loaders that only wait", "drawpoint bench replay"};
    app.add_option("--steps", options.steps, "a run [150]")->check(CLI::Range(2 * warm_up, std::size_t{100000}));
    app.add_option("--batch-size", options.batch_size, "samples a batch [8]")->check(CLI::Range(1, 1024));
    app.add_option("--rounds", options.rounds, "real runs a setting, of which the fastest counts [1]")
        ->check(CLI::Range(1, 100));
    app.add_flag("--real-time", options.real_time,
                 "the loaders run under SCHED_FIFO: for a machine that is busy; takes CAP_SYS_NICE");
    return bench::run_program(app, "replay", argc, argv, [&](const std::string&) {
        print_speed();
        print_errors(options);
        return 0;
    });
}
