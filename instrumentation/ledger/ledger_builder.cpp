#include "instrumentation/ledger/ledger_builder.hpp"

#include <algorithm>

#include "instrumentation/ledger/folding.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {

namespace {

constexpr std::size_t most_host_rows = 4096;

}   // namespace

Slice LedgerBuilder::add(std::span<const SpanRow> spans) {
    const Slice slice{static_cast<std::uint32_t>(ledger_.spans.size()), static_cast<std::uint32_t>(spans.size())};
    ledger_.spans.insert(ledger_.spans.end(), spans.begin(), spans.end());
    return slice;
}

void LedgerBuilder::reached(std::int64_t ns) noexcept {
    last_ns_ = std::max(last_ns_, ns);
    for (PassRow& pass : open_)
        pass.end_ns = std::max(pass.end_ns, ns);
}

void LedgerBuilder::sample(SampleRow row, std::span<const StageRow> stages) {
    row.stages = {static_cast<std::uint32_t>(ledger_.stages.size()), static_cast<std::uint32_t>(stages.size())};
    ledger_.stages.insert(ledger_.stages.end(), stages.begin(), stages.end());
    ledger_.samples.push_back(row);
}

void LedgerBuilder::step(StepRow row, std::span<const SpanRow> spans) {
    row.spans = add(spans);
    ledger_.steps.push_back(row);
    reached(wrapping_sum(wrapping_sum(row.draw_begin_ns, row.draw_ns), row.batch_ns));
    if (!spans.empty())
        reached(wrapping_sum(spans.back().begin_ns, spans.back().ns));
    if (most_steps_ != 0 && ledger_.steps.size() > most_steps_)
        fold(ledger_, open_, std::max<std::size_t>(most_steps_ / 2, 1));
}

void LedgerBuilder::host(const HostRow& row) {
    ledger_.host.push_back(row);
    if (most_steps_ != 0 && ledger_.host.size() > most_host_rows)   // a loader alone: no step ends
        thin(ledger_.host, most_host_rows / 2);
}

void LedgerBuilder::pass_begin(const PassRow& row) {
    reached(row.begin_ns);
    open_.push_back({.kind = row.kind,
                     .epoch = row.epoch,
                     .begin_ns = row.begin_ns,
                     .end_ns = row.begin_ns,
                     .ended = false,
                     .spans = {}});
}

void LedgerBuilder::pass(PassRow row, std::span<const SpanRow> spans) {
    row.ended = true;
    row.spans = add(spans);
    ledger_.passes.push_back(row);
    const auto opened = std::find_if(open_.rbegin(), open_.rend(), [&](const PassRow& open) {
        return open.kind == row.kind && open.epoch == row.epoch && open.begin_ns == row.begin_ns;
    });
    if (opened != open_.rend()) {
        ledger_.passes.back().folded_ns = opened->folded_ns;
        open_.erase(std::next(opened).base());
    }
    reached(row.end_ns);
}

void LedgerBuilder::end_of_data(const EndOfDataRow& row) {
    ledger_.ends_of_data.push_back(row);
    reached(wrapping_sum(row.begin_ns, row.ns));
}

bool LedgerBuilder::definitions(const Definitions& added) {
    ledger_.names.insert(ledger_.names.end(), added.names.begin(), added.names.end());
    add_threads(ledger_.threads, thread_positions_, added.threads);
    open_operators_.resize(ledger_.threads.size());
    const auto is_name = [&](std::uint32_t name) { return name < ledger_.names.size(); };
    for (const FrameRow& row : added.frames) {
        if (!is_name(row.function) || (row.file != nothing && !is_name(row.file)))
            return false;
        ledger_.frames.push_back(row);
    }
    for (const StackRow& row : added.stacks) {
        if (row.frame >= ledger_.frames.size() || (row.parent != nothing && row.parent >= ledger_.stacks.size()))
            return false;
        ledger_.stacks.push_back(row);
    }
    return true;
}

bool LedgerBuilder::operator_begin(OperatorRow row) {
    if (row.name >= ledger_.names.size() || row.thread >= ledger_.threads.size() ||
        (row.shapes != nothing && row.shapes >= ledger_.names.size()) ||
        (row.stack != nothing && row.stack >= ledger_.stacks.size()))
        return false;
    row.ended = false;
    row.ns = 0;
    open_operators_[row.thread].push_back(ledger_.operators.size());
    ledger_.operators.push_back(row);
    last_ns_ = std::max(last_ns_, row.begin_ns);
    return true;
}

bool LedgerBuilder::operator_end(std::uint32_t thread, std::int64_t at_ns, bool lost) {
    if (thread >= open_operators_.size() || open_operators_[thread].empty())
        return false;
    OperatorRow& row = ledger_.operators[open_operators_[thread].back()];
    open_operators_[thread].pop_back();
    row.ns = static_cast<std::int64_t>(wrapping_difference(at_ns, row.begin_ns));
    row.ended = !lost;
    last_ns_ = std::max(last_ns_, at_ns);
    return true;
}

bool LedgerBuilder::allocation(const AllocationRow& row) {
    if (row.thread >= ledger_.threads.size())
        return false;
    ledger_.allocations.push_back(row);
    last_ns_ = std::max(last_ns_, row.at_ns);
    return true;
}

bool LedgerBuilder::stack_sample(const StackSampleRow& row) {
    if (row.thread >= ledger_.threads.size() || row.stack >= ledger_.stacks.size())
        return false;
    ledger_.stack_samples.push_back(row);
    last_ns_ = std::max(last_ns_, row.at_ns);
    return true;
}

Ledger LedgerBuilder::ledger() const {
    Ledger whole = ledger_;
    for (const auto& of_thread : open_operators_)
        for (const std::size_t open : of_thread) {
            OperatorRow& row = whole.operators[open];
            row.ns = static_cast<std::int64_t>(wrapping_difference(std::max(last_ns_, row.begin_ns), row.begin_ns));
        }
    whole.passes.insert(whole.passes.end(), open_.begin(), open_.end());
    whole.sort();
    return whole;
}

}   // namespace drawpoint
