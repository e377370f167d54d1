// Writes your own callback: a class with one member function for each event it handles. This one stops the training
// when the loss is low enough, and remembers the longest draw. Callbacks may be added and removed while the loop runs.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "line.hpp"

namespace {

class StopAt final : public drawpoint::EventCallback<StopAt> {
public:
    explicit StopAt(double loss) : loss_{loss} {}

    void before_fit() { std::puts("begins"); }
    void after_batch(const drawpoint::LoopState& state) {
        longest_draw_ns_ = std::max(longest_draw_ns_, state.track->step().draw_ns);
        if (state.loss && *state.loss < loss_)
            throw drawpoint::CancelFit{"low enough"};   // the loop goes on with after_cancel_fit and after_fit
    }
    void after_cancel_fit(const drawpoint::LoopState& state) {
        std::printf("%s in step %zu, longest draw %lld ns\n", state.cancel_reason.c_str(), state.train_steps,
                    static_cast<long long>(longest_draw_ns_));
    }

private:
    double loss_;
    std::int64_t longest_draw_ns_ = 0;
};

}   // namespace

int main() {
    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = noisy_points(4096);
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 64, .num_workers = 2}};

    StopAt stop_at{0.002};
    drawpoint::CallbackList callbacks;
    callbacks.add(stop_at);
    std::cout << drawpoint::show_training_loop(callbacks);   // where in the loop each callback acts

    Line line;
    drawpoint::run(runtime, drawpoint::fit(line, loader, {.epochs = 100}, callbacks, recorder));
    std::printf("y = %.1f x + %.1f\n", static_cast<double>(line.slope), static_cast<double>(line.intercept));
}
