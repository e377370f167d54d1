#include <drawpoint/instrumentation/ledger/ledger_window.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

struct Window {
    std::int64_t from_ns, to_ns;
    [[nodiscard]] bool has(std::int64_t at_ns) const noexcept { return at_ns >= from_ns && at_ns < to_ns; }
    [[nodiscard]] bool has(std::int64_t begin_ns, std::int64_t end_ns) const noexcept {
        return begin_ns >= from_ns && end_ns <= to_ns;
    }
    /// The part of a piece inside the window; its length is 0 if there is none.
    [[nodiscard]] SpanRow cut(const SpanRow& piece) const noexcept {
        const std::int64_t begin = std::clamp(piece.begin_ns, from_ns, to_ns);
        return {piece.span, begin, std::clamp(piece.begin_ns + piece.ns, from_ns, to_ns) - begin};
    }
};

using Pieces = std::vector<SpanRow>;

template <class Rows, class Keep>
void copy_if(const Rows& from, Rows& to, Keep keep) {
    std::ranges::copy_if(from, std::back_inserter(to), keep);
}

/// Calls use(row, pass) for each row; begin_of(row) is when it begins. `pass` is the index of the latest pass of the
/// row's kind that has begun by then, or passes.size().
template <class Row, class BeginOf, class Use>
void with_pass(const Ledger& ledger, const std::vector<Row>& rows, BeginOf begin_of, Use use) {
    std::array<std::size_t, 4> open;
    open.fill(ledger.passes.size());
    std::size_t next = 0;
    for (const Row& row : rows) {
        for (; next < ledger.passes.size() && ledger.passes[next].begin_ns <= begin_of(row); ++next)
            open[static_cast<std::size_t>(ledger.passes[next].kind)] = next;
        use(row, open[static_cast<std::size_t>(row.phase == Phase::train ? PassKind::train : PassKind::valid)]);
    }
}

/// Copies what is not cut: rows without a time, and what other rows refer to.
void copy_whole(const Ledger& ledger, Ledger& part) {
    part.facts = ledger.facts;
    part.pipelines = ledger.pipelines;
    part.names = ledger.names;
    part.threads = ledger.threads;
    part.frames = ledger.frames;
    part.stacks = ledger.stacks;
    part.thinnings = ledger.thinnings;
    part.settings = ledger.settings;
}

/// Keeps the steps and last draws that lie inside the window. From the others it returns the pieces inside, by pass:
/// they become pieces of the pass itself.
std::vector<Pieces> keep_steps(const Ledger& ledger, const Window& window, Ledger& part) {
    std::vector<Pieces> loose(ledger.passes.size());
    const auto loosen = [&](const SpanRow& piece, std::size_t pass) {
        if (const SpanRow cut = window.cut(piece); cut.ns > 0 && pass < loose.size())
            loose[pass].push_back(cut);
    };
    with_pass(
        ledger, ledger.steps, [](const StepRow& row) { return row.draw_begin_ns; },
        [&](const StepRow& row, std::size_t pass) {
            if (!window.has(row.draw_begin_ns, row.draw_begin_ns + row.draw_ns + row.batch_ns)) {
                for (const SpanRow& piece : ledger.spans_of(row))
                    loosen(piece, pass);
                return;
            }
            StepRow kept = row;
            kept.spans.first = static_cast<std::uint32_t>(part.spans.size());
            for (const SpanRow& piece : ledger.spans_of(row))   // the time after the step may reach beyond the window
                part.spans.push_back(window.cut(piece));
            part.steps.push_back(kept);
        });
    with_pass(
        ledger, ledger.ends_of_data, [](const EndOfDataRow& row) { return row.begin_ns; },
        [&](const EndOfDataRow& row, std::size_t pass) {
            if (window.has(row.begin_ns, row.begin_ns + row.ns))
                part.ends_of_data.push_back(row);
            else
                loosen({Span::starved, row.begin_ns, row.ns}, pass);
        });
    return loose;
}

/// Cuts the passes to the window. `loose`: as keep_steps() returns it.
void cut_passes(const Ledger& ledger, const Window& window, std::vector<Pieces> loose, Ledger& part) {
    for (std::size_t i = 0; i < ledger.passes.size(); ++i) {
        PassRow pass = ledger.passes[i];
        if (std::min(pass.end_ns, window.to_ns) <= std::max(pass.begin_ns, window.from_ns))
            continue;
        for (const SpanRow& piece : ledger.spans_of(pass))
            if (const SpanRow cut = window.cut(piece); cut.ns > 0 || window.has(piece.begin_ns))
                loose[i].push_back(cut);
        std::ranges::stable_sort(loose[i], {}, &SpanRow::begin_ns);
        pass.folded_ns = 0;   // all of it lies before the window
        if (pass.begin_ns < window.from_ns || pass.end_ns > window.to_ns)
            pass.unmarked_ns = pass.clamped_ns = pass.ahead_ns = 0;   // nobody knows how much of it lies inside
        pass.begin_ns = std::max(pass.begin_ns, window.from_ns);
        pass.end_ns = std::min(pass.end_ns, window.to_ns);
        pass.spans = {static_cast<std::uint32_t>(part.spans.size()), static_cast<std::uint32_t>(loose[i].size())};
        part.spans.insert(part.spans.end(), loose[i].begin(), loose[i].end());
        part.passes.push_back(pass);
    }
}

void keep_batches_and_failures(const Ledger& ledger, const Window& window, Ledger& part) {
    copy_if(ledger.batches, part.batches, [&](const BatchRow& row) {
        return row.taken_ns == no_stamp ? row.admitted_ns != no_stamp && window.has(row.admitted_ns)
                                        : window.has(row.taken_ns);
    });
    // A failure has no time of its own: it goes with its batch.
    copy_if(ledger.failures, part.failures, [&](const FailureRow& row) {
        return std::ranges::any_of(part.batches, [&](const BatchRow& batch) {
            return batch.pipeline == row.pipeline && batch.epoch == row.epoch && batch.batch == row.batch;
        });
    });
}

void keep_samples(const Ledger& ledger, const Window& window, Ledger& part) {
    for (const SampleRow& row : ledger.samples) {
        const auto stages = ledger.stages_of(row);
        std::int64_t end_ns = row.begin_ns;
        for (const StageRow& stage : stages)
            end_ns = std::max(end_ns, stage.begin_ns + stage.ns);
        if (!window.has(row.begin_ns, end_ns))
            continue;
        SampleRow kept = row;
        kept.stages.first = static_cast<std::uint32_t>(part.stages.size());
        part.stages.insert(part.stages.end(), stages.begin(), stages.end());
        part.samples.push_back(kept);
    }
}

/// Host rows are counters, of which only differences matter. The rows just before and after are kept too, so that the
/// differences cover the whole window.
void keep_host(const Ledger& ledger, const Window& window, Ledger& part) {
    const auto first = std::ranges::upper_bound(ledger.host, window.from_ns, {}, &HostRow::at_ns),
               last = std::ranges::lower_bound(ledger.host, window.to_ns, {}, &HostRow::at_ns);
    part.host.assign(first - (first != ledger.host.begin()), std::max(first, last + (last != ledger.host.end())));
}

}   // namespace

Ledger window(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    const Window window{from_ns, std::max(from_ns, to_ns)};
    if (window.from_ns < ledger.folded.until_ns)
        throw std::invalid_argument("a window may not begin before the steps that the ledger keeps (ledger_bytes)");
    Ledger part;
    part.start_ns = std::clamp(ledger.start_ns, window.from_ns, window.to_ns);
    copy_whole(ledger, part);
    std::vector<Pieces> loose = keep_steps(ledger, window, part);
    cut_passes(ledger, window, std::move(loose), part);
    keep_batches_and_failures(ledger, window, part);
    keep_samples(ledger, window, part);
    keep_host(ledger, window, part);
    copy_if(ledger.dropped, part.dropped,
            [&](const DroppedRow& row) { return row.from_ns < window.to_ns && row.to_ns >= window.from_ns; });
    copy_if(ledger.orders, part.orders, [&](const OrderRow& row) {
        return row.begin_ns < window.to_ns && wrapping_sum(row.begin_ns, row.ns) >= window.from_ns;
    });
    copy_if(ledger.transfers, part.transfers,
            [&](const TransferRow& row) { return window.has(row.begin_ns, row.end_ns); });
    copy_if(ledger.device_steps, part.device_steps,
            [&](const DeviceStepRow& row) { return window.has(row.host_queued_ns); });
    copy_if(ledger.operators, part.operators,
            [&](const OperatorRow& row) { return window.has(row.begin_ns, row.begin_ns + row.ns); });
    copy_if(ledger.allocations, part.allocations, [&](const AllocationRow& row) { return window.has(row.at_ns); });
    copy_if(ledger.stack_samples, part.stack_samples, [&](const StackSampleRow& row) { return window.has(row.at_ns); });
    part.sort();
    return part;
}

}   // namespace drawpoint
