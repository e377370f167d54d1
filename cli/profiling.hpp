#pragma once

#include <memory>

#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callback.hpp>

namespace drawpoint::cli {

/// What `--profiler` records beyond draws and stages: LibTorch's operators (pytorch), or where every thread is (advanced). The
/// recorder and the callbacks outlive it.
class Profiling {
public:
    /// Begins at once, or with the fit. Throws UsageError or Failure naming what cannot be had.
    Profiling(const ProfileOptions&, Recorder&, CallbackList&);
    /// `end()`s.
    ~Profiling();

    /// Nothing is recorded from here on. Idempotent.
    void end();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The style of report that shows what this profiler recorded beside drawpoint's own; empty: there is none.
[[nodiscard]] std::string_view style_of_profiler(std::string_view profiler) noexcept;

}   // namespace drawpoint::cli
