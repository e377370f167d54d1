// A loop that computes between its draws, compared with its bounds: computing alone, and producing alone.
#include <algorithm>
#include <chrono>
#include <thread>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include "loader.hpp"

namespace drawpoint::bench {
namespace {

using Clock = std::chrono::steady_clock;

void spin(std::chrono::nanoseconds time) {
    const auto end = Clock::now() + time;
    while (Clock::now() < end) {
    }
}

/// Computes one step: keeps the loop's core busy, or waits as for a GPU.
void compute(const Workload& w) {
    if (w.variant.starts_with("busy"))
        spin(std::chrono::nanoseconds{w.compute_ns});
    else
        std::this_thread::sleep_for(std::chrono::nanoseconds{w.compute_ns});
}

struct PassTimes {
    std::chrono::nanoseconds wall{}, computing{};
};

/// Times a pass from its first to its last batch: between them, as many batches are made as steps are computed, and
/// what comes before occurs once for any number of steps. Computing counts with its measured time, since a wait takes
/// longer than requested, most of all on busy CPUs.
Awaitable<PassTimes> time_pass(DataLoader& loader, std::size_t epoch, const Workload& w, bool computes,
                               const std::function<bool(const BatchView&)>& see) {
    auto pass = loader.epoch(epoch);
    const std::size_t batches = pass.size().value();
    PassTimes times;
    Clock::time_point begin;
    for (std::size_t i = 0; i < batches; ++i) {
        auto batch = co_await pass.next();
        const auto drawn = Clock::now();
        if (i == 0)
            begin = drawn;
        times.wall = drawn - begin;
        if (!computes)
            continue;
        if (i + 1 < batches) {
            compute(w);
            times.computing += Clock::now() - drawn;
        }
        if (!see({reinterpret_cast<const float*>(batch->data().data()), batch->targets()}))
            break;
    }
    co_return times;
}

class DrawpointConsumer final : public Loader {
public:
    explicit DrawpointConsumer(const Workload& w)
        : workload_{w},
          runtime_{{.max_threads = w.num_workers}, recorder_},
          source_{from_function(w.items, SampleLayout{.rank = 1, .shape = {4}}, "compute",
                                [time = std::chrono::nanoseconds{w.item_ns}](SampleView& sample) {
                                    spin(time);
                                    std::ranges::fill(sample.floats(), static_cast<float>(sample.index));
                                    *sample.target = static_cast<std::int64_t>(sample.index);
                                })},
          order_{w.items, w.seed},
          loader_{runtime_,
                  source_,
                  order_,
                  {.batch_size = w.batch_size, .num_workers = w.num_workers, .prefetch_depth = w.prefetch_depth}} {}

    void pass(std::size_t epoch, bool /*more*/, const std::function<bool(const BatchView&)>& see) override {
        const PassTimes production = run(runtime_, time_pass(loader_, epoch, workload_, false, see));
        const PassTimes both = run(runtime_, time_pass(loader_, epoch, workload_, true, see));
        times_.wall_ns += both.wall.count();
        times_.bound_ns += std::max(production.wall, both.computing).count();
    }

    Times take_times() override { return std::exchange(times_, {}); }

    std::string describe() const override {
        return "recording into memory, depth " + std::to_string(workload_.prefetch_depth) + ", compute " +
               std::to_string(workload_.compute_ns / 1000) + " us, item " + std::to_string(workload_.item_ns) + " ns";
    }

private:
    Workload workload_;
    Recorder recorder_;
    Runtime runtime_;
    FunctionRows source_;
    RandomSampler order_;
    DataLoader loader_;
    Times times_;
};

}   // namespace

std::unique_ptr<Loader> make_drawpoint_consumer(const Workload& workload) {
    return std::make_unique<DrawpointConsumer>(workload);
}

}   // namespace drawpoint::bench
