#include "cli/profiling.hpp"

#include <optional>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include <drawpoint/loop/torch/torch_profiler.hpp>

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

struct Profiling::Impl {
    std::optional<StackSampler> sampler;
    std::optional<TorchProfiler> operators;
    std::optional<TorchProfilerCallback> steps;
};

Profiling::Profiling(const ProfileOptions& options, Recorder& recorder, CallbackList& callbacks)
    : impl_{std::make_unique<Impl>()} {
    if (options.profiler.value == ProfilerKind::advanced) {
        impl_->sampler.emplace(recorder);
        impl_->sampler->start();
    } else if (options.profiler.value == ProfilerKind::pytorch) {
        impl_->operators.emplace(recorder, torch_options(options));
        callbacks.add(impl_->steps.emplace(*impl_->operators));
    }
}

Profiling::~Profiling() { end(); }

void Profiling::end() {
    if (impl_->sampler)
        impl_->sampler->stop();
}

std::string_view style_of(ProfilerKind profiler) noexcept {
    return profiler == ProfilerKind::advanced ? "advanced" : profiler == ProfilerKind::pytorch ? "op" : "";
}

}   // namespace drawpoint::cli
