#include <drawpoint/diagnosis/blame/blame.hpp>

#include <algorithm>

#include "diagnosis/blame/batch_chain.hpp"
#include "diagnosis/blame/blame_parts.hpp"
#include "diagnosis/blame/warm_up.hpp"

namespace drawpoint {

Blame blame(const Ledger& ledger) {
    const LoaderRows rows{ledger};
    const OrderLoss order{ledger};
    BatchChain chain{ledger, rows, order};
    Blame result;
    result.first_steady_step = first_steady_step(ledger, rows);
    const std::vector<bool> first = first_of_pass(ledger);
    result.draws.reserve(ledger.steps.size());
    for (std::uint32_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        DrawBlame draw{.step = i,
                       .batch = rows.batch_of(i),
                       .pieces = {static_cast<std::uint32_t>(result.pieces.size()), 0},
                       .order_ns = order.of(ledger, step),
                       .warm_up = i < result.first_steady_step,
                       .first_of_pass = first[i]};
        draw.last_sample = chain.cut(i, result.pieces);
        draw.pieces.count = static_cast<std::uint32_t>(result.pieces.size()) - draw.pieces.first;
        std::int64_t residual_ns = length_ns(step.draw_begin_ns, draw_end_ns(step));
        for (const BlamePiece& piece : std::span{result.pieces}.subspan(draw.pieces.first))
            residual_ns -= piece.ns;
        result.max_residual_ns = std::max(result.max_residual_ns, residual_ns < 0 ? -residual_ns : residual_ns);
        result.draws.push_back(draw);
    }
    add_slow_samples(result, ledger, rows);
    add_workers(result, ledger, rows);
    return result;
}

DrawKind kind_of(const DrawBlame& draw) noexcept {
    if (draw.warm_up)
        return DrawKind::warm_up;
    return draw.first_of_pass ? DrawKind::first_of_pass : DrawKind::steady;
}

}   // namespace drawpoint
