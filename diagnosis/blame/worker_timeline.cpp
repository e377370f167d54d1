#include "diagnosis/blame/worker_timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "diagnosis/blame/stage_spending.hpp"

namespace drawpoint {
namespace {

using What = WorkerPart::What;

/// Why an idle worker of one pipeline is idle, over time.
class IdleReasons {
public:
    IdleReasons(const Ledger& ledger, const LoaderRows& rows, std::uint16_t pipeline) {
        struct Change {
            std::int64_t at_ns;
            int taken, unrecorded;
            std::optional<std::uint32_t> depth;
        };
        std::vector<Change> changes;
        for (std::size_t i = 0; i < ledger.batches.size(); ++i) {
            const BatchRow& row = ledger.batches[i];
            if (row.pipeline != pipeline || row.admitted_ns == no_stamp)
                continue;
            changes.push_back({row.admitted_ns, 1, 0, {}});
            changes.push_back({rows.released_ns(i), -1, 0, {}});
            if (rows.whole(i) || row.first_claim_ns == no_stamp)
                continue;
            const std::int64_t done_ns = row.last_done_ns == no_stamp ? rows.released_ns(i) : row.last_done_ns;
            changes.push_back({row.first_claim_ns, 0, 1, {}});
            changes.push_back({std::max(done_ns, row.first_claim_ns), 0, -1, {}});
        }
        for (const SettingRow& row : ledger.settings)
            if (row.pipeline == pipeline)
                changes.push_back({row.at_ns, 0, 0, row.prefetch_depth});
        std::ranges::stable_sort(changes, {}, &Change::at_ns);
        std::int64_t taken = 0, unrecorded = 0;
        auto depth = static_cast<std::uint32_t>(rows.setting_at(pipeline, no_stamp).prefetch_depth);
        for (const Change& change : changes) {
            taken += change.taken;
            unrecorded += change.unrecorded;
            depth = change.depth.value_or(depth);
            const What now = unrecorded > 0               ? What::unknown
                             : depth > 0 && taken > depth ? What::idle_no_slot
                                                          : What::idle;
            if (now != reasons_.back().what)
                reasons_.push_back({change.at_ns, now});
        }
    }

    /// Appends parts that cover [from, to).
    void add(std::vector<WorkerPart>& parts, std::int64_t from_ns, std::int64_t to_ns) const {
        auto at = std::ranges::upper_bound(reasons_, from_ns, {}, &Reason::from_ns) - 1;
        while (from_ns < to_ns) {
            const auto next = at + 1;
            const std::int64_t until_ns = next == reasons_.end() ? to_ns : std::min(next->from_ns, to_ns);
            if (until_ns > from_ns)
                parts.push_back({.what = at->what, .begin_ns = from_ns, .ns = until_ns - from_ns});
            from_ns = std::max(from_ns, until_ns);
            at = next;
        }
    }

private:
    struct Reason {
        std::int64_t from_ns;
        What what;
    };
    std::vector<Reason> reasons_{{std::numeric_limits<std::int64_t>::min(), What::idle}};
};

/// A sample, the collating of a batch, or the order of a pass.
struct Work {
    std::int64_t begin_ns;
    std::uint32_t sample = nothing, batch = nothing;   // the batch alone: collating
    std::uint32_t order = nothing;
};

class TimelineBuilder {
public:
    TimelineBuilder(const Ledger& ledger, TimeRange range, const IdleReasons& reasons, std::vector<WorkerPart>& parts)
        : ledger_{ledger}, range_{range}, reasons_{reasons}, parts_{parts}, at_ns_{range.from_ns} {}

    void add(const Work& work) {
        const std::int64_t begin_ns = clipped(work.begin_ns);
        // From the admission of its next batch on, it had something to claim.
        std::int64_t admitted_ns = work.batch == nothing ? no_stamp : ledger_.batches[work.batch].admitted_ns;
        admitted_ns = admitted_ns == no_stamp ? begin_ns : std::clamp(admitted_ns, at_ns_, begin_ns);
        reasons_.add(parts_, at_ns_, admitted_ns);
        at_ns_ = admitted_ns;
        until(begin_ns, {.what = What::overhead});
        if (work.order != nothing)
            until(end_ns(work.begin_ns, ledger_.orders[work.order].ns), {.what = What::sampler});
        else if (work.sample == nothing)
            until(ledger_.batches[work.batch].collate_end_ns, {.what = What::collate});
        else
            add_stages(ledger_.samples[work.sample]);
    }

    void end() { reasons_.add(parts_, at_ns_, range_.to_ns); }

private:
    std::int64_t clipped(std::int64_t ns) const { return std::clamp(ns, at_ns_, range_.to_ns); }

    void until(std::int64_t until_ns, WorkerPart part) {
        part.begin_ns = at_ns_;
        at_ns_ = clipped(until_ns);
        part.ns = at_ns_ - part.begin_ns;
        part.run_queue_ns = std::min(part.run_queue_ns, part.ns);
        if (part.ns > 0)
            parts_.push_back(part);
    }

    void add_stages(const SampleRow& sample) {
        const auto stages = ledger_.stages_of(sample);
        const auto spending = spending_of(ledger_, sample);
        for (std::size_t i = 0; i < stages.size(); ++i) {
            until(stages[i].begin_ns, {.what = What::overhead});
            WorkerPart part{.what = What::stage, .stage = static_cast<std::uint8_t>(i), .pipeline = sample.pipeline};
            const std::int64_t until_ns = end_ns(stages[i].begin_ns, stages[i].ns);
            if (const StageSpending& spent = spending[std::min(i, max_stages - 1)];
                i < max_stages && spent.run_queue_ns > 0 && stages[i].ns > 0)
                part.run_queue_ns = proportion(clipped(until_ns) - at_ns_, spent.run_queue_ns, stages[i].ns);
            until(until_ns, part);
        }
    }

    const Ledger& ledger_;
    TimeRange range_;
    const IdleReasons& reasons_;
    std::vector<WorkerPart>& parts_;
    std::int64_t at_ns_;
};

}   // namespace

std::vector<WorkerTimeline> worker_timelines(const Ledger& ledger, const LoaderRows& rows, TimeRange range) {
    struct Worker {
        std::uint16_t pipeline;
        std::vector<Work> works;
    };
    std::map<std::uint16_t, Worker> workers;
    const auto is_inline = [&](std::uint16_t pipeline) {
        return pipeline >= ledger.pipelines.size() || ledger.pipelines[pipeline].num_workers == 0;
    };
    const auto add = [&](std::uint16_t worker, std::uint16_t pipeline, const Work& work) {
        if (!is_inline(pipeline))
            workers.try_emplace(worker, Worker{pipeline, {}}).first->second.works.push_back(work);
    };
    for (std::uint32_t i = 0; i < ledger.samples.size(); ++i)
        add(ledger.samples[i].worker, ledger.samples[i].pipeline,
            {ledger.samples[i].begin_ns, i, rows.batch_of_sample(i)});
    for (std::uint32_t i = 0; i < ledger.batches.size(); ++i)
        if (const BatchRow& row = ledger.batches[i];
            row.collate_worker && row.collate_begin_ns != no_stamp && row.collate_end_ns != no_stamp)
            add(*row.collate_worker, row.pipeline, {row.collate_begin_ns, nothing, i});
    for (std::uint32_t i = 0; i < ledger.orders.size(); ++i)
        if (const OrderRow& row = ledger.orders[i]; row.worker)
            add(*row.worker, row.pipeline, {.begin_ns = row.begin_ns, .order = i});

    std::map<std::uint16_t, IdleReasons> reasons;
    std::vector<WorkerTimeline> timelines;
    for (auto& [number, worker] : workers) {
        std::ranges::stable_sort(worker.works, {}, &Work::begin_ns);
        WorkerTimeline& timeline = timelines.emplace_back(WorkerTimeline{number, worker.pipeline, {}});
        const IdleReasons& idle = reasons.try_emplace(worker.pipeline, ledger, rows, worker.pipeline).first->second;
        TimelineBuilder builder{ledger, range, idle, timeline.parts};
        for (const Work& work : worker.works)
            builder.add(work);
        builder.end();
    }
    return timelines;
}

}   // namespace drawpoint
