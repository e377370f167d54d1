#include "diagnosis/demands/cpu_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include "diagnosis/demands/demand_limit.hpp"

namespace drawpoint {
namespace {

constexpr std::int64_t long_is = 8;        // times the median
constexpr std::size_t fewest_likes = 30;   // needed to estimate other pieces from
constexpr double like_reach = 4;           // times its own duration: how long others may be that a piece stands in for
constexpr double hardly = 0.02;            // of a sample's time
constexpr std::int64_t preempted_ns = 50'000;
constexpr double not_known = -1;

/// The stages that a replay has room for: a row from elsewhere may have more.
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

/// Time between the begin and the last stage's end that is in no stage.
std::int64_t outside_stages(const SampleRow& row, std::span<const StageRow> stages) noexcept {
    if (stages.empty())
        return 0;
    const std::int64_t all_ns = length_ns(row.begin_ns, end_ns(stages.back().begin_ns, stages.back().ns));
    return std::max<std::int64_t>(bounded_ns(all_ns) - wall_of(stages), 0);
}

bool all_measured(std::span<const StageRow> stages) noexcept {
    return std::ranges::none_of(stages, [](const StageRow& stage) { return stage.cpu_ns == no_stamp; });
}

/// 0 if the sample was not read ahead.
std::int64_t read_ns_of(const SampleRow& row) noexcept {
    return row.read_begin_ns == no_stamp || row.read_end_ns == no_stamp
               ? 0
               : bounded_ns(length_ns(row.read_begin_ns, row.read_end_ns));
}

/// Index of the first stage that is not waiting for a read ahead.
std::size_t made_from(const SampleRow& row, std::span<const StageRow> stages) noexcept {
    return row.read_begin_ns != no_stamp && stages.size() > 1 ? 1 : 0;
}

}   // namespace

CpuShares::CpuShares(const Ledger& ledger, std::uint16_t pipeline)
    : long_from_ns_{std::numeric_limits<std::int64_t>::max()} {
    const auto [first, last] = std::ranges::equal_range(ledger.samples, pipeline, {}, &SampleRow::pipeline);
    std::vector<std::int64_t> walls, outside;
    walls.reserve(static_cast<std::size_t>(last - first));
    for (auto row = first; row != last; ++row)
        if (row->samples != 0) {
            walls.push_back(wall_of(stages_of(ledger, *row)) / row->samples);
            outside.push_back(outside_stages(*row, stages_of(ledger, *row)));
        }
    const auto median_of = [](std::vector<std::int64_t>& values) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::ranges::nth_element(values, middle);
        return *middle;
    };
    if (!walls.empty()) {
        long_from_ns_ = std::max<std::int64_t>(median_of(walls), 1) * long_is;
        most_unstamped_ns_ = 4 * median_of(outside) + preempted_ns;
    }
    for (auto row = first; row != last; ++row) {
        if (row->samples == 0)
            continue;
        if (const std::int64_t read_ns = read_ns_of(*row);
            row->read_cpu_ns != no_stamp && row->read_run_queue_ns != no_stamp && read_ns > 0)
            reads_.add(read_ns, static_cast<double>(std::clamp<std::int64_t>(row->read_cpu_ns, 0, read_ns)),
                       static_cast<double>(bounded_ns(row->read_run_queue_ns)));
        const auto stages = stages_of(ledger, *row);
        const std::int64_t wall = wall_of(stages);
        Class& one = wall / row->samples > long_from_ns_ ? long_ : usual_;
        double staged_cpu = 0;
        const bool all_staged = !stages.empty() && all_measured(stages);
        for (std::size_t i = 0; i < stages.size(); ++i) {
            if (stages[i].cpu_ns == no_stamp)
                continue;
            const auto cpu = static_cast<double>(bounded_ns(stages[i].cpu_ns));
            one.wall[i] += static_cast<double>(bounded_ns(stages[i].ns));
            one.cpu[i] += cpu;
            staged_cpu += cpu;
            measured_ = true;
        }
        if (row->cpu_ns || all_staged) {
            const double cpu = all_staged ? staged_cpu : cpu_of_stages(*row, stages);
            measured_ = true;
            one.samples_wall += static_cast<double>(wall);
            one.samples_cpu += cpu;
            if (row->run_queue_ns) {
                one.queued_wall += static_cast<double>(wall);
                one.queued_off += std::max(static_cast<double>(wall) - cpu, 0.0);
                const auto queued = static_cast<double>(bounded_ns(*row->run_queue_ns));
                one.run_queue += queued;
                if (all_staged && queued <= hardly * static_cast<double>(wall))
                    for (std::size_t i = 0; i < stages.size(); ++i)
                        waits_[i] += static_cast<double>(
                            std::max<std::int64_t>(bounded_ns(stages[i].ns) - bounded_ns(stages[i].cpu_ns), 0));
                // The worker's wait for a read ahead says nothing about similar samples.
                const std::size_t first_made = made_from(*row, stages);
                double made_cpu = cpu;
                for (std::size_t i = 0; i < first_made; ++i)
                    made_cpu -= static_cast<double>(bounded_ns(stages[i].cpu_ns));
                if (const std::int64_t made = wall_of(stages.subspan(first_made));
                    made > 0 && (all_staged || first_made == 0))
                    samples_.add(made / row->samples, std::max(made_cpu, 0.0) / row->samples, queued / row->samples);
            }
        }
    }
    samples_.sort();
    reads_.sort();
}

void Likes::add(std::int64_t wall_ns, double cpu_ns, double run_queue_ns) {
    const double rest = static_cast<double>(wall_ns) - cpu_ns;
    const bool only_computed = rest <= hardly * static_cast<double>(wall_ns);
    likes_.push_back({wall_ns, cpu_ns, only_computed ? not_known : std::clamp(run_queue_ns / rest, 0.0, 1.0)});
}

void Likes::sort() { std::ranges::sort(likes_, {}, &Like::wall_ns); }

const Likes::Like* Likes::nearest(std::int64_t wall_ns) const noexcept {
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
    const Class& one = class_of(wall_of(stages) / row.samples);
    std::array<double, max_stages> cpu{};
    bool staged = true;
    const std::size_t made = made_from(row, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const auto ns = static_cast<double>(bounded_ns(stages[i].ns));
        const bool own = stages[i].cpu_ns != no_stamp;
        staged &= own;
        const double share = one.share(i);
        // A stage of which nothing is known counts as computing, except for the wait for a read ahead.
        cpu[i] = own                              ? std::clamp(static_cast<double>(stages[i].cpu_ns), 0.0, ns)
                 : i < made && !(one.wall[i] > 0) ? 0
                 : share < 0                      ? ns
                                                  : share * ns;
    }
    // The rest is about the stages from this one on.
    const std::size_t first = staged ? 0 : made;
    for (std::size_t i = 0; i < first; ++i)
        demands[i] = {std::llround(cpu[i]), std::llround(static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i])};
    const std::int64_t wall = wall_of(stages.subspan(first));
    const double sum = std::accumulate(cpu.begin() + static_cast<std::ptrdiff_t>(first),
                                       cpu.begin() + static_cast<std::ptrdiff_t>(stages.size()), 0.0);
    double off = 0;
    const Likes::Like* const like = staged || row.cpu_ns ? nullptr : samples_.nearest(wall / row.samples);
    if (!staged && (row.cpu_ns || like)) {   // the sample's own total is better than other samples' stages
        const auto all = static_cast<double>(wall);
        const double own = std::clamp(like ? like->cpu_ns * row.samples : cpu_of_stages(row, stages), 0.0, all);
        // If it computed more than such stages usually do, the excess goes where they would wait.
        const double rest = static_cast<double>(wall) - sum;
        for (std::size_t i = first; i < stages.size(); ++i)
            if (own <= sum)
                cpu[i] *= sum > 0 ? own / sum : 0;
            else if (rest > 0)
                cpu[i] += (static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i]) * (own - sum) / rest;
    }
    std::array<double, max_stages> waiting{};
    for (std::size_t i = first; i < stages.size(); ++i)
        off += waiting[i] = std::max(static_cast<double>(bounded_ns(stages[i].ns)) - cpu[i], 0.0);
    const bool knows_off = row.cpu_ns || staged;
    // What makes a sample far longer than all that were measured is not what these waited for.
    const double reach = like ? like_reach * static_cast<double>(like->wall_ns) * row.samples : off;
    const double queue = row.run_queue_ns              ? static_cast<double>(bounded_ns(*row.run_queue_ns))
                         : like && like->queueing >= 0 ? std::min(off, reach) * like->queueing
                         : (knows_off || like) && one.queued_off > 0
                             ? std::min(off, reach) * one.run_queue / one.queued_off
                             : static_cast<double>(wall) * one.queue_share();
    place_waiting(std::max(off - queue, 0.0), std::span{waiting}.first(stages.size()));
    for (std::size_t i = first; i < stages.size(); ++i)
        demands[i] = {std::llround(cpu[i]), std::llround(waiting[i])};
}

void CpuShares::place_waiting(double waiting_ns, std::span<double> off_ns) const noexcept {
    double usual = 0, room = 0;
    for (std::size_t i = 0; i < off_ns.size(); ++i)
        usual += off_ns[i] > 0 ? waits_[i] : 0;
    std::array<double, max_stages> waits{};
    double left = waiting_ns;
    for (std::size_t i = 0; i < off_ns.size(); ++i) {
        waits[i] = usual > 0 ? std::min(off_ns[i], waiting_ns * waits_[i] / usual) : 0;
        left -= waits[i];
        room += off_ns[i] - waits[i];
    }
    // of the time in which stages do not usually wait
    const double share = room > 0 ? std::clamp(left / room, 0.0, 1.0) : 0;
    for (std::size_t i = 0; i < off_ns.size(); ++i)
        off_ns[i] = waits[i] + share * (off_ns[i] - waits[i]);
}

std::int64_t CpuShares::unstamped_ns(const SampleRow& row, std::span<const StageRow> stages) const noexcept {
    const std::int64_t outside_ns = std::min(outside_stages(row, stages), most_unstamped_ns_);
    if (!row.cpu_ns || !all_measured(stages))
        return without_run_queue(outside_ns);
    std::int64_t staged_ns = 0;
    for (const StageRow& stage : stages)
        staged_ns += bounded_ns(stage.cpu_ns);
    return std::clamp<std::int64_t>(bounded_ns(*row.cpu_ns) - staged_ns, 0, outside_ns);
}

double CpuShares::cpu_of_stages(const SampleRow& row, std::span<const StageRow> stages) const noexcept {
    // The sample's own time also has what is outside its stages.
    const std::int64_t outside_ns = std::min(outside_stages(row, stages), most_unstamped_ns_);
    return static_cast<double>(std::max<std::int64_t>(bounded_ns(*row.cpu_ns) - outside_ns, 0));
}

Demand CpuShares::read_of(const SampleRow& row) const noexcept {
    const std::int64_t ns = read_ns_of(row);
    if (row.read_cpu_ns != no_stamp) {
        const std::int64_t cpu_ns = std::clamp<std::int64_t>(row.read_cpu_ns, 0, ns);
        return {cpu_ns, std::max<std::int64_t>(ns - cpu_ns - bounded_ns(row.read_run_queue_ns), 0)};
    }
    const Likes::Like* const like = reads_.nearest(ns);
    if (!like)
        return {0, ns};
    const std::int64_t cpu_ns = std::min(std::llround(like->cpu_ns), static_cast<long long>(ns));
    return {cpu_ns, std::llround(static_cast<double>(ns - cpu_ns) * (1 - std::max(like->queueing, 0.0)))};
}

double CpuShares::slowdown() const noexcept {
    const double computed = usual_.queued_wall - usual_.queued_off;
    constexpr double most = 100;
    return computed > 0 ? std::min(1 + std::min(usual_.run_queue, usual_.queued_off) / computed, most) : 1;
}

std::int64_t CpuShares::without_run_queue(std::int64_t ns) const noexcept {
    return std::llround(static_cast<double>(ns) * (1 - std::clamp(usual_.queue_share(), 0.0, 0.95)));
}

}   // namespace drawpoint
