#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "instrumentation/report/durations.hpp"
#include "instrumentation/report/summary_parts.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

/// The calls of the stage with one name, in all pipelines.
struct StageColumn {
    std::string_view name;
    Durations durations;
    StageUsage usage;
    bool alone = true;   // its pipelines have no other stage
    std::uint64_t bytes = 0, failures = 0;

    void add(const StageUsage& more) {
        usage.calls += more.calls;
        usage.ns += more.ns;
        usage.cpu_ns += more.cpu_ns;
        usage.queued_of_ns += more.queued_of_ns;
        usage.run_queue_ns += more.run_queue_ns;
    }
    /// Sorts the durations.
    [[nodiscard]] StageSummary describe() {
        StageSummary stage{.stage = std::string{name}, .bytes = bytes, .failures = failures};
        durations.describe(stage);
        if (usage.calls == 0 || usage.calls * 10 < stage.calls)
            return stage;
        const auto of_total = [&](std::int64_t part_ns, std::int64_t of_ns) {
            return of_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(of_ns) * stage.total_s : 0.0;
        };
        stage.cpu_s = of_total(usage.cpu_ns, usage.ns);
        if (alone && usage.queued_of_ns > 0)
            stage.run_queue_s = of_total(usage.run_queue_ns, usage.queued_of_ns);
        return stage;
    }
};

void add_stages(Summary& summary, const Ledger& ledger) {
    std::vector<StageColumn> columns;
    std::vector<std::vector<std::size_t>> column_of;   // [pipeline][stage]
    const auto column_named = [&](std::string_view name) {
        const auto at =
            static_cast<std::size_t>(std::ranges::find(columns, name, &StageColumn::name) - columns.begin());
        if (at == columns.size())
            columns.push_back({.name = name});
        return at;
    };
    for (const PipelineRow& pipeline : ledger.pipelines) {
        auto& of = column_of.emplace_back();
        for (const std::string& stage : pipeline.stages)
            columns[of.emplace_back(column_named(stage))].alone &= pipeline.stages.size() == 1;
    }
    for (const SampleRow& sample : ledger.samples) {
        if (sample.pipeline >= column_of.size())
            continue;
        const auto& of = column_of[sample.pipeline];
        const auto stages = ledger.stages_of(sample);
        for (std::size_t i = 0; i < std::min(stages.size(), of.size()); ++i) {
            columns[of[i]].durations.add(stages[i].ns, sample.samples);
            add_usage(columns[of[i]].usage, sample, stages, i);
        }
        if (!of.empty())
            columns[of.front()].bytes += sample.bytes;
    }
    for (const BatchRow& batch : ledger.batches)
        if (batch.collate_begin_ns != no_stamp && batch.collate_end_ns != no_stamp)
            columns[column_named("collate")].durations.add(
                static_cast<std::int64_t>(wrapping_difference(batch.collate_end_ns, batch.collate_begin_ns)));
    for (const FoldedStage& folded : ledger.folded.stages) {
        if (folded.stage == FoldedStage::collate) {
            columns[column_named("collate")].durations.folded.add(folded.durations);
            continue;
        }
        if (folded.pipeline >= column_of.size() || folded.stage >= column_of[folded.pipeline].size())
            continue;
        const auto& of = column_of[folded.pipeline];
        StageColumn& column = columns[of[folded.stage]];
        column.durations.folded.add(folded.durations);
        column.add(folded.usage);
        column.bytes += folded.bytes;
    }
    for (const FailureRow& failure : ledger.failures)
        if (const auto found = std::ranges::find(columns, failure.stage, &StageColumn::name); found != columns.end())
            ++found->failures;
    for (StageColumn& column : columns)
        summary.stages.push_back(column.describe());
}

void add_workers(Summary& summary, const Ledger& ledger) {
    struct Load {
        std::int64_t busy_ns = 0, collate_ns = 0;
        std::uint64_t samples = 0;
    };
    std::map<std::uint16_t, Load> loads;
    std::uint64_t recorded = 0;
    for (const FoldedWorker& folded : ledger.folded.workers) {
        loads[folded.worker] = {folded.busy_ns, folded.collate_ns, folded.samples};
        recorded += folded.samples;
    }
    for (const SampleRow& sample : ledger.samples) {
        Load& load = loads[sample.worker];
        load.samples += sample.samples;
        recorded += sample.samples;
        if (const auto stages = ledger.stages_of(sample); !stages.empty())
            load.busy_ns += stages.back().begin_ns + stages.back().ns - sample.begin_ns;
    }
    for (const BatchRow& batch : ledger.batches)
        if (batch.collate_worker && batch.collate_begin_ns != no_stamp && batch.collate_end_ns != no_stamp)
            loads[*batch.collate_worker].collate_ns +=
                static_cast<std::int64_t>(wrapping_difference(batch.collate_end_ns, batch.collate_begin_ns));
    // Estimates the samples made, since some may lack a record: those of thinned batches, or lost from a full ring.
    double made = static_cast<double>(recorded);
    const bool lost = std::ranges::any_of(
        ledger.dropped, [](const DroppedRow& row) { return row.ring != 0 && row.ring < first_operator_ring; });
    if (ledger.thinned_to() > 1 || lost) {
        std::uint64_t in_batches = ledger.folded.batch_samples;
        for (const BatchRow& batch : ledger.batches)
            in_batches += batch.size;
        made = std::max(made, static_cast<double>(in_batches));
    }
    const double scale = made / static_cast<double>(std::max<std::uint64_t>(recorded, 1));
    for (const auto& [worker, load] : loads) {
        // Collating is not scaled, since every batch has a row. The time of a batch abandoned while it was collated is
        // unknown and not included.
        const double busy_s = seconds(load.busy_ns) * scale + seconds(load.collate_ns);
        summary.workers.push_back(
            {.worker = worker, .busy_share = ratio(busy_s, summary.run.wall_s).value_or(0), .samples = load.samples});
    }
}

void add_queue(Summary& summary, const Ledger& ledger) {
    struct Change {
        std::int64_t at_ns;
        int ready, inside;
    };
    std::vector<Change> changes;
    const bool trains = std::ranges::any_of(ledger.passes, [](const PassRow& p) { return p.kind == PassKind::train; });
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == (trains ? PassKind::train : PassKind::valid) && pass.end_ns > ledger.folded.until_ns) {
            changes.push_back({std::max(pass.begin_ns, ledger.folded.until_ns), 0, 1});
            changes.push_back({pass.end_ns, 0, -1});
        }
    for (const BatchRow& batch : ledger.batches)
        if (batch.pipeline == 0 && batch.offered_ns != no_stamp && batch.taken_ns != no_stamp) {
            changes.push_back({batch.offered_ns, 1, 0});
            changes.push_back({batch.taken_ns, -1, 0});
        }
    std::ranges::sort(changes, std::less{}, &Change::at_ns);
    std::int64_t ready = 0, inside = 0, last_ns = 0;
    double ready_ns = 0, empty_ns = 0, all_ns = 0;
    for (const Change& change : changes) {
        if (inside > 0) {
            const auto passed_ns = static_cast<double>(change.at_ns - last_ns);
            all_ns += passed_ns;
            ready_ns += passed_ns * static_cast<double>(ready);
            empty_ns += ready == 0 ? passed_ns : 0;
        }
        ready += change.ready;
        inside += change.inside;
        last_ns = change.at_ns;
    }
    if (all_ns > 0 && std::ranges::any_of(ledger.batches, [](const BatchRow& b) { return b.pipeline == 0; }))
        summary.queue = {
            .mean_ready = ready_ns / all_ns, .occupancy = 1 - empty_ns / all_ns, .empty_share = empty_ns / all_ns};
}

}   // namespace

void add_loader(Summary& summary, const Ledger& ledger) {
    add_stages(summary, ledger);
    add_workers(summary, ledger);
    add_queue(summary, ledger);
}

}   // namespace drawpoint
