#include "cli/profiling.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace drawpoint::cli {
namespace {

TorchProfilerOptions torch_options(const ProfileOptions& options) {
    TorchProfilerOptions torch{.record_shapes = options.record_shapes,
                               .profile_memory = options.profile_memory,
                               .with_stack = options.with_stack,
                               .with_flops = options.with_flops,
                               .warn = [](std::string_view text) { complain(text); }};
    if (const auto& parts = options.schedule.value) {
        torch.schedule = schedule(*parts);
        for (const std::string& warning : schedule_warnings(*parts))
            complain(fmt::format("--schedule {}: {}", options.schedule.text, warning));
    }
    return torch;
}

}   // namespace

Profiling::Profiling(const ProfileOptions& options, Recorder& recorder, CallbackList& callbacks) {
    if (options.profiler.value == ProfilerKind::advanced) {
        sampler_.emplace(recorder).start();
    } else if (options.profiler.value == ProfilerKind::pytorch) {
        operators_.emplace(recorder, torch_options(options));
        callbacks.add(steps_.emplace(*operators_));
    } else if (options.profiler.value == ProfilerKind::xla) {
        try {
            regions_.emplace(recorder,
                             options.profiler_port != 0 ? std::optional<int>{options.profiler_port} : std::nullopt);
        } catch (const std::runtime_error& error) {
            throw Failure{fmt::format("--profiler-port {}: {}", options.profiler_port, error.what())};
        }
        hooks_.emplace(*regions_).add_to(callbacks);
    }
}

void Profiling::end() {
    if (sampler_)
        sampler_->stop();
}

std::string_view style_of(ProfilerKind profiler) noexcept {
    return profiler == ProfilerKind::advanced ? "advanced" : profiler == ProfilerKind::pytorch ? "op" : "";
}

}   // namespace drawpoint::cli
