#include <drawpoint/bench/experiment/function.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <sys/resource.h>
#include <time.h>

#include "bench/experiment/process_metrics.hpp"

namespace drawpoint::bench {

namespace {

double process_cpu_seconds() noexcept {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Function final : public Contender {
public:
    Function(std::string name, std::function<void()> function)
        : name_{std::move(name)}, function_{std::move(function)} {}

    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return process_metrics(); }

    std::vector<double> take_turn(std::size_t runs) override {
        if (cancelled_.load(std::memory_order_relaxed))
            throw Cancelled{};
        rusage before{}, after{};
        getrusage(RUSAGE_SELF, &before);
        const double cpu = process_cpu_seconds();
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t run = 0; run < runs; ++run)
            function_();
        const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
        const double used = process_cpu_seconds() - cpu;
        getrusage(RUSAGE_SELF, &after);
        const auto a_run = [&](long risen) { return static_cast<double>(risen) / static_cast<double>(runs); };
        // At least a nanosecond a turn, so that ratios exist.
        return {std::max(wall.count(), 1e-9) / static_cast<double>(runs),
                std::max(used, 1e-9) / static_cast<double>(runs),
                a_run(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt),
                a_run(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw)};
    }

    void cancel() noexcept override { cancelled_.store(true, std::memory_order_relaxed); }

private:
    std::string name_;
    std::function<void()> function_;
    std::atomic<bool> cancelled_ = false;
};

}   // namespace

std::unique_ptr<Contender> make_function(std::string name, std::function<void()> function) {
    return std::make_unique<Function>(std::move(name), std::move(function));
}

}   // namespace drawpoint::bench
