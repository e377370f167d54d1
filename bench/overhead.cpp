// Measures what the loader costs when there is nothing to load: a batch of 64 rows of 4 floats, recorded or not, and a
// batch of 64 ready tensors compared with a memcpy of the same rows into a ring of batches. The benchmarks run in
// turns.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

namespace {

using namespace drawpoint;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t batch_size = 64;
constexpr SampleLayout tiny{.rank = 1, .shape = {4}}, tensor{.rank = 3, .shape = {3, 224, 224}};

/// `count` rows, written once so that their pages are resident.
std::vector<float> make_rows(std::size_t count, const SampleLayout& layout) {
    std::vector<float> rows(count * layout.values());
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<float>(i % 1021);
    return rows;
}

const std::vector<float>& tiny_rows() {
    static const std::vector<float> rows = make_rows(std::size_t{1} << 18, tiny);
    return rows;
}

const std::vector<float>& tensor_rows() {
    static const std::vector<float> rows = make_rows(512, tensor);
    return rows;
}

/// The time of a pass from its first batch on; waking the workers is not in it.
Awaitable<Seconds> time_pass(DataLoader& loader, std::size_t epoch) {
    const EpochOptions options{.next_epoch = true};
    auto pass = loader.epoch(epoch, options);
    const std::size_t batches = pass.size().value();
    {
        auto first = co_await pass.next();
        benchmark::DoNotOptimize(first);
    }
    const auto begin = Clock::now();
    for (std::size_t i = 1; i < batches; ++i) {
        auto batch = co_await pass.next();
        benchmark::DoNotOptimize(batch);
    }
    co_return Clock::now() - begin;
}

/// Reports what a batch took.
void report(benchmark::State& state, double seconds, std::size_t batches) {
    state.counters["us_per_batch"] = seconds * 1e6 / static_cast<double>(batches);
}

void run_loader(benchmark::State& state, const std::vector<float>& rows, const SampleLayout& layout,
                const Sampler& order, std::size_t depth) {
    Recorder recorder;
    Runtime runtime{{.record = state.range(1) != 0}, recorder};
    const TensorRows source{std::as_bytes(std::span{rows}), layout};
    const LoaderOptions options{
        .batch_size = batch_size, .num_workers = static_cast<std::size_t>(state.range(0)), .prefetch_depth = depth};
    DataLoader loader{runtime, source, order, options};
    std::size_t epoch = 0, batches = 0;
    double seconds = 0;
    run(runtime, time_pass(loader, epoch++));   // warms slots and workers up
    for (auto _ : state) {
        const double pass = run(runtime, time_pass(loader, epoch++)).count();
        state.SetIterationTime(pass);
        seconds += pass;
        batches += loader.batches_per_epoch() - 1;
    }
    report(state, seconds, batches);
}

void tiny_batches(benchmark::State& state) {
    run_loader(state, tiny_rows(), tiny, SequentialSampler{tiny_rows().size() / tiny.values()}, 8);
}

void tensor_batches(benchmark::State& state) {
    run_loader(state, tensor_rows(), tensor, RandomSampler{tensor_rows().size() / tensor.values(), 7}, 4);
}

void memcpy_ring(benchmark::State& state) {
    const std::size_t values = tensor.values(), count = tensor_rows().size() / values;
    std::vector<std::uint64_t> order(count);
    std::vector<std::vector<float>> ring(5, std::vector<float>(batch_size * values));
    std::size_t epoch = 0, batches = 0;
    double seconds = 0;
    for (auto _ : state) {
        RandomSampler{count, 7}.order(epoch++, order);
        const auto begin = Clock::now();
        for (std::size_t i = batch_size; i < count; ++i) {   // the number of batches that time_pass() counts
            float* slot = ring[i / batch_size % ring.size()].data() + i % batch_size * values;
            std::memcpy(slot, tensor_rows().data() + order[i] * values, values * sizeof(float));
            benchmark::ClobberMemory();
        }
        const double pass = Seconds{Clock::now() - begin}.count();
        state.SetIterationTime(pass);
        seconds += pass;
        batches += count / batch_size - 1;
    }
    report(state, seconds, batches);
}

const std::vector<std::string> settings{"workers", "recorded"};
BENCHMARK(tiny_batches)->ArgNames(settings)->ArgsProduct({{1, 2}, {0, 1}})->UseManualTime()->Iterations(8);
BENCHMARK(tensor_batches)->ArgNames(settings)->ArgsProduct({{1, 2}, {0, 1}})->UseManualTime()->Iterations(6);
BENCHMARK(memcpy_ring)->UseManualTime()->Iterations(6);

/// Prints the medians at the end: the cost of a batch, the cost of recording it, and the ratio to a memcpy.
class Medians final : public benchmark::ConsoleReporter {
public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs)
            if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median")
                us_[run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args)] =
                    run.counters.at("us_per_batch");
    }
    void print() const {
        const auto copy = us_.find("memcpy_ring");
        for (const auto& [name, us] : us_) {
            std::printf("%-40s %10.3f us a batch", name.c_str(), us);
            const std::size_t recorded = name.find("recorded:1");
            if (recorded != std::string::npos)
                if (const auto bare = us_.find(name.substr(0, recorded) + "recorded:0"); bare != us_.end())
                    std::printf("  %.3f of unrecorded", us / bare->second);
            if (name.starts_with("tensor") && copy != us_.end())
                std::printf("  %.3f of memcpy's rate", copy->second / us);
            std::printf("\n");
        }
    }

private:
    std::map<std::string, double> us_;
};

}   // namespace

int main(int argc, char** argv) {
    // Options on the command line come later and override these.
    char turns[] = "--benchmark_enable_random_interleaving=true", repetitions[] = "--benchmark_repetitions=7",
         brief[] = "--benchmark_report_aggregates_only=true";
    std::vector<char*> arguments{argv[0], turns, repetitions, brief};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
    const char* format = std::getenv("BENCHMARK_FORMAT");
    if (format && std::string{format} == "json") {
        benchmark::RunSpecifiedBenchmarks();
        return 0;
    }
    Medians medians;
    benchmark::RunSpecifiedBenchmarks(&medians);
    medians.print();
}
