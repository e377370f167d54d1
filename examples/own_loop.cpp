// A training loop of one's own, without fit: the draw is one co_await, and LoopTrack accounts for every piece of the time.
// What it trains is a straight line through noisy points.
#include <cstdio>
#include <iostream>

#include <drawpoint/drawpoint.hpp>

namespace {

struct Line {
    float slope = 0, intercept = 0;

    /// One step of gradient descent on the squared error; returns the mean error.
    double step(std::span<const float> points, float rate) {
        float error = 0, slope_gradient = 0, intercept_gradient = 0;
        for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
            const float difference = slope * points[i] + intercept - points[i + 1];
            error += difference * difference;
            slope_gradient += difference * points[i];
            intercept_gradient += difference;
        }
        const auto count = static_cast<float>(points.size() / 2);
        slope -= rate * slope_gradient / count;
        intercept -= rate * intercept_gradient / count;
        return static_cast<double>(error / count);
    }
};

drawpoint::Awaitable<void> train(Line& line, drawpoint::DataLoader& loader, drawpoint::Recorder& recorder) {
    using drawpoint::Span;
    constexpr std::uint32_t epochs = 10;
    drawpoint::LoopTrack track{recorder};
    track.begin_pass(drawpoint::PassKind::fit, 0);
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        track.begin_pass(drawpoint::PassKind::epoch, epoch);
        auto pass = loader.epoch(epoch, {.next_epoch = epoch + 1 < epochs});   // prefetches into the next one
        track.mark(Span::between);
        track.begin_pass(drawpoint::PassKind::train, epoch);
        for (std::uint32_t i = 0; i < *pass.size(); ++i) {
            track.begin_step(drawpoint::Phase::train, epoch, i);
            auto batch = co_await pass.next();   // the draw: all waiting for data is here
            track.mark_until(Span::starved, batch->draw_stamps().offered_ns);   // the batch did not exist yet
            track.mark_until(Span::handoff, batch->draw_stamps().taken_ns);     // it did, but the loop had not resumed
            track.end_draw(static_cast<std::uint32_t>(batch->size()));

            const auto* points = reinterpret_cast<const float*>(batch->data().data());
            const double loss = line.step({points, batch->data().size() / sizeof(float)}, 0.5F);
            track.mark(Span::forward);
            track.end_step(drawpoint::StepStatus::complete, loss);
            batch.reset();   // back to the loader
            track.mark(Span::between);
        }
        track.end_pass();
        track.end_pass();
    }
    track.end_pass();
}

}   // namespace

int main() {
    drawpoint::Recorder recorder;   // without a file
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = drawpoint::from_function(512, {drawpoint::ScalarType::float32, 1, {2}}, "generate",
                                                 [](drawpoint::SampleView& sample) {
                                                     const double x = 2 * sample.random.uniform() - 1;
                                                     const double noise = sample.random.uniform() - 0.5;
                                                     sample.floats()[0] = static_cast<float>(x);
                                                     sample.floats()[1] = static_cast<float>(3 * x + 1 + 0.1 * noise);
                                                 });
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 64, .num_workers = 2, .prefetch_depth = 4}};

    Line line;
    drawpoint::run(runtime, train(line, loader, recorder));

    const drawpoint::Ledger ledger = recorder.ledger();
    std::cout << drawpoint::to_text(drawpoint::summarize(ledger));
    std::printf("y = %.1f x + %.1f after %zu steps, %lld ns unaccounted for\n", static_cast<double>(line.slope),
                static_cast<double>(line.intercept), ledger.steps.size(),
                static_cast<long long>(drawpoint::max_residual_ns(ledger)));
}
