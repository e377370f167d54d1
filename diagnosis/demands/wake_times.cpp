#include "diagnosis/demands/wake_times.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/pipeline/loader/machine/detail/spin_policy.hpp>

namespace drawpoint {
namespace {

constexpr std::size_t fewest_wakes = 20;
constexpr std::int64_t most_wake_ns = 1'000'000;   // in longer ones the thread queued

std::int64_t lower_quartile(std::vector<std::int64_t> wakes) {
    std::erase_if(wakes, [](std::int64_t ns) { return ns > most_wake_ns; });
    if (wakes.size() < fewest_wakes)
        return 0;
    const auto quartile = wakes.begin() + static_cast<std::ptrdiff_t>(wakes.size() / 4);
    std::ranges::nth_element(wakes, quartile);
    return *quartile;
}

}   // namespace

std::int64_t loop_wake_ns(const Ledger& ledger, std::span<const StepRow* const> steps,
                          std::span<const std::uint32_t> batches) {
    std::vector<std::int64_t> wakes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const BatchRow& batch = ledger.batches[batches[i]];
        if (batch.offered_ns != no_stamp && batch.taken_ns != no_stamp &&
            length_ns(steps[i]->draw_begin_ns, batch.offered_ns) > SpinPolicy::longest_spin_ns)
            wakes.push_back(length_ns(batch.offered_ns, batch.taken_ns));
    }
    return std::min(lower_quartile(std::move(wakes)), longest_wake_ns);
}

std::int64_t read_wake_ns(const Ledger& ledger, std::uint16_t pipeline) {
    std::vector<std::int64_t> wakes;
    for (const SampleRow& row : ledger.samples) {
        if (row.pipeline != pipeline || row.read_end_ns == no_stamp || row.read_end_ns <= row.begin_ns)
            continue;
        if (const auto stages = ledger.stages_of(row); stages.size() > 1)   // the first is only waiting for the read
            wakes.push_back(length_ns(row.read_end_ns, end_ns(stages[0].begin_ns, stages[0].ns)));
    }
    return lower_quartile(std::move(wakes));
}

}   // namespace drawpoint
