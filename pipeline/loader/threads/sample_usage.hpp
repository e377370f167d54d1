#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

namespace drawpoint {

/// Measures the time that a worker's samples spend computing and waiting for a core, for as many samples as the reading
/// budget allows. A sample that was not measured and took far longer than others gets its CPU time from the readings
/// before and after it. One for each worker.
class SampleUsage {
public:
    /// A sample begins; `follows`: right after the previous one. Returns the thread's CPU time if the sample is
    /// measured, else `no_stamp`.
    [[nodiscard]] std::int64_t begin(bool follows) noexcept;
    /// The sample has ended with its last stage, when the thread's CPU time was `cpu_ns` (begin()'s result if the
    /// stages did not read it). Fills in the measured columns of the record, which is otherwise complete.
    void end(SampleRecord&, std::int64_t cpu_ns) noexcept;

private:
    ThreadUsage usage_;
    ReadingBudget budget_;
    bool at_hand_ = false;   // the last reading was made at the end of the previous sample
    std::int64_t cpu_ns_ = no_stamp, run_queue_ns_ = no_stamp, at_ns_ = no_stamp;   // of the last reading
};

}   // namespace drawpoint
