#include "diagnosis/blame/batch_chain.hpp"

#include <algorithm>

#include <drawpoint/instrumentation/ledger/device_time.hpp>

#include "diagnosis/blame/stage_spending.hpp"

namespace drawpoint {
namespace {

/// Equal except for begin and length.
bool same(const BlamePiece& a, const BlamePiece& b) noexcept {
    return a.cause == b.cause && a.spent == b.spent && a.stage == b.stage && a.sample == b.sample;
}

}   // namespace

std::uint32_t last_sample(const Ledger& ledger, const LoaderRows& rows, std::uint32_t batch) noexcept {
    std::uint32_t last = nothing;
    for (const std::uint32_t i : rows.samples_of(batch))
        if (last == nothing || end_ns(ledger, ledger.samples[i]) >= end_ns(ledger, ledger.samples[last]))
            last = i;
    return last;
}

std::uint32_t BatchChain::cut(std::size_t step, std::vector<BlamePiece>& pieces) {
    const StepRow& row = ledger_->steps[step];
    const std::int64_t draw_end = draw_end_ns(row);
    const std::uint32_t batch = rows_->batch_of(step);
    const std::size_t first = pieces.size();
    std::int64_t at = row.draw_begin_ns;
    const auto add = [&](std::int64_t until_ns, Cause cause) {
        until_ns = std::clamp(until_ns, at, draw_end);
        if (until_ns > at) {
            if (cause == Cause::unknown && batch != nothing)   // the loop's own records do not explain it
                walk(batch, {at, until_ns});
            else
                backwards_.assign(1, {.cause = cause, .begin_ns = at, .ns = until_ns - at});
            if (pieces.size() > first && same(pieces.back(), backwards_.back())) {
                pieces.back().ns += backwards_.back().ns;
                backwards_.pop_back();
            }
            pieces.insert(pieces.end(), backwards_.rbegin(), backwards_.rend());
        }
        at = until_ns;
    };
    for (const SpanRow& span : ledger_->spans_of(row)) {
        if (span.begin_ns >= draw_end)
            continue;
        Cause cause = Cause::unknown;
        if (span.span < Span::starved || span.span == Span::callbacks)
            cause = Cause::callbacks;
        else if (span.span == Span::handoff)
            cause = Cause::handoff;
        else if (span.span == Span::transfer)
            cause = Cause::transfer;
        add(span.begin_ns, Cause::unknown);
        add(end_ns(span.begin_ns, span.ns), cause);
    }
    add(draw_end, Cause::unknown);
    if (const DeviceStepRow* const device = device_step_of(*ledger_, row))
        hide(pieces, first,
             {std::clamp(device->free_ns, row.draw_begin_ns, draw_end),
              std::clamp(std::min(device->host_queued_ns, device->queued_ns), row.draw_begin_ns, draw_end)});
    return batch == nothing ? nothing : last_sample(*ledger_, *rows_, batch);
}

void BatchChain::hide(std::vector<BlamePiece>& pieces, std::size_t first, TimeRange dry) {
    const std::vector<BlamePiece> seen(pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end());
    pieces.resize(first);
    const auto add = [&](BlamePiece piece, std::int64_t from_ns, std::int64_t to_ns) {
        piece.begin_ns = std::max(piece.begin_ns, from_ns);
        piece.ns = to_ns - piece.begin_ns;
        if (piece.ns <= 0)
            return;
        if (pieces.size() > first && same(pieces.back(), piece))
            pieces.back().ns += piece.ns;
        else
            pieces.push_back(piece);
    };
    for (const BlamePiece& piece : seen) {
        const std::int64_t end_ns = piece.begin_ns + piece.ns;
        const BlamePiece hidden{.cause = Cause::hidden, .begin_ns = piece.begin_ns};
        add(hidden, piece.begin_ns, std::min(end_ns, dry.from_ns));
        add(piece, dry.from_ns, std::min(end_ns, dry.to_ns));
        add(hidden, std::max(dry.from_ns, dry.to_ns), end_ns);
    }
}

void BatchChain::until(std::int64_t stamp_ns, BlamePiece what) {
    if (stamp_ns != no_stamp)
        take(at_ns_ - std::clamp(stamp_ns, from_ns_, at_ns_), what);
}

void BatchChain::take(std::int64_t ns, BlamePiece what) {
    at_ns_ -= ns;
    what.begin_ns = at_ns_;
    what.ns = ns;
    if (ns <= 0)
        return;
    if (!backwards_.empty() && same(what, backwards_.back())) {
        backwards_.back().begin_ns = at_ns_;
        backwards_.back().ns += ns;
    } else {
        backwards_.push_back(what);
    }
}

void BatchChain::walk(std::uint32_t batch, TimeRange range) {
    const BatchRow& row = ledger_->batches[batch];
    backwards_.clear();
    from_ns_ = range.from_ns;
    at_ns_ = range.to_ns;
    const bool collated = row.collate_begin_ns != no_stamp && row.collate_end_ns != no_stamp;
    const std::int64_t made_ns = collated ? row.collate_end_ns : row.last_done_ns;

    until(row.offered_ns, {.cause = Cause::handoff});
    if (row.transfer_issue_ns != no_stamp && row.transfer_done_ns != no_stamp) {
        until(row.transfer_done_ns, {.cause = Cause::handoff});
        until(row.transfer_issue_ns, {.cause = Cause::transfer});
        until(made_ns, {.cause = Cause::transfer_queue});
    }
    const bool is_delivered = row.delivery_begin_ns != no_stamp && row.delivery_end_ns != no_stamp;
    if (is_delivered)
        until(row.delivery_end_ns, {.cause = Cause::order});
    until(std::max(order_->freed_ns(batch), made_ns), {.cause = is_delivered ? Cause::transfer : Cause::handoff});
    until(made_ns, {.cause = Cause::order});
    if (collated) {
        until(row.collate_begin_ns, {.cause = Cause::collate});
        until(row.last_done_ns, {.cause = Cause::collate_queue});
    }
    const bool seen = !rows_->samples_of(batch).empty();
    if (seen)
        walk_samples(batch, rows_->setting_at(row.pipeline, row.admitted_ns).num_workers == 0);
    until(row.first_claim_ns, {.cause = seen ? Cause::other_samples : Cause::unknown});
    walk_admission(row);
}

void BatchChain::walk_samples(std::uint32_t batch, bool inline_loader) {
    const std::uint32_t last = last_sample(*ledger_, *rows_, batch);
    // After its last sample the worker reported the batch. If a sample is not recorded, that one may have been later.
    until(end_ns(*ledger_, ledger_->samples[last]), {.cause = rows_->whole(batch) ? Cause::handoff : Cause::unknown});
    walk_stages(last);
    if (!inline_loader)
        return;
    // The loop made all samples itself, one after the other.
    const auto samples = rows_->samples_of(batch);
    by_end_.assign(samples.begin(), samples.end());
    std::ranges::stable_sort(by_end_, {}, [&](std::uint32_t i) { return end_ns(*ledger_, ledger_->samples[i]); });
    by_end_.pop_back();
    for (auto i = by_end_.rbegin(); i != by_end_.rend(); ++i) {
        until(end_ns(*ledger_, ledger_->samples[*i]), {.cause = Cause::other_samples});
        walk_stages(*i);
    }
}

void BatchChain::walk_stages(std::uint32_t i) {
    const SampleRow& sample = ledger_->samples[i];
    const auto stages = ledger_->stages_of(sample);
    const auto spending = spending_of(*ledger_, sample);
    for (std::size_t stage = std::min(stages.size(), max_stages); stage-- > 0;) {
        const StageSpending& spent = spending[stage];
        // The gap between this stage and the next belongs to this one; the gap before the first stage to the first.
        const std::int64_t begin_ns =
                               stage == 0 ? std::min(sample.begin_ns, stages[0].begin_ns) : stages[stage].begin_ns,
                           there_ns = end_ns(stages[stage].begin_ns, spent.read_ns);
        const std::int64_t ns = at_ns_ - std::clamp(spent.read_ns > 0 ? there_ns : begin_ns, from_ns_, at_ns_);
        BlamePiece piece{.cause = Cause::stage, .stage = static_cast<std::uint8_t>(stage), .sample = i};
        const auto as = [&piece](Spent how) {
            piece.spent = how;
            return piece;
        };
        if (spent.cpu_ns == no_stamp || spent.ns <= 0) {
            take(ns, piece);
        } else {
            const std::int64_t computing = proportion(ns, spent.cpu_ns, spent.ns);
            std::int64_t queued = 0;
            if (spent.run_queue_ns != no_stamp)
                queued = proportion(ns, spent.cpu_ns + spent.run_queue_ns, spent.ns) - computing;
            take(ns - computing - queued, as(spent.run_queue_ns == no_stamp ? Spent::unknown : Spent::waiting));
            take(queued, as(Spent::run_queue));
            take(computing, as(Spent::computing));
        }
        if (spent.read_ns > 0)
            until(begin_ns, {.cause = Cause::read, .spent = Spent::waiting, .sample = i});
    }
}

void BatchChain::walk_admission(const BatchRow& row) {
    until(row.admitted_ns, {.cause = row.first_claim_ns == no_stamp ? Cause::unknown : Cause::worker});
    if (row.admitted_ns == no_stamp)
        return take(at_ns_ - from_ns_, {.cause = Cause::unknown});
    walk_order(row);
    // The first batch of a pass waits only for its pass: under a budget it is admitted whatever its size.
    if (row.batch > 0 && rows_->setting_at(row.pipeline, at_ns_).memory_budget > 0)
        until(rows_->slot_free(row.pipeline, {from_ns_, at_ns_}).from_ns, {.cause = Cause::budget});
    take(at_ns_ - from_ns_, {.cause = Cause::admission});
}

void BatchChain::walk_order(const BatchRow& row) {
    const auto orders = rows_->orders_of(row.pipeline, row.epoch);
    const auto begin_ns = [this](std::uint32_t i) { return ledger_->orders[i].begin_ns; };
    for (auto at = std::ranges::lower_bound(orders, at_ns_, {}, begin_ns); at != orders.begin() && at_ns_ > from_ns_;) {
        const OrderRow& order = ledger_->orders[*--at];
        if (end_ns(order.begin_ns, order.ns) <= from_ns_)
            return;   // older ones of this epoch ended before this one began
        until(end_ns(order.begin_ns, order.ns), {.cause = Cause::admission});
        until(order.begin_ns, {.cause = Cause::sampler});
    }
}

}   // namespace drawpoint
