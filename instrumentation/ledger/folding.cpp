#include "instrumentation/ledger/folding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>

namespace drawpoint {
namespace {

constexpr std::size_t least_old_host_rows = 16, most_old_host_rows = 1024;

/// The row for which `is` holds; adds `fresh` if there is none.
template <class Row, class Is>
Row& find_or_add(std::vector<Row>& rows, Row fresh, Is is) {
    const auto found = std::ranges::find_if(rows, is);
    return found != rows.end() ? *found : rows.emplace_back(std::move(fresh));
}

/// The last pass of the step's phase that began before the step, if the step lies in it.
PassRow* pass_of(const StepRow& step, std::vector<PassRow>& ended, std::span<PassRow> open) {
    const PassKind kind = step.phase == Phase::train ? PassKind::train : PassKind::valid;
    const auto began = [&](const PassRow& pass) { return pass.kind == kind && pass.begin_ns <= step.draw_begin_ns; };
    for (PassRow& pass : open | std::views::reverse)
        if (began(pass))
            return &pass;
    for (PassRow& pass : ended | std::views::reverse)
        if (began(pass))
            return pass.end_ns >= step.draw_begin_ns ? &pass : nullptr;
    return nullptr;
}

void fold_step(Ledger& ledger, const OrderLoss& order, const StepRow& step, std::span<PassRow> open) {
    Folded& folded = ledger.folded;
    const StepDurations durations = durations_of(ledger, step);
    std::int64_t pieces_ns = 0;
    for (const SpanRow& piece : ledger.spans_of(step)) {
        pieces_ns = wrapping_sum(pieces_ns, piece.ns);
        folded.until_ns = std::max(folded.until_ns, wrapping_sum(piece.begin_ns, piece.ns));
    }
    folded.until_ns =
        std::max(folded.until_ns, wrapping_sum(wrapping_sum(step.draw_begin_ns, step.draw_ns), step.batch_ns));
    if (PassRow* const pass = pass_of(step, ledger.passes, open))
        pass->folded_ns = wrapping_sum(pass->folded_ns, pieces_ns);
    ++folded.steps;
    folded.samples += step.size;
    folded.draws_ns = wrapping_sum(folded.draws_ns, step.draw_ns);
    folded.batches_ns = wrapping_sum(folded.batches_ns, step.batch_ns);
    folded.other_ns = wrapping_sum(folded.other_ns, durations[static_cast<std::size_t>(Action::other)]);
    if (!counts(step)) {
        ++(step.status == StepStatus::failed ? folded.failed : folded.not_drawn);
        return;
    }
    add_to_split(folded.draw, ledger, order, step);
    const auto rates = rates_of(durations, step.size);
    for (std::size_t i = 0; i < action_count; ++i) {
        if (durations[i] == no_stamp)
            continue;
        const auto action = static_cast<Action>(i);
        FoldedAction& row =
            find_or_add(folded.actions, {.phase = step.phase, .action = action, .durations = {}},
                        [&](const FoldedAction& r) { return r.phase == step.phase && r.action == action; });
        row.durations.add(durations[i]);
        row.rates += rates[i];
        if (!std::isfinite(row.rates))
            row.rates = std::numeric_limits<double>::infinity();   // never NaN, so that it equals itself
    }
}

FoldedWorker& worker_of(Folded& folded, std::uint16_t worker) {
    return find_or_add(folded.workers, {.worker = worker},
                       [worker](const FoldedWorker& r) { return r.worker == worker; });
}

void fold_batch(Folded& folded, const BatchRow& batch) {
    folded.batch_samples += batch.size;
    if (batch.collate_begin_ns == no_stamp || batch.collate_end_ns == no_stamp)
        return;
    FoldedStage& collate = find_or_add(
        folded.stages, {.pipeline = batch.pipeline, .stage = FoldedStage::collate, .durations = {}},
        [&](const FoldedStage& r) { return r.pipeline == batch.pipeline && r.stage == FoldedStage::collate; });
    const auto ns = static_cast<std::int64_t>(wrapping_difference(batch.collate_end_ns, batch.collate_begin_ns));
    collate.durations.add(ns);
    if (batch.collate_worker)
        worker_of(folded, *batch.collate_worker).collate_ns =
            wrapping_sum(worker_of(folded, *batch.collate_worker).collate_ns, ns);
}

void fold_sample(Ledger& ledger, const SampleRow& sample) {
    Folded& folded = ledger.folded;
    const auto stages = ledger.stages_of(sample);
    const auto row_of = [&](std::uint32_t stage) -> FoldedStage& {
        return find_or_add(folded.stages, {.pipeline = sample.pipeline, .stage = stage, .durations = {}},
                           [&](const FoldedStage& r) { return r.pipeline == sample.pipeline && r.stage == stage; });
    };
    row_of(0).bytes += sample.bytes;
    for (std::uint32_t i = 0; i < stages.size(); ++i) {
        FoldedStage& row = row_of(i);
        for (const Share& share : shares_of(stages[i].ns, sample.samples))
            row.durations.add(share.ns, share.calls);
        add_usage(row.usage, sample, stages, i);
    }
    FoldedWorker& worker = worker_of(folded, sample.worker);
    worker.samples += sample.samples;
    if (!stages.empty())
        worker.busy_ns =
            wrapping_sum(worker.busy_ns, static_cast<std::int64_t>(wrapping_difference(
                                             wrapping_sum(stages.back().begin_ns, stages.back().ns), sample.begin_ns)));
}

}   // namespace

std::array<Share, 2> shares_of(std::int64_t ns, std::uint32_t samples) noexcept {
    const std::int64_t count = std::max<std::int64_t>(samples, 1);
    std::int64_t each = ns / count, longer = ns % count;
    if (longer < 0) {
        longer += count;
        --each;
    }
    return {Share{each, static_cast<std::uint64_t>(count - longer)},
            Share{each + 1, static_cast<std::uint64_t>(longer)}};
}

std::array<double, action_count> rates_of(const StepDurations& durations, std::uint32_t size) noexcept {
    const auto during = [&](Action action) {
        return size / (static_cast<double>(durations[static_cast<std::size_t>(action)]) / 1e9);
    };
    std::array<double, action_count> rates;
    for (std::size_t i = 0; i < action_count; ++i)
        rates[i] = during(static_cast<Action>(i));
    rates[static_cast<std::size_t>(Action::draw)] = during(Action::step) - during(Action::batch);
    return rates;
}

void add_to_split(DrawSplit& draw, const Ledger& ledger, const OrderLoss& order, const StepRow& step) noexcept {
    draw.order_ns += order.of(ledger, step);
    for (const SpanRow& piece : ledger.spans_of(step))
        if (piece.begin_ns >= step.draw_begin_ns && piece.begin_ns + piece.ns <= step.draw_begin_ns + step.draw_ns)
            (piece.span == Span::starved    ? draw.starved_ns
             : piece.span == Span::handoff  ? draw.handoff_ns
             : piece.span == Span::transfer ? draw.transfer_ns
                                            : draw.callbacks_ns) += piece.ns;
}

void add_usage(StageUsage& usage, const SampleRow& sample, std::span<const StageRow> stages,
               std::size_t stage) noexcept {
    const StageRow& row = stages[stage];
    const bool alone = stages.size() == 1;   // then the sample's measurements are the stage's
    // CPU time is known of nearly all stragglers and of one in n other samples. Only the latter, chosen at random, have
    // a run queue time, too; counting only these keeps stragglers from weighing too much.
    const std::int64_t whole_ns = alone && sample.run_queue_ns ? sample.cpu_ns.value_or(no_stamp) : no_stamp;
    if (const std::int64_t cpu_ns = row.cpu_ns != no_stamp ? row.cpu_ns : whole_ns; cpu_ns != no_stamp) {
        usage.calls += sample.samples;
        usage.ns += row.ns;
        usage.cpu_ns += cpu_ns;
    }
    if (alone && sample.run_queue_ns) {
        usage.queued_of_ns += row.ns;
        usage.run_queue_ns += *sample.run_queue_ns;
    }
}

void thin(std::vector<HostRow>& host, std::size_t old) {
    std::size_t next = 0;
    std::erase_if(host, [&](const HostRow&) {
        const std::size_t at = next++;
        return at < old && at % 2 != 0;
    });
}

namespace {

/// When a batch leaves the loader; one that was never taken is as old as its admission.
std::int64_t age_of(const BatchRow& batch) noexcept {
    return batch.taken_ns != no_stamp ? batch.taken_ns : batch.admitted_ns;
}

/// Folds the steps; returns whether there were any.
bool fold_steps(Ledger& ledger, std::span<PassRow> open, std::size_t keep) {
    const auto& steps = ledger.steps;
    if (steps.size() <= keep)
        return false;
    std::vector<bool> stays(steps.size());
    stays[0] = true;
    const auto has_loss = [](const StepRow& step) { return step.phase == Phase::train && step.loss; };
    const auto at = [&](auto found) { return static_cast<std::size_t>(found - steps.begin()); };
    const auto stay = [&](std::size_t step) {
        if (step < steps.size())
            stays[step] = true;
    };
    for (const Phase phase : {Phase::train, Phase::valid})
        stay(at(std::ranges::find_if(steps, [&](const StepRow& s) { return s.phase == phase && counts(s); })));
    stay(at(std::ranges::find_if(steps, has_loss)));
    stay(at(std::find_if(steps.rbegin(), steps.rend(), has_loss).base()) - 1);   // none: beyond every step
    std::fill(stays.end() - static_cast<std::ptrdiff_t>(keep), stays.end(), true);

    const std::uint64_t before = ledger.folded.steps;
    const OrderLoss order{ledger};
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (!stays[i])
            fold_step(ledger, order, steps[i], open);
    if (ledger.folded.steps == before)
        return false;
    std::size_t next = 0;
    std::erase_if(ledger.steps, [&](const StepRow&) { return !stays[next++]; });
    return true;
}

/// Lets all batches after the last step, but about `keep`, be folded; returns whether any will be.
bool pass_batches(Ledger& ledger, std::size_t keep) {
    std::int64_t last_ns = no_stamp;
    for (const StepRow& step : ledger.steps)
        last_ns = std::max(last_ns, wrapping_sum(step.draw_begin_ns, step.draw_ns));
    std::vector<std::int64_t> ages;
    for (const BatchRow& batch : ledger.batches)
        if (age_of(batch) > last_ns)
            ages.push_back(age_of(batch));
    if (ages.size() <= keep)
        return false;
    const auto first_kept = ages.end() - static_cast<std::ptrdiff_t>(keep);
    std::nth_element(ages.begin(), first_kept, ages.end());
    const bool any = ledger.folded.until_ns < *first_kept;
    ledger.folded.until_ns = std::max(ledger.folded.until_ns, *first_kept);
    return any;
}

}   // namespace

void thin_old_host(Ledger& ledger, std::size_t most) {
    most = std::clamp(most, least_old_host_rows, most_old_host_rows);
    auto old = static_cast<std::size_t>(
        std::ranges::lower_bound(ledger.host, ledger.folded.until_ns, {}, &HostRow::at_ns) - ledger.host.begin());
    for (; old > most; old -= old / 2)
        thin(ledger.host, old);
}

void fold(Ledger& ledger, std::span<PassRow> open, std::size_t keep) {
    const bool steps = fold_steps(ledger, open, keep), batches = pass_batches(ledger, keep);
    if (!steps && !batches)
        return;
    std::int64_t from_ns = ledger.folded.until_ns;
    std::erase_if(ledger.batches, [&](const BatchRow& batch) {
        const bool gone = age_of(batch) < ledger.folded.until_ns;
        if (gone)
            fold_batch(ledger.folded, batch);
        else if (batch.admitted_ns != no_stamp)
            from_ns = std::min(from_ns, batch.admitted_ns);
        return gone;
    });
    std::erase_if(ledger.samples, [&](const SampleRow& sample) {
        const bool gone = sample.begin_ns < from_ns;
        if (gone)
            fold_sample(ledger, sample);
        return gone;
    });
    const std::span<const SettingRow> settings{ledger.settings};
    std::erase_if(ledger.settings, [&](const SettingRow& row) {   // of older ones, each loader's last stays
        const auto later = settings.subspan(static_cast<std::size_t>(&row - settings.data()) + 1);
        const auto of_loader = std::ranges::find(later, row.pipeline, &SettingRow::pipeline);
        return of_loader != later.end() && of_loader->at_ns < ledger.folded.until_ns;
    });
    std::erase_if(ledger.orders,
                  [&](const OrderRow& row) { return wrapping_sum(row.begin_ns, row.ns) < ledger.folded.until_ns; });
    std::erase_if(ledger.transfers, [&](const TransferRow& row) {
        return row.end_ns < ledger.folded.until_ns && (add_to(ledger.folded.device, row), true);
    });
    std::erase_if(ledger.device_steps, [&](const DeviceStepRow& row) {
        return row.host_queued_ns < ledger.folded.until_ns && (add_to(ledger.folded.device, row), true);
    });
    thin_old_host(ledger, most_old_host_rows);
    std::vector<DroppedRow> dropped;   // older ones are merged into one row per ring
    for (const DroppedRow& row : ledger.dropped) {
        const bool old = row.to_ns < ledger.folded.until_ns;
        DroppedRow& of_ring =
            find_or_add(dropped, DroppedRow{.from_ns = row.from_ns, .to_ns = row.to_ns, .ring = row.ring},
                        [&](const DroppedRow& r) { return old && r.ring == row.ring; });
        of_ring.records += row.records;
        of_ring.from_ns = std::min(of_ring.from_ns, row.from_ns);
        of_ring.to_ns = std::max(of_ring.to_ns, row.to_ns);
    }
    ledger.dropped = std::move(dropped);
    ledger.pack();
}

}   // namespace drawpoint
