// Trains while TensorBoard's "Capture profile", or xprof's client, can ask for what it does: at 127.0.0.1:PORT, as long
// as the profiler lives. usage: capture_profile [PORT [EPOCHS]]
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <drawpoint/loop/profilers/profiler_callback.hpp>
#include <drawpoint/loop/profilers/xla.hpp>

#include "line.hpp"

/// Takes a millisecond a step, as a small model on a device does.
struct SlowLine : Line {
    void backward() { std::this_thread::sleep_for(std::chrono::milliseconds{1}); }
};

int main(int argc, char** argv) {
    const int port = argc > 1 ? std::atoi(argv[1]) : 9001;
    const std::size_t epochs = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 2;

    drawpoint::Recorder recorder{"captured.pftrace"};   // what is captured is cut out of it
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = noisy_points(512);
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 16, .num_workers = 2}};

    drawpoint::XlaProfiler profiler{recorder, port};   // drawpoint-serve, as a process of its own, answers there
    drawpoint::ProfilerCallback driver{profiler};
    drawpoint::CallbackList callbacks;
    driver.add_to(callbacks);

    SlowLine line;
    drawpoint::run(runtime, drawpoint::fit(line, loader, {.epochs = epochs}, callbacks, recorder));
    std::cout << "could be captured on port " << port << '\n';
}
