#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include <signal.h>

namespace drawpoint {

/// Handles Ctrl-C (SIGINT), SIGTERM and, unless it is ignored, SIGHUP: the first asks to stop, the second ends the
/// process at once with exit code 130. A thread of its own waits for them, so nothing runs inside a signal handler.
/// Must be made before any other thread: threads inherit that these signals are blocked.
class Signals {
public:
    /// `on_first` runs once, on the waiting thread, with the number of the signal. It must be thread-safe and must not
    /// throw. Throws std::system_error.
    explicit Signals(std::function<void(int)> on_first);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

private:
    void wait();

    std::function<void(int)> on_first_;
    std::atomic<bool> stopped_{false};
    int signals_ = -1, end_ = -1;   // file descriptors
    sigset_t before_{};             // which signals this thread blocked
    std::thread thread_;
};

}   // namespace drawpoint
