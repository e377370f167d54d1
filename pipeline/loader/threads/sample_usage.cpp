#include "pipeline/loader/threads/sample_usage.hpp"

#include <algorithm>
#include <utility>

namespace drawpoint {

std::int64_t SampleUsage::begin(bool follows) noexcept {
    if (!budget_.next()) {
        at_hand_ = false;
        return no_stamp;
    }
    if (!at_hand_ || !follows) {
        run_queue_ns_ = usage_.run_queue_ns();
        cpu_ns_ = ThreadUsage::cpu_ns();
    }
    at_hand_ = true;
    return cpu_ns_;
}

void SampleUsage::end(SampleRecord& record, std::int64_t cpu_ns) noexcept {
    const bool measured = std::exchange(at_hand_, false);
    if (record.stage_count == 0)
        return;
    const StageRow& last = record.stages[record.stage_count - 1];
    const std::int64_t begin_ns = record.row.begin_ns, end_ns = last.begin_ns + last.ns, ns = end_ns - begin_ns;
    if (measured) {
        if (last.cpu_ns == no_stamp)   // the source does not use StageTimer
            cpu_ns = ThreadUsage::cpu_ns();
        const std::int64_t run_queue_ns = usage_.run_queue_ns();
        record.row.cpu_ns = std::clamp<std::int64_t>(cpu_ns - cpu_ns_, 0, std::max<std::int64_t>(ns, 0));
        if (run_queue_ns != no_stamp && run_queue_ns_ != no_stamp)
            record.row.run_queue_ns =
                std::clamp<std::int64_t>(run_queue_ns - run_queue_ns_, 0, std::max<std::int64_t>(ns, 0));
        // The two clocks are read one after the other: a stage that only computes may show more CPU time than time.
        for (std::uint32_t i = 0; i < record.stage_count; ++i)
            if (StageRow& stage = record.stages[i]; stage.cpu_ns != no_stamp)
                stage.cpu_ns = std::clamp<std::int64_t>(stage.cpu_ns, 0, std::max<std::int64_t>(stage.ns, 0));
        cpu_ns_ = cpu_ns;
        run_queue_ns_ = run_queue_ns;
        at_ns_ = end_ns;
        at_hand_ = true;
    } else if (at_ns_ != no_stamp && budget_.is_straggler(ns) && usage_.is_attached()) {
        // Assumes that the thread computed all the time since the last reading, so only if that time is short.
        const std::int64_t now_ns = ThreadUsage::cpu_ns(), between_ns = begin_ns - at_ns_;
        if (between_ns <= ns / 4)
            record.row.cpu_ns = std::clamp<std::int64_t>(now_ns - cpu_ns_ - between_ns, 0, ns);
        cpu_ns_ = now_ns;
        at_ns_ = end_ns;
    }
    budget_.took(ns, record.stage_count + 4);   // readings of the run queue cost more
}

}   // namespace drawpoint
