#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint {

class ServeProcess;

/// Records the actions training_step, backward, validation_step, test_step and predict_step (by the word after the last
/// ".") as regions, the last three as numbered steps: "validation_step#1" onwards. Other actions are ignored. One
/// thread at a time. The recorder must outlive it.
class XlaProfiler final : public Profiler {
public:
    /// With a `port`, the program `drawpoint-serve` answers requests to capture this process's recording there, on
    /// 127.0.0.1, for as long as this lives: TensorBoard's "Capture profile", xprof's client. It runs as a process of
    /// its own, found by the variable DRAWPOINT_SERVE, beside this program or on the PATH. Of several recorders with a
    /// file, it takes the one that wrote last. Throws std::invalid_argument for a port outside 1 … 65535 and for a
    /// recorder without a file, std::runtime_error if the service does not start.
    explicit XlaProfiler(Recorder& recorder, std::optional<int> port = std::nullopt);
    ~XlaProfiler() override;
    void start(std::string_view action) override;
    void stop(std::string_view action) override;

private:
    struct Open {
        std::string action;
        std::uint32_t ticket;
    };
    Recorder* recorder_;
    std::unique_ptr<ServeProcess> service_;
    std::vector<Open> open_;
    std::map<std::string, std::uint64_t, std::less<>> steps_;
};

}   // namespace drawpoint
