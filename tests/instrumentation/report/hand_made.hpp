#pragma once

#include <initializer_list>
#include <utility>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

/// Ledgers built piece by piece without a clock, so that the expected report can be worked out by hand.
namespace drawpoint::hand_made {

using Pieces = std::initializer_list<std::pair<Span, std::int64_t>>;

/// A training step in which every place that can take time takes a different power of two, times `factor`.
inline constexpr std::int64_t before_draw = 1, starved = 2, handoff = 4, transfer = 8, before_batch = 16, forward = 32,
                              after_pred = 64, loss = 128, after_loss = 256, gap = 512, before_backward = 1024,
                              backward = 2048, after_backward = 4096, before_step = 8192, opt_step = 16384,
                              after_step = 32768, zero_grad = 65536, after_batch = 131072, between = 262144,
                              around = 524288;

/// Builds a ledger in order of time; the next piece begins at `now`.
class Builder {
public:
    Ledger ledger;
    std::int64_t now = 1000;

    Slice lay(Pieces pieces) {
        const Slice slice{static_cast<std::uint32_t>(ledger.spans.size()), static_cast<std::uint32_t>(pieces.size())};
        for (const auto& [span, ns] : pieces) {
            ledger.spans.push_back({span, now, ns});
            now += ns;
        }
        return slice;
    }

    StepRow& step(Phase phase, std::uint32_t epoch, std::uint32_t size, Pieces draw, Pieces batch, Pieces after) {
        StepRow row{
            .step = static_cast<std::uint32_t>(ledger.steps.size()), .epoch = epoch, .phase = phase, .size = size};
        row.draw_begin_ns = now;
        row.spans = lay(draw);
        row.draw_ns = now - row.draw_begin_ns;
        row.spans.count += lay(batch).count;
        row.batch_ns = now - row.draw_begin_ns - row.draw_ns;
        row.spans.count += lay(after).count;
        return ledger.steps.emplace_back(row);
    }

    StepRow& train_step(std::uint32_t epoch, std::uint32_t size, std::int64_t factor) {
        return step(Phase::train, epoch, size,
                    {{span_of(Event::before_draw), before_draw * factor},
                     {Span::starved, starved * factor},
                     {Span::handoff, handoff * factor},
                     {Span::transfer, transfer * factor}},
                    {{span_of(Event::before_batch), before_batch * factor},
                     {Span::forward, forward * factor},
                     {span_of(Event::after_pred), after_pred * factor},
                     {Span::loss, loss * factor},
                     {span_of(Event::after_loss), after_loss * factor},
                     {Span::other, gap * factor},
                     {span_of(Event::before_backward), before_backward * factor},
                     {Span::backward, backward * factor},
                     {span_of(Event::after_backward), after_backward * factor},
                     {span_of(Event::before_step), before_step * factor},
                     {Span::opt_step, opt_step * factor},
                     {span_of(Event::after_step), after_step * factor},
                     {Span::zero_grad, zero_grad * factor},
                     {span_of(Event::after_batch), after_batch * factor}},
                    {{Span::between, between * factor}});
    }

    StepRow& valid_step(std::uint32_t epoch, std::uint32_t size, std::int64_t factor) {
        return step(Phase::valid, epoch, size,
                    {{span_of(Event::before_draw), before_draw * factor}, {Span::starved, starved * factor}},
                    {{span_of(Event::before_batch), before_batch * factor},
                     {Span::forward, forward * factor},
                     {span_of(Event::after_pred), after_pred * factor},
                     {Span::loss, loss * factor},
                     {span_of(Event::after_loss), after_loss * factor},
                     {Span::other, gap * factor},
                     {span_of(Event::after_batch), after_batch * factor}},
                    {{Span::between, between * factor}});
    }

    /// Opens a pass at `now` and spends `around` in it; `close` ends it at `now`.
    std::size_t open(PassKind kind, std::uint32_t epoch) {
        ledger.passes.push_back({.kind = kind, .epoch = epoch, .begin_ns = now});
        ledger.passes.back().spans = lay({{Span::between, around}});
        return ledger.passes.size() - 1;
    }
    void close(std::size_t pass) { ledger.passes[pass].end_ns = now; }
};

/// A fit of one epoch: three training steps of 4 samples with factors 1, 2 and 4, then two validation steps of 8
/// samples.
inline Ledger one_epoch() {
    Builder run;
    const auto fit = run.open(PassKind::fit, 0), epoch = run.open(PassKind::epoch, 0);
    const auto train = run.open(PassKind::train, 0);
    for (const std::int64_t factor : {1, 2, 4})
        run.train_step(0, 4, factor).loss = 8.0 / static_cast<double>(factor);
    run.close(train);
    const auto valid = run.open(PassKind::valid, 0);
    for (const std::int64_t factor : {1, 2})
        run.valid_step(0, 8, factor);
    run.close(valid);
    run.close(epoch);
    run.close(fit);
    run.ledger.pipelines = {
        {.name = "train", .stages = {"decode+crop", "scale"}, .batch_size = 4, .num_workers = 2, .prefetch_depth = 3}};
    run.ledger.sort();
    return std::move(run.ledger);
}

}   // namespace drawpoint::hand_made
