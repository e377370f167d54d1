#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/advanced.hpp>
#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint {

struct AdvancedProfilerOptions {
    LineRestriction line_count_restriction = 1.0;
    bool dump_stats = false;   ///< also write a pprof profile per action to dirpath: `STAGE-FILENAME-RANK-ACTION.prof`
    StackSamplerOptions sampler;
};
static_assert(std::is_trivially_destructible_v<AdvancedProfilerOptions>);

/// Lightning's advanced profiler, by sampling: which functions each action spent its time in. Actions are regions of
/// the recording; a sample counts for the innermost action. It samples every thread from the first action until
/// `teardown`; time that `fit` spends in the same recorder is reported under the loop's own actions. The recorder must
/// outlive it.
class AdvancedProfiler final : public Profiler {
public:
    explicit AdvancedProfiler(Recorder&, ProfilerFiles files = {}, const AdvancedProfilerOptions& options = {});

    /// Throws std::invalid_argument "Attempted to start ACTION which has already started.", or as
    /// `StackSampler::start`.
    void start(std::string_view action) override;
    /// Throws std::invalid_argument "Attempting to stop recording an action (ACTION) which was never started."
    void stop(std::string_view action) override;
    /// The report since the last `teardown`; with `dump_stats` it also writes the profiles. Throws
    /// std::invalid_argument if there is no dirpath for them, std::system_error naming a file that cannot be written.
    [[nodiscard]] std::string summary() override;
    void setup(std::string_view stage, int local_rank = 0, const std::filesystem::path& log_dir = {}) override;
    /// Stops sampling; open actions are ended and dropped.
    void teardown(std::string_view stage) override;

    [[nodiscard]] StackSamplerState sampler_state() const { return sampler_.state(); }

private:
    struct Open {
        std::string action;
        std::uint32_t name, ticket;
    };
    void dump(const Ledger&) const;

    Recorder* recorder_;
    AdvancedProfilerOptions options_;
    std::int64_t since_ns_;
    bool has_rank_ = false;
    StackSampler sampler_;
    std::vector<Open> open_;   // in the order of their start
};

}   // namespace drawpoint
