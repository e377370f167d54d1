#include <drawpoint/bench/experiment/function.hpp>

#include <atomic>
#include <utility>

#include "bench/experiment/process_metrics.hpp"

namespace drawpoint::bench {

namespace {

class Function final : public Contender {
public:
    Function(std::string name, std::function<void()> function)
        : name_{std::move(name)}, function_{std::move(function)} {}

    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return process_metrics(); }

    Turn take_turn(std::size_t runs) override {
        if (cancelled_.load(std::memory_order_relaxed))
            throw Cancelled{};
        const ProcessMeter meter;
        for (std::size_t run = 0; run < runs; ++run)
            function_();
        return {.values = meter.values(runs)};
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
