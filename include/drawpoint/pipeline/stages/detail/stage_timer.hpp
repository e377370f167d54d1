#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// Writes the timestamps of one sample's stages into its task. `begin()` reads the clock once to end a stage and begin
/// the next, so stages tile the sample. A source that wraps another continues where the other's last stage ended. The
/// destructor ends the last stage, also after an exception. For measured samples it also reads the thread's CPU time at
/// each stage's end. Without a clock it only counts stages. One thread; never allocates, never throws.
class StageTimer {
public:
    explicit StageTimer(SampleTask& task) noexcept : task_{&task} {}
    ~StageTimer() { end(); }
    StageTimer(const StageTimer&) = delete;
    StageTimer& operator=(const StageTimer&) = delete;

    /// Ends the running stage and begins the next. At most max_stages calls per sample, over all sources that wrap it.
    void begin() noexcept {
        std::int64_t at = 0;
        if (running_ || task_->stage_count == 0)
            at = now();
        else
            at = last().begin_ns + last().ns;
        if (running_)
            end_at(at);
        task_->stages[task_->stage_count++] = {.begin_ns = at, .ns = 0};
        running_ = true;
    }

    /// Ends the running stage, if any.
    void end() noexcept {
        if (running_)
            end_at(now());
        running_ = false;
    }

private:
    void end_at(std::int64_t at) noexcept {
        last().ns = at - last().begin_ns;
        if (task_->cpu_ns != no_stamp) [[unlikely]] {
            const std::int64_t cpu_ns = ThreadUsage::cpu_ns();
            last().cpu_ns = cpu_ns - task_->cpu_ns;
            task_->cpu_ns = cpu_ns;
        }
    }
    [[nodiscard]] std::int64_t now() const noexcept { return task_->clock != nullptr ? task_->clock->now_ns() : 0; }
    [[nodiscard]] StageRow& last() const noexcept { return task_->stages[task_->stage_count - 1]; }

    SampleTask* task_;
    bool running_ = false;
};

}   // namespace drawpoint
