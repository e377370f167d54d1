#include "diagnosis/replay/replay_rows.hpp"

#include <algorithm>
#include <utility>

#include <drawpoint/instrumentation/ledger/device_time.hpp>

namespace drawpoint {

ReplayRows::ReplayRows(const RecordedRun& run, const LoaderSetting& setting, std::size_t workers) : open_(workers) {
    ledger_.pipelines.push_back(
        pipeline_row(run.pipeline, run.stages.empty() ? std::vector<std::string>{"sample"} : run.stages, setting));
}

void ReplayRows::begin_pass(std::int64_t now_ns) {
    if (in_pass_) {
        end_pass(now_ns);
        ++epoch_;
    }
    in_pass_ = true;
    pass_begin_ns_ = now_ns;
}

void ReplayRows::pause(Span span, std::int64_t begin_ns, std::int64_t ns) {
    if (ns != 0)
        pauses_.push_back({.span = span, .begin_ns = begin_ns, .ns = ns});
}

void ReplayRows::end_pass(std::int64_t now_ns) {
    const Slice spans{static_cast<std::uint32_t>(ledger_.spans.size()), static_cast<std::uint32_t>(pauses_.size())};
    ledger_.spans.insert(ledger_.spans.end(), pauses_.begin(), pauses_.end());
    pauses_.clear();
    for (const PassKind kind : {PassKind::epoch, PassKind::train})
        ledger_.passes.push_back({.kind = kind,
                                  .epoch = epoch_,
                                  .begin_ns = pass_begin_ns_,
                                  .end_ns = now_ns,
                                  .spans = kind == PassKind::train ? spans : Slice{}});
}

void ReplayRows::end_order(std::optional<std::uint16_t> worker, std::uint64_t epoch, std::int64_t now_ns,
                           std::int64_t cpu_ns) {
    ledger_.orders.push_back({.begin_ns = order_begin_ns_,
                              .ns = now_ns - order_begin_ns_,
                              .cpu_ns = cpu_ns,
                              .epoch = static_cast<std::uint32_t>(epoch),
                              .worker = worker});
}

void ReplayRows::read_ahead(std::uint32_t worker, std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    open_[worker].row.read_begin_ns = begin_ns;
    open_[worker].row.read_end_ns = end_ns;
}

void ReplayRows::end_stage(std::uint32_t worker, std::int64_t now_ns, std::int64_t cpu_ns) noexcept {
    Open& open = open_[worker];
    const std::int64_t begin = open.stage_count == 0
                                   ? open.row.begin_ns
                                   : open.stages[open.stage_count - 1].begin_ns + open.stages[open.stage_count - 1].ns;
    open.stages[open.stage_count++] = {.begin_ns = begin, .ns = now_ns - begin, .cpu_ns = cpu_ns};
}

void ReplayRows::end_sample(std::uint32_t worker, const BatchRow& batch, std::uint32_t place, std::uint64_t index,
                            std::uint64_t bytes, std::int64_t waited_ns) {
    const Open& open = open_[worker];
    SampleRow row = open.row;
    std::int64_t wall = 0, cpu = 0;
    row.stages = {static_cast<std::uint32_t>(ledger_.stages.size()), open.stage_count};
    for (std::uint32_t i = 0; i < open.stage_count; ++i) {
        ledger_.stages.push_back(open.stages[i]);
        wall += open.stages[i].ns;
        cpu += open.stages[i].cpu_ns;
    }
    row.index = index;
    row.epoch = batch.epoch;
    row.batch = batch.batch;
    row.slot = place;
    row.worker = static_cast<std::uint16_t>(worker);
    row.bytes = bytes;
    row.cpu_ns = cpu;
    row.run_queue_ns = wall - cpu - waited_ns;
    ledger_.samples.push_back(row);
}

void ReplayRows::step(const BatchRow& batch, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t next_ns,
                      const StepDemand& demand, const Waits& waits) {
    // Of the loop's own thread, while it holds the batch.
    const auto cpu_ns =
        static_cast<std::int64_t>(static_cast<double>(demand.compute.cpu_ns) / std::max(demand.threads, 1.0));
    const std::int64_t queued_ns =
        std::max<std::int64_t>(end_ns - batch.taken_ns - cpu_ns - demand.compute.wait_ns - waits.in_step_ns, 0);
    StepRow row{.step = static_cast<std::uint32_t>(ledger_.steps.size()),
                .epoch = batch.epoch,
                .batch = batch.batch,
                .phase = Phase::train,
                .status = StepStatus::complete,
                .size = batch.size,
                .draw_begin_ns = begin_ns,
                .draw_ns = batch.taken_ns - begin_ns,
                .batch_ns = end_ns - batch.taken_ns,
                .cpu_ns = cpu_ns,
                .run_queue_ns = queued_ns};
    row.spans.first = static_cast<std::uint32_t>(ledger_.spans.size());
    auto add = [&, at = begin_ns](Span span, std::int64_t until) mutable {
        if (until > at) {
            ledger_.spans.push_back({span, at, until - at});
            at = until;
        }
    };
    add(Span::transfer, waits.device_until_ns);
    add(Span::starved, batch.offered_ns);
    add(Span::handoff, waits.resumed_ns);
    add(Span::transfer, batch.taken_ns);
    add(Span::forward, end_ns);
    add(Span::between, next_ns);
    row.spans.count = static_cast<std::uint32_t>(ledger_.spans.size()) - row.spans.first;
    ledger_.steps.push_back(row);
}

void ReplayRows::device_step(DeviceStepRow row) {
    const StepRow& step = ledger_.steps.back();
    row.step = step.step;
    row.epoch = step.epoch;
    row.phase = step.phase;
    split_dry(ledger_, row);
    ledger_.device_steps.push_back(row);
}

void ReplayRows::transfer(const ReplayDevice::Times& copy, const BatchRow& batch, std::uint64_t bytes) {
    ledger_.transfers.push_back({.epoch = batch.epoch,
                                 .batch = batch.batch,
                                 .bytes = bytes,
                                 .issue_ns = copy.issue_ns,
                                 .begin_ns = copy.begin_ns,
                                 .end_ns = copy.end_ns});
}

Ledger ReplayRows::finish(std::int64_t now_ns) {
    end_pass(now_ns);
    ledger_.passes.push_back({.kind = PassKind::fit, .begin_ns = 0, .end_ns = now_ns});
    ledger_.sort();
    return std::move(ledger_);
}

}   // namespace drawpoint
