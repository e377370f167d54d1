#include <drawpoint/bench/experiment/function.hpp>

#include <atomic>
#include <utility>

#include "bench/experiment/process_metrics.hpp"

namespace drawpoint::bench {

namespace {

class Function final : public PausingContender {
public:
    Function(std::string name, std::function<void()> function)
        : name_{std::move(name)}, function_{std::move(function)} {}

    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return process_metrics(); }

    void begin(std::size_t) override {
        meter_ = {};
        runs_ = 0;
    }
    void run(std::size_t runs) override {
        if (cancelled_.load(std::memory_order_relaxed))
            throw Cancelled{};
        meter_.start();
        for (std::size_t run = 0; run < runs; ++run)
            function_();
        meter_.stop();
        runs_ += runs;
    }
    void end() override {}
    Turn results() override { return {.values = meter_.values(runs_)}; }

    void cancel() noexcept override { cancelled_.store(true, std::memory_order_relaxed); }

private:
    std::string name_;
    std::function<void()> function_;
    std::atomic<bool> cancelled_ = false;
    ProcessMeter meter_;
    std::size_t runs_ = 0;   // that it has measured
};

}   // namespace

std::unique_ptr<Contender> make_function(std::string name, std::function<void()> function) {
    return std::make_unique<Function>(std::move(name), std::move(function));
}

}   // namespace drawpoint::bench
