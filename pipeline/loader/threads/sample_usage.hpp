#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/recorder/reading_budget.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/host/thread_usage.hpp>

namespace drawpoint {

/// What a worker's samples spend computing and waiting for a core: as many of them as the budget allows. A sample that was
/// left out and turns out far longer than others gets its CPU time from the readings around it. One thread at a time.
class SampleUsage {
public:
    /// A sample is taken up now. `follows`: right after the one before. The thread's CPU time if it shall be measured,
    /// else `no_stamp`.
    [[nodiscard]] std::int64_t begin(bool follows) noexcept;
    /// The sample of this record, complete but for what is measured here, ended at the end of its last stage, when the thread's
    /// CPU time was `cpu_ns` (what `begin()` returned where no stage has said more).
    void end(SampleRecord&, std::int64_t cpu_ns) noexcept;

private:
    ThreadUsage usage_;
    ReadingBudget budget_;
    bool at_hand_ = false;   // the last reading is of the end of the sample before
    std::int64_t cpu_ns_ = no_stamp, run_queue_ns_ = no_stamp, at_ns_ = no_stamp;   // as of the last reading
};

}   // namespace drawpoint
