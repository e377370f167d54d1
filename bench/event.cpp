// Measures what an event of the training loop costs: without callback and recorder, with a recorder, and with a
// recorder and two callbacks that look at the clock's last reading at every event. The last lines print what a step's
// events take of a step of 1 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/loop/callback.hpp>

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;

constexpr int step_events = 9;     // what `fit` fires in a training step without a cancel
constexpr int lap_steps = 2'000;   // few enough to fit into a ring of `ring_records`
constexpr std::uint32_t ring_records = 1u << 17;

/// Stamps every event, as a profiler that keeps its own durations does.
class Stamps final : public Callback {
public:
    explicit Stamps(int order) noexcept : order_{order} {}
    [[nodiscard]] std::string_view name() const noexcept override { return "Stamps"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] EventSet events() const noexcept override { return EventSet::all(); }
    void on(Event event, LoopState& state) override { last_[static_cast<std::size_t>(event)] = state.track->last_ns(); }

private:
    int order_;
    std::array<std::int64_t, event_count> last_{};
};

/// Fires a step's events as `fit` does: the events are known at compile time, but the list and the track are not, since
/// the work in between may change them.
[[gnu::noinline]] void fire_events(CallbackList& callbacks, LoopState& state, LoopTrack& track) {
    const auto fire = [&](Event event) {
        callbacks.fire(event, state, track);
        benchmark::ClobberMemory();
    };
    fire(Event::before_draw), fire(Event::before_batch), fire(Event::after_pred), fire(Event::after_loss);
    fire(Event::before_backward), fire(Event::after_backward), fire(Event::before_step), fire(Event::after_step);
    fire(Event::after_batch);
}

void fire_step(CallbackList& callbacks, LoopState& state, LoopTrack& track, std::uint32_t batch) {
    track.begin_step(Phase::train, 0, batch);
    track.end_draw(64);
    fire_events(callbacks, state, track);
    track.end_step(StepStatus::complete, 0.5);
}

/// The same step without events; the difference is what the events cost.
void bare_step(LoopTrack& track, std::uint32_t batch) {
    track.begin_step(Phase::train, 0, batch);
    track.end_draw(64);
    track.end_step(StepStatus::complete, 0.5);
}

double thread_cpu_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double>& values) {   // since a lap may be interrupted
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void neither(benchmark::State& bench) {
    CallbackList callbacks;
    LoopState state;
    LoopTrack track{nullptr};
    for (auto _ : bench)
        fire_events(callbacks, state, track);
    bench.counters["ns_per_event"] = benchmark::Counter(
        1e-9 * step_events, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void recorded(benchmark::State& bench) {
    Recorder recorder{RecorderOptions{.ring_records = ring_records}};
    CallbackList callbacks;
    Stamps first{-8}, second{49};
    for (int i = 0; i < bench.range(0); ++i)
        callbacks.add(i == 0 ? first : second);
    LoopTrack track{recorder};
    LoopState state;
    state.track = &track;
    track.begin_pass(PassKind::train, 0);
    const auto lap = [&](bool events) {
        const double begin = thread_cpu_s();
        for (std::uint32_t i = 0; i < lap_steps; ++i)
            events ? fire_step(callbacks, state, track, i) : bare_step(track, i);
        return (thread_cpu_s() - begin) / lap_steps;
    };
    const auto settle = [&] {   // waits until the writer has taken everything
        for (std::uint64_t before = recorder.state().events + 1, now; before != (now = recorder.state().events);
             before = now)
            std::this_thread::sleep_for(100ms);
    };
    lap(true);   // touches the ring's pages first
    std::vector<double> step_s, bare_s;
    for (auto _ : bench) {
        settle();
        bare_s.push_back(lap(false));
        settle();
        step_s.push_back(lap(true));
        bench.SetIterationTime(step_s.back());
    }
    if (recorder.state().dropped != 0)
        bench.SkipWithError("the ring was full");
    track.end_steps();
    track.end_pass();
    bench.counters["ns_per_event"] = (median(step_s) - median(bare_s)) / step_events * 1e9;
}

BENCHMARK(neither);
BENCHMARK(recorded)->ArgName("callbacks")->Arg(0)->Arg(1)->Arg(2)->UseManualTime()->Iterations(20);

/// Collects the cost of an event of each kind and prints what a step's events add up to.
class Limits final : public benchmark::ConsoleReporter {
public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs)
            if (run.counters.contains("ns_per_event") &&   // not one that was skipped
                (run.run_type == Run::RT_Aggregate ? run.aggregate_name == "median" : run.repetitions <= 1))
                ns_[run.run_name.function_name + (run.run_name.args.empty() ? "" : " " + run.run_name.args)] =
                    run.counters.at("ns_per_event");
    }
    void print() const {
        for (const auto& [name, ns] : ns_) {
            const double limit = name == "neither" ? 1 : 25, step_ns = 1e6;
            std::printf("%-22s %6.2f ns an event (limit %2.0f)   %d events of a 1 ms step: %.4f %% (limit 0.1)\n",
                        name.c_str(), ns, limit, step_events, 100 * ns * step_events / step_ns);
        }
    }

private:
    std::map<std::string, double> ns_;
};

}   // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    Limits limits;
    benchmark::RunSpecifiedBenchmarks(&limits);
    limits.print();
}
