#pragma once

#include <optional>
#include <string_view>

#include "cli/options.hpp"
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/profilers/profiler_callback.hpp>
#include <drawpoint/loop/profilers/xla.hpp>
#include <drawpoint/loop/torch/torch_profiler.hpp>

namespace drawpoint::cli {

/// What `--profiler` records beyond draws and stages: LibTorch's operators (pytorch), stacks of all threads (advanced),
/// or Lightning's hooks as regions (xla). The recorder and the callbacks outlive it.
class Profiling {
public:
    /// Begins at once (advanced) or with the fit (pytorch). Throws UsageError or Failure naming what cannot be
    /// recorded.
    Profiling(const ProfileOptions&, Recorder&, CallbackList&);
    ~Profiling() { end(); }

    /// Ends the recording of stacks. Idempotent.
    void end();

private:
    std::optional<StackSampler> sampler_;
    std::optional<TorchProfiler> operators_;
    std::optional<TorchProfilerCallback> steps_;
    std::optional<XlaProfiler> regions_;
    std::optional<ProfilerCallback> hooks_;
};

/// The style of report that shows what only this profiler records; empty: it records nothing of its own.
[[nodiscard]] std::string_view style_of(ProfilerKind) noexcept;

}   // namespace drawpoint::cli
