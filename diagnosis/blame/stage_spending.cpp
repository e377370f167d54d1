#include "diagnosis/blame/stage_spending.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

std::int64_t proportion(std::int64_t ns, std::int64_t part, std::int64_t whole) noexcept {
    part = std::clamp<std::int64_t>(part, 0, whole);
    if (part == whole)
        return ns;
    const double share = static_cast<double>(part) / static_cast<double>(whole);
    return std::min(static_cast<std::int64_t>(static_cast<double>(ns) * share + 0.5), ns);
}

std::array<StageSpending, max_stages> spending_of(const Ledger& ledger, const SampleRow& sample) noexcept {
    std::array<StageSpending, max_stages> all{};
    const auto stages = ledger.stages_of(sample);
    const std::size_t count = std::min(stages.size(), max_stages);
    std::int64_t total_ns = 0;
    for (std::size_t i = 0; i < count; ++i) {
        all[i].ns = std::clamp<std::int64_t>(stages[i].ns, 0, std::int64_t{1} << 50);   // 13 days: longer is nonsense
        if (i == 0 && sample.read_end_ns != no_stamp) {
            const std::int64_t there_ns =
                std::clamp(sample.read_end_ns, stages[0].begin_ns, end_ns(stages[0].begin_ns, all[0].ns));
            all[0].read_ns = there_ns - stages[0].begin_ns;
            all[0].ns -= all[0].read_ns;
        }
        total_ns += all[i].ns;
    }
    std::int64_t off_ns = 0;
    for (std::size_t i = 0; i < count; ++i) {
        StageSpending& stage = all[i];
        if (stages[i].cpu_ns != no_stamp)
            stage.cpu_ns = std::clamp<std::int64_t>(stages[i].cpu_ns, 0, stage.ns);
        else if (sample.cpu_ns)
            stage.cpu_ns = total_ns > 0 ? proportion(stage.ns, *sample.cpu_ns, total_ns) : 0;
        if (stage.cpu_ns != no_stamp)
            off_ns += stage.ns - stage.cpu_ns;
    }
    if (sample.run_queue_ns)
        for (StageSpending& stage : std::span{all}.first(count))
            if (stage.cpu_ns != no_stamp)
                stage.run_queue_ns = off_ns > 0 ? proportion(stage.ns - stage.cpu_ns, *sample.run_queue_ns, off_ns) : 0;
    return all;
}

}   // namespace drawpoint
