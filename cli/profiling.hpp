#pragma once

#include <memory>
#include <string_view>

#include "cli/options.hpp"
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callback.hpp>

namespace drawpoint::cli {

/// What `--profiler` records beyond draws and stages: LibTorch's operators (pytorch), or stacks of all threads
/// (advanced). The recorder and the callbacks outlive it.
class Profiling {
public:
    /// Begins at once (advanced) or with the fit (pytorch). Throws UsageError or Failure naming what cannot be
    /// recorded.
    Profiling(const ProfileOptions&, Recorder&, CallbackList&);
    /// Calls `end()`.
    ~Profiling();

    /// Ends the recording of stacks. Idempotent.
    void end();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The style of report that shows what only this profiler records; empty: it records nothing of its own.
[[nodiscard]] std::string_view style_of(ProfilerKind) noexcept;

}   // namespace drawpoint::cli
