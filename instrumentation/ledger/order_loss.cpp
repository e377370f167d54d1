#include <drawpoint/instrumentation/ledger/detail/order_loss.hpp>

#include <algorithm>
#include <limits>
#include <tuple>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t done_ns(const BatchRow& row) noexcept {
    const std::int64_t done = row.collate_begin_ns == no_stamp ? row.last_done_ns : row.collate_end_ns;
    return done == no_stamp ? never : done;
}

}   // namespace

OrderLoss::OrderLoss(const Ledger& ledger) : freed_ns_(ledger.batches.size(), no_stamp) {
    std::map<Pass, std::vector<const BatchRow*>> passes;
    for (const BatchRow& row : ledger.batches) {
        if (row.status != BatchStatus::abandoned)
            draws_.push_back({row.taken_ns, {row.pipeline, row.epoch}});
        if (row.pipeline >= ledger.pipelines.size() ||
            ledger.pipelines[row.pipeline].order != OrderRule::out_of_order())
            passes[{row.pipeline, row.epoch}].push_back(&row);
    }
    std::ranges::sort(draws_, {}, &Draw::taken_ns);

    std::vector<std::int64_t> done_before;   // by i: when the last of the first i batches was complete
    for (auto& [pass, rows] : passes) {
        std::ranges::sort(rows, {}, [](const BatchRow* row) { return std::tuple{row->admitted_ns, row->batch}; });
        done_before.assign(1, no_stamp);
        std::vector<Interval> waits;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::int64_t done = done_ns(*rows[i]);
            const bool given_up = rows[i]->offered_ns == no_stamp;
            const std::int64_t until = given_up ? rows[i]->taken_ns : rows[i]->offered_ns;
            // It waited for the older batches that were complete before it was handed over, and overtook the others.
            std::int64_t freed = done;
            for (std::size_t older = i; older > 0 && done_before[older] > done; --older)
                if (const std::int64_t complete = done_ns(*rows[older - 1]); complete <= until || given_up)
                    freed = std::max(freed, std::min(complete, until));
            if (freed > done) {
                waits.push_back({done, freed});
                freed_ns_[static_cast<std::size_t>(rows[i] - ledger.batches.data())] = freed;
            }
            done_before.push_back(std::max(done_before.back(), done));
        }
        if (waits.empty())
            continue;
        std::ranges::sort(waits, {}, &Interval::from_ns);
        auto& disjoint = waits_[pass];
        for (const Interval& wait : waits)
            if (!disjoint.empty() && wait.from_ns <= disjoint.back().to_ns)
                disjoint.back().to_ns = std::max(disjoint.back().to_ns, wait.to_ns);
            else
                disjoint.push_back(wait);
    }
}

std::int64_t OrderLoss::of(const Ledger& ledger, const StepRow& step) const noexcept {
    const auto draw = std::ranges::lower_bound(draws_, step.draw_begin_ns, {}, &Draw::taken_ns);
    if (draw == draws_.end() || draw->taken_ns > step.draw_begin_ns + step.draw_ns)
        return 0;
    const auto waits = waits_.find(draw->pass);
    if (waits == waits_.end())
        return 0;
    std::int64_t lost = 0;
    for (const SpanRow& piece : ledger.spans_of(step)) {
        if (piece.span != Span::starved)
            continue;
        const std::int64_t end_ns = wrapping_sum(piece.begin_ns, piece.ns);
        for (auto wait = std::ranges::upper_bound(waits->second, piece.begin_ns, {}, &Interval::to_ns);
             wait != waits->second.end() && wait->from_ns < end_ns; ++wait)
            lost += std::min(wait->to_ns, end_ns) - std::max(wait->from_ns, piece.begin_ns);
    }
    return lost;
}

}   // namespace drawpoint
