// Writes your own training loop, without fit: the draw is one co_await, and LoopTrack accounts for every piece of the
// time. It trains a straight line through noisy points.
#include <cstdio>
#include <iostream>

#include "line.hpp"

namespace {

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
        for (std::uint32_t i = 0;; ++i) {
            track.begin_step(drawpoint::Phase::train, epoch, i);
            auto batch = co_await pass.next();   // the draw: all waiting for data is here
            if (!batch) {
                track.mark(Span::starved);
                track.end_of_data();
                break;
            }
            track.mark_until(Span::starved, batch->draw_stamps().offered_ns);   // the batch did not exist yet
            track.mark_until(Span::handoff, batch->draw_stamps().taken_ns);     // it did, but the loop had not resumed
            track.end_draw(static_cast<std::uint32_t>(batch->size()));

            line.forward(*batch);
            track.mark(Span::forward);
            line.loss(*batch);
            track.mark(Span::loss);
            line.opt_step();
            track.mark(Span::opt_step);
            track.end_step(drawpoint::StepStatus::complete, line.loss_value());
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
    drawpoint::Recorder recorder;   // writes no file
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = noisy_points(512);
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
