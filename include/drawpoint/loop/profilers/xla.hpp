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

/// Records the actions training_step, backward, validation_step, test_step and predict_step (by the word after the last
/// ".") as regions, the last three as numbered steps: "validation_step#1" onwards. Other actions are ignored. One
/// thread at a time. The recorder must outlive it.
class XlaProfiler final : public Profiler {
public:
    /// A `port` throws std::invalid_argument, because the service that captures a running program does not exist.
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
