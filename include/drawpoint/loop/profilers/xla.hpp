#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint {

/// Records training_step, backward, validation_step, test_step and predict_step (the word after an action's last ".")
/// as regions; the last three as numbered steps, "validation_step#1" onwards. Other actions are no error and leave
/// nothing. One thread at a time. The recorder outlives it.
class XlaProfiler final : public Profiler {
public:
    /// `port`: throws std::invalid_argument, because the service that captures a running program is not there yet.
    explicit XlaProfiler(Recorder& recorder, std::optional<int> port = std::nullopt);
    void start(std::string_view action) override;
    void stop(std::string_view action) override;

private:
    struct Open {
        std::string action;
        std::uint32_t ticket;
    };
    Recorder* recorder_;
    std::vector<Open> open_;
    std::map<std::string, std::uint64_t, std::less<>> steps_;
};

}   // namespace drawpoint
