// Writes your own profiler, like the action counter in Lightning's documentation: it notes when each action first
// happened and how often, and lists those that happened more than once. A profiler needs two functions and a summary.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <drawpoint/loop/profilers/profiler_callback.hpp>

#include "line.hpp"

namespace {

class ActionCountProfiler final : public drawpoint::Profiler {
public:
    using Profiler::Profiler;

    void start(std::string_view action) override {
        first_.try_emplace(std::string{action}, fmt::localtime(std::time(nullptr)));
    }
    void stop(std::string_view action) override { ++count_[std::string{action}]; }

    std::string summary() override {
        std::size_t width = 0;
        for (const auto& [action, count] : count_)
            width = std::max(width, action.size());
        std::string text = "\nProfile Summary: \n";
        for (const auto& [action, count] : count_)
            if (count > 1)
                text +=
                    fmt::format("{:<{}} \t {:%m/%d/%Y, %H:%M:%S} \t {} \n", action, width, first_.at(action), count);
        return text;
    }
    void teardown(std::string_view stage) override {
        count_.clear();
        first_.clear();
        Profiler::teardown(stage);
    }

private:
    std::map<std::string, std::tm> first_;
    std::map<std::string, int> count_;
};

}   // namespace

int main() {
    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = noisy_points(512);
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 64, .num_workers = 2}};

    ActionCountProfiler profiler;
    drawpoint::ProfilerCallback driver{profiler};   // starts and stops Lightning's actions at the loop's events
    drawpoint::CallbackList callbacks;
    driver.add_to(callbacks);

    Line line;
    drawpoint::run(runtime, drawpoint::fit(line, loader, {.epochs = 2}, callbacks, recorder));   // prints the summary
}
