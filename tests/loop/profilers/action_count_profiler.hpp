#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint::test {

/// The example of Lightning's documentation: counts each action and keeps when it first began. Here the times are given
/// ("2022-01-05 09:08:07").
class ActionCountProfiler final : public Profiler {
public:
    explicit ActionCountProfiler(std::vector<std::string> stamps) : stamps_{std::move(stamps)} {}

    void start(std::string_view action) override {
        if (find(action) == actions_.end())
            actions_.push_back({std::string{action}, american(stamps_.at(actions_.size())), 0});
    }
    void stop(std::string_view action) override { ++find(action)->count; }

    [[nodiscard]] std::string summary() override {
        std::size_t width = 0;
        for (const Action& action : actions_)
            width = std::max(width, action.name.size());
        std::string text = "\nProfile Summary: \n";
        for (const Action& action : actions_)
            if (action.count > 1)
                text += action.name + std::string(width - action.name.size(), ' ') + " \t " + action.first + " \t " +
                        std::to_string(action.count) + " \n";
        return text;
    }
    void teardown(std::string_view stage) override {
        actions_.clear();
        Profiler::teardown(stage);
    }

private:
    struct Action {
        std::string name, first;
        std::size_t count;
    };
    std::vector<Action>::iterator find(std::string_view name) {
        return std::ranges::find(actions_, name, &Action::name);
    }
    static std::string american(const std::string& stamp) {
        return stamp.substr(5, 2) + "/" + stamp.substr(8, 2) + "/" + stamp.substr(0, 4) + ", " + stamp.substr(11);
    }

    std::vector<std::string> stamps_;
    std::vector<Action> actions_;
};

}   // namespace drawpoint::test
