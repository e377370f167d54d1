// Tunes a loader while it trains: reads are slow, the loader starts with one worker, and a callback finds out how many
// it needs. Tuning loses, repeats and reorders no sample.
#include <chrono>
#include <cstdio>
#include <thread>

#include "line.hpp"

namespace {

/// Points of the line; reading one takes 2 ms.
auto far_away(std::size_t count) {
    return drawpoint::from_function(count, {drawpoint::ScalarType::float32, 1, {2}}, "read",
                                    [](drawpoint::SampleView& sample) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds{2});
                                        const double x = 2 * sample.random.uniform() - 1;
                                        sample.floats()[0] = static_cast<float>(x);
                                        sample.floats()[1] = static_cast<float>(3 * x + 1);
                                    });
}

}   // namespace

int main() {
    drawpoint::Recorder recorder{{.ledger_bytes = 0, .ledger_steps = 1000}};
    drawpoint::Runtime runtime{{.max_threads = 16}, recorder};
    const auto points = far_away(800);
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 4, .num_workers = 1}};

    drawpoint::OnlineTuner tuner{loader, recorder, {.most_workers = 16}};
    drawpoint::CallbackList callbacks;
    callbacks.add(tuner);
    Line line;
    drawpoint::run(runtime, drawpoint::fit(line, loader, {.epochs = 4}, callbacks, recorder));

    for (const drawpoint::TunerDecision& decision : tuner.decisions())
        std::printf("step %zu: %zu workers, depth %zu: predicted %+.0f %%, obtained %+.0f %%, %s\n", decision.step,
                    decision.to.num_workers, decision.to.prefetch_depth, 100 * decision.predicted_gain.median,
                    100 * decision.obtained_gain, decision.kept ? "kept" : "taken back");
    std::printf("from 1 worker to %zu, depth %zu\n", loader.options().num_workers, loader.options().prefetch_depth);
}
