#include <instrumentation/ledger_builder.hpp>

#include <algorithm>

#include <instrumentation/wrapping.hpp>

namespace drawpoint {

Slice LedgerBuilder::add(std::span<const SpanRow> spans) {
    const Slice slice{static_cast<std::uint32_t>(ledger_.spans.size()), static_cast<std::uint32_t>(spans.size())};
    ledger_.spans.insert(ledger_.spans.end(), spans.begin(), spans.end());
    return slice;
}

void LedgerBuilder::reached(std::int64_t ns) noexcept {
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
    reached(spans.empty() ? wrapping_sum(wrapping_sum(row.draw_begin_ns, row.draw_ns), row.batch_ns)
                          : wrapping_sum(spans.back().begin_ns, spans.back().ns));
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
    if (opened != open_.rend())
        open_.erase(std::next(opened).base());
    reached(row.end_ns);
}

void LedgerBuilder::end_of_data(const EndOfDataRow& row) {
    ledger_.ends_of_data.push_back(row);
    reached(wrapping_sum(row.begin_ns, row.ns));
}

Ledger LedgerBuilder::ledger() const {
    Ledger whole = ledger_;
    whole.passes.insert(whole.passes.end(), open_.begin(), open_.end());
    whole.sort();
    return whole;
}

}   // namespace drawpoint
