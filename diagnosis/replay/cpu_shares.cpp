#include <diagnosis/replay/cpu_shares.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <diagnosis/replay/virtual_time.hpp>

namespace drawpoint {
namespace {

constexpr std::int64_t long_is = 8;        // times the median
constexpr std::size_t fewest_likes = 30;   // to tell of the others

/// Those that a replay has room for, of a row of any origin.
std::span<const StageRow> stages_of(const Ledger& ledger, const SampleRow& row) noexcept {
    const auto stages = ledger.stages_of(row);
    return stages.first(std::min(stages.size(), max_stages));
}

std::int64_t wall_of(std::span<const StageRow> stages) noexcept {
    std::int64_t sum = 0;
    for (const StageRow& stage : stages)
        sum += bounded_ns(stage.ns);
    return sum;
}

}   // namespace

CpuShares::CpuShares(const Ledger& ledger, std::uint8_t pipeline)
    : long_from_ns_{std::numeric_limits<std::int64_t>::max()} {
    const auto [first, last] = std::ranges::equal_range(ledger.samples, pipeline, {}, &SampleRow::pipeline);
    std::vector<std::int64_t> walls;
    walls.reserve(static_cast<std::size_t>(last - first));
    for (auto row = first; row != last; ++row)
        if (row->samples != 0)
            walls.push_back(wall_of(stages_of(ledger, *row)) / row->samples);
    if (!walls.empty()) {
        const auto middle = walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2);
        std::ranges::nth_element(walls, middle);
        long_from_ns_ = std::max<std::int64_t>(*middle, 1) * long_is;
    }
    for (auto row = first; row != last; ++row) {
        if (row->samples == 0)
            continue;
        const auto stages = stages_of(ledger, *row);
        const std::int64_t wall = wall_of(stages);
        Class& one = wall / row->samples > long_from_ns_ ? long_ : usual_;
        double staged_cpu = 0;
        bool all_staged = !stages.empty();
        for (std::size_t i = 0; i < stages.size(); ++i) {
            all_staged &= stages[i].cpu_ns != no_stamp;
            if (stages[i].cpu_ns == no_stamp)
                continue;
            const auto cpu = static_cast<double>(bounded_ns(stages[i].cpu_ns));
            one.wall[i] += static_cast<double>(bounded_ns(stages[i].ns));
            one.cpu[i] += cpu;
            staged_cpu += cpu;
            measured_ = true;
        }
        if (row->cpu_ns || all_staged) {
            const double cpu = row->cpu_ns ? static_cast<double>(bounded_ns(*row->cpu_ns)) : staged_cpu;
            measured_ = true;
            one.samples_wall += static_cast<double>(wall);
            one.samples_cpu += cpu;
            if (row->run_queue_ns) {
                one.queued_wall += static_cast<double>(wall);
                one.queued_off += std::max(static_cast<double>(wall) - cpu, 0.0);
                const auto queued = static_cast<double>(bounded_ns(*row->run_queue_ns));
                one.run_queue += queued;
                if (wall > 0) {
                    const double rest = static_cast<double>(wall) - cpu;
                    likes_.push_back(
                        {wall / row->samples, cpu / row->samples, rest > 0 ? std::clamp(queued / rest, 0.0, 1.0) : 0});
                }
            }
        }
    }
    std::ranges::sort(likes_, {}, &Like::wall_ns);
}

const CpuShares::Like* CpuShares::like(std::int64_t wall_ns) const noexcept {
    if (likes_.size() < fewest_likes)
        return nullptr;
    const auto above = std::ranges::lower_bound(likes_, wall_ns, {}, &Like::wall_ns);
    if (above == likes_.begin())
        return &*above;
    const auto below = above - 1;
    return above == likes_.end() || wall_ns - below->wall_ns < above->wall_ns - wall_ns ? &*below : &*above;
}

double CpuShares::Class::share(std::size_t stage) const noexcept {
    if (wall[stage] > 0)
        return std::clamp(cpu[stage] / wall[stage], 0.0, 1.0);
    return samples_wall > 0 ? std::clamp(samples_cpu / samples_wall, 0.0, 1.0) : -1;
}

const CpuShares::Class& CpuShares::class_of(std::int64_t wall_ns) const noexcept {
    return wall_ns > long_from_ns_ && long_.samples_wall > 0 ? long_ : usual_;
}

void CpuShares::split(const SampleRow& row, std::span<const StageRow> stages, std::span<Demand> demands) const {
    const std::int64_t wall = wall_of(stages);
    const Class& one = class_of(wall / row.samples);
    std::array<double, max_stages> cpu{};
    double sum = 0, off = 0;
    bool staged = true;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const auto ns = static_cast<double>(bounded_ns(stages[i].ns));
        const bool own = stages[i].cpu_ns != no_stamp;
        staged &= own;
        const double share = one.share(i);
        // Nothing is known of any: what a sample needs is taken for computing.
        cpu[i] = own ? std::clamp(static_cast<double>(stages[i].cpu_ns), 0.0, ns) : share < 0 ? ns : share * ns;
        sum += cpu[i];
    }
    const Like* const like = staged || row.cpu_ns ? nullptr : this->like(wall / row.samples);
    if (!staged && (row.cpu_ns || like)) {   // its own sum says more than the stages of others do
        const auto all = static_cast<double>(wall);
        const double own = std::clamp(like ? like->cpu_ns * row.samples : static_cast<double>(*row.cpu_ns), 0.0, all);
        // Where that is more than its like compute, the rest of it lies where they wait.
        const double rest = static_cast<double>(wall) - sum;
        for (std::size_t i = 0; i < stages.size(); ++i)
            if (own <= sum)
                cpu[i] *= sum > 0 ? own / sum : 0;
            else if (rest > 0)
                cpu[i] += (static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i]) * (own - sum) / rest;
    }
    for (std::size_t i = 0; i < stages.size(); ++i)
        off += std::max(static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i], 0.0);
    const bool knows_off = row.cpu_ns || staged;
    const double queue = row.run_queue_ns                  ? static_cast<double>(bounded_ns(*row.run_queue_ns))
                         : like                            ? off * like->queueing
                         : knows_off && one.queued_off > 0 ? off * one.run_queue / one.queued_off
                                                           : static_cast<double>(wall) * one.queue_share();
    const double waiting = off > 0 ? std::clamp(1 - queue / off, 0.0, 1.0) : 0;   // of what it did not compute
    for (std::size_t i = 0; i < stages.size(); ++i)
        demands[i] = {std::llround(cpu[i]),
                      std::llround(std::max(static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i], 0.0) * waiting)};
}

std::int64_t CpuShares::without_run_queue(std::int64_t ns) const noexcept {
    return std::llround(static_cast<double>(ns) * (1 - std::clamp(usual_.queue_share(), 0.0, 0.95)));
}

}   // namespace drawpoint
