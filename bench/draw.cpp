// Measures what a ready draw costs: `co_await pass.next()` and giving the batch back, with and without recording,
// compared with awaiting a bare child coroutine in the same run. The whole program runs on one core, so that what the
// worker wrote is in the loop's cache.
#include <benchmark/benchmark.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/loader/data_loader.hpp>

namespace {

using namespace drawpoint;

/// Draws timed in a row: fewer than 28 (of 56 slots), since the 28th batch given back wakes a sleeping worker.
constexpr int draws = 24;

class TinyRows final : public SampleSource {
public:
    std::size_t size() const noexcept override { return std::size_t{1} << 22; }
    SampleLayout layout() const noexcept override { return {.rank = 1, .shape = {4}}; }
    std::vector<std::string> stages() const override { return {"copy"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        const float value = static_cast<float>(task.index);
        std::memcpy(task.data.data(), &value, sizeof value);
        *task.target = 1;
        fills.fetch_add(1, std::memory_order_relaxed);
    }
    mutable std::atomic<std::uint64_t> fills{0};
};

using Seconds = std::chrono::duration<double>;

/// The times of a benchmark's rounds. Takes the median, since a round may be interrupted.
class Rounds {
public:
    explicit Rounds(benchmark::State& state) : state_{&state} {
        seconds_.reserve(static_cast<std::size_t>(state.max_iterations));
    }
    ~Rounds() {
        if (seconds_.empty())
            return;
        const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
        std::nth_element(seconds_.begin(), middle, seconds_.end());
        state_->counters["ns_per_draw"] = *middle * 1e9 / draws;
    }
    void begin() { begin_ = std::chrono::steady_clock::now(); }
    void end() {
        seconds_.push_back(Seconds{std::chrono::steady_clock::now() - begin_}.count());
        state_->SetIterationTime(seconds_.back());
    }

private:
    benchmark::State* state_;
    std::vector<double> seconds_;
    std::chrono::steady_clock::time_point begin_;
};

[[gnu::noinline]] Awaitable<std::optional<int>> child(int i) { co_return i; }

Awaitable<void> draw_child(benchmark::State& state) {
    Rounds rounds{state};
    for (auto _ : state) {
        rounds.begin();
        for (int i = 0; i < draws; ++i) {
            auto value = co_await child(i);
            benchmark::DoNotOptimize(value);
        }
        rounds.end();
    }
}

Awaitable<void> draw_batches(benchmark::State& state, const TinyRows& rows, DataLoader& loader) {
    Rounds rounds{state};
    const std::uint64_t before = rows.fills;   // the worker may fill slots as soon as there is a pass
    std::optional<DataLoader::Pass> pass{loader.epoch(0)};
    const std::uint64_t window = loader.options().prefetch_depth + 1;
    std::uint64_t drawn = 0;
    for (auto _ : state) {
        if (drawn + 3 * window > *pass->size()) {
            state.SkipWithError("the pass is too short");
            break;
        }
        // Wakes the worker and waits until it has filled every slot. It may sleep again before that; then it is woken
        // once more.
        const auto is_filled = [&] { return rows.fills - before >= drawn + window; };
        do {
            const std::uint64_t wakes = loader.counters().worker_wakes;
            while (drawn > 0 && loader.counters().worker_wakes == wakes) {
                auto batch = co_await pass->next();
                ++drawn;
            }
            const auto begin = std::chrono::steady_clock::now();
            do
                std::this_thread::yield();   // if it slept, other threads would replace what is in the cache
            while (!is_filled() && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds{100});
        } while (!is_filled());
        rounds.begin();
        for (int i = 0; i < draws; ++i) {
            auto batch = co_await pass->next();
            benchmark::DoNotOptimize(batch);
        }
        rounds.end();
        drawn += draws;
    }
    state.counters["suspensions"] = static_cast<double>(loader.counters().suspensions);
}

void bare_child(benchmark::State& state) {
    Recorder recorder;
    Runtime runtime{{}, recorder};
    run(runtime, draw_child(state));
}

void ready_next(benchmark::State& state) {
    Recorder recorder;
    Runtime runtime{{.record = state.range(0) != 0}, recorder};
    const TinyRows rows;
    const SequentialSampler sampler{rows.size()};
    DataLoader loader{runtime, rows, sampler, {.num_workers = 1, .prefetch_depth = 55}};
    run(runtime, draw_batches(state, rows, loader));
}

BENCHMARK(bare_child)->UseManualTime()->Iterations(200);
BENCHMARK(ready_next)->ArgName("recorded")->Arg(0)->Arg(1)->UseManualTime()->Iterations(200);

/// Collects the medians and prints their ratios to the bare child.
class Ratios final : public benchmark::ConsoleReporter {
public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs)
            if (run.counters.contains("ns_per_draw") &&   // not one that was skipped
                (run.run_type == Run::RT_Aggregate ? run.aggregate_name == "median" : run.repetitions <= 1))
                ns_[run.run_name.function_name + " " + run.run_name.args] = run.counters.at("ns_per_draw");
    }
    void print() const {
        const auto child = ns_.find("bare_child ");
        if (child == ns_.end())
            return;
        for (const auto& [name, ns] : ns_)
            std::printf("%-24s %6.1f ns  %.2f x bare child\n", name.c_str(), ns, ns / child->second);
    }

private:
    std::map<std::string, double> ns_;
};

}   // namespace

int main(int argc, char** argv) {
    cpu_set_t cores;
    sched_getaffinity(0, sizeof cores, &cores);
    for (int core = CPU_SETSIZE - 1, kept = 0; core >= 0; --core)
        if (CPU_ISSET(static_cast<std::size_t>(core), &cores) && kept++ > 0)
            CPU_CLR(static_cast<std::size_t>(core), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    // One run takes 30 ms, as long as a shared host is slow for. Options on the command line override these.
    char repetitions[] = "--benchmark_repetitions=100", brief[] = "--benchmark_report_aggregates_only=true";
    std::vector<char*> arguments{argv[0], repetitions, brief};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 2;
    Ratios ratios;
    benchmark::RunSpecifiedBenchmarks(&ratios);
    ratios.print();
}
