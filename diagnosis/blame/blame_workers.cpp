#include "diagnosis/blame/blame_parts.hpp"

#include <algorithm>

#include "diagnosis/blame/worker_timeline.hpp"

namespace drawpoint {
namespace {

using What = WorkerPart::What;

/// Index of each pipeline's first stage in `WorkerBlame::stages_ns`; at the end, the number of all stages.
std::vector<std::size_t> first_columns(const Ledger& ledger) {
    std::vector<std::size_t> first{0};
    for (const PipelineRow& pipeline : ledger.pipelines)
        first.push_back(first.back() + pipeline.stages.size());
    return first;
}

WorkerBlame sums_of(const WorkerTimeline& timeline, const std::vector<std::size_t>& columns) {
    WorkerBlame sums{.worker = timeline.worker, .pipeline = timeline.pipeline};
    sums.stages_ns.resize(columns.back());
    for (const WorkerPart& part : timeline.parts) {
        sums.span_ns += part.ns;
        switch (part.what) {
        case What::stage: {
            const std::size_t column = columns[part.pipeline] + part.stage;
            // A stage that its pipeline does not name has no column.
            (column < columns[part.pipeline + std::size_t{1}] ? sums.stages_ns[column] : sums.overhead_ns) +=
                part.ns - part.run_queue_ns;
            sums.run_queue_ns += part.run_queue_ns;
            break;
        }
        case What::collate: sums.collate_ns += part.ns; break;
        case What::sampler: sums.sampler_ns += part.ns; break;
        case What::overhead: sums.overhead_ns += part.ns; break;
        case What::idle: sums.idle_ns += part.ns; break;
        case What::idle_no_slot: sums.idle_no_slot_ns += part.ns; break;
        case What::unknown: sums.unknown_ns += part.ns; break;
        }
    }
    return sums;
}

}   // namespace

void add_workers(Blame& blame, const Ledger& ledger, const LoaderRows& rows) {
    if (blame.first_steady_step >= ledger.steps.size())
        return;
    const TimeRange range{ledger.steps[blame.first_steady_step].draw_begin_ns, end_ns(ledger.steps.back())};
    if (range.to_ns <= range.from_ns)
        return;
    const std::vector<WorkerTimeline> timelines = worker_timelines(ledger, rows, range);
    const std::vector<std::size_t> columns = first_columns(ledger);
    for (const WorkerTimeline& timeline : timelines)
        blame.workers.push_back(sums_of(timeline, columns));

    const auto at = [](std::vector<std::int64_t>& sums, std::size_t i) -> std::int64_t& {
        if (i >= sums.size())
            sums.resize(i + 1);
        return sums[i];
    };
    for (const DrawBlame& draw : blame.draws) {
        if (kind_of(draw) != DrawKind::steady || draw.batch == nothing || ledger.steps[draw.step].phase != Phase::train)
            continue;
        const std::uint16_t pipeline = ledger.batches[draw.batch].pipeline;
        std::vector<std::int64_t> worker, other;   // worker-nanoseconds by stage
        std::int64_t no_slot = 0;
        for (const BlamePiece& piece : pieces_of(blame, draw)) {
            if (!is_making(piece.cause))
                continue;
            const std::int64_t to_ns = end_ns(piece.begin_ns, piece.ns);
            for (const WorkerTimeline& timeline : timelines) {
                if (timeline.pipeline != pipeline)
                    continue;
                auto part = std::ranges::upper_bound(timeline.parts, piece.begin_ns, {}, &WorkerPart::begin_ns);
                for (part -= part != timeline.parts.begin(); part != timeline.parts.end() && part->begin_ns < to_ns;
                     ++part) {
                    const std::int64_t ns =
                        std::min(end_ns(part->begin_ns, part->ns), to_ns) - std::max(part->begin_ns, piece.begin_ns);
                    if (ns <= 0)
                        continue;
                    if (part->what == What::idle_no_slot)
                        no_slot += ns;
                    else if (part->what == What::stage && piece.cause == Cause::worker)
                        at(worker, part->stage) += ns;
                    else if (part->what == What::stage && piece.cause == Cause::other_samples)
                        at(other, part->stage) += ns;
                }
            }
        }
        const auto workers = std::max<std::int64_t>(
            static_cast<std::int64_t>(rows.setting_at(pipeline, ledger.steps[draw.step].draw_begin_ns).num_workers), 1);
        for (std::size_t i = 0; i < worker.size(); ++i)
            at(blame.worker_wait_by_stage_ns, i) += worker[i] / workers;
        for (std::size_t i = 0; i < other.size(); ++i)
            at(blame.other_samples_by_stage_ns, i) += other[i] / workers;
        blame.idle_no_slot_while_waiting_ns += no_slot / workers;
    }
}

}   // namespace drawpoint
