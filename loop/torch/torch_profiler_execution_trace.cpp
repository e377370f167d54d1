#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <torch/csrc/profiler/standalone/execution_trace_observer.h>

#include <drawpoint/loop/torch/torch_profiler.hpp>

namespace drawpoint {

ExecutionTraceObserver::ExecutionTraceObserver(const std::filesystem::path& file)
    : file_{file}, part_{fmt::format("{}.{}.part", file.string(), fmt::ptr(this))} {
    // LibTorch only logs a message if it cannot open the file or has an observer already, so we check ourselves.
    if (std::FILE* const probe = std::fopen(part_.c_str(), "w"))
        std::fclose(probe);
    else
        throw std::runtime_error{fmt::format("execution_trace: {} cannot be written", file.string())};
    std::filesystem::remove(part_);
    const bool added = torch::profiler::impl::addExecutionTraceObserver(part_.string());
    if (!std::filesystem::exists(part_))
        throw std::logic_error{"execution_trace: this process is writing an execution trace already"};
    if (!added)
        throw std::runtime_error{fmt::format("execution_trace: {} cannot be written", file.string())};
}

ExecutionTraceObserver::~ExecutionTraceObserver() {
    stop();
    torch::profiler::impl::removeExecutionTraceObserver();
    std::error_code failed;   // if it fails, the file keeps its temporary name
    std::filesystem::rename(part_, file_, failed);
}

void ExecutionTraceObserver::start() {
    if (!started_)
        torch::profiler::impl::enableExecutionTraceObserver();
    started_ = true;
}

void ExecutionTraceObserver::stop() {
    if (started_)
        torch::profiler::impl::disableExecutionTraceObserver();
    started_ = false;
}

}   // namespace drawpoint
