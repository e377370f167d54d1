#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/fastxtend_log.hpp>

namespace drawpoint {
namespace {

/// The difference of two stamps, each first converted to seconds, so that it rounds as in a program with such a clock.
double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
    return static_cast<double>(to_ns) / 1e9 - static_cast<double>(from_ns) / 1e9;
}

std::optional<std::int64_t> stamp_at(Edge edge, std::span<const SpanRow> spans) {
    const auto found = std::ranges::find(spans, span_of(edge.event), &SpanRow::span);
    if (found == spans.end())
        return std::nullopt;
    return edge.end ? found->begin_ns + found->ns : found->begin_ns;
}

const ActionSpan& definition_of(Action action) { return *std::ranges::find(action_spans, action, &ActionSpan::action); }

std::optional<double> duration(Action action, std::span<const SpanRow> spans) {
    const ActionSpan& definition = definition_of(action);
    const auto from = stamp_at(definition.from, spans), to = stamp_at(definition.to, spans);
    return from && to ? std::optional{seconds_between(*from, *to)} : std::nullopt;
}

/// Duration of a pass from its first event to its last. If these were not recorded, uses the begin and end of the
/// pass's record; so does a fit without its last event, so that a partial report has a total.
std::optional<double> duration(const Ledger& ledger, const PassRow& pass) {
    static constexpr std::array actions{Action::fit, Action::epoch, Action::train, Action::valid};
    const ActionSpan& definition = definition_of(actions[static_cast<std::size_t>(pass.kind)]);
    const auto spans = ledger.spans_of(pass);
    const auto from = stamp_at(definition.from, spans), to = stamp_at(definition.to, spans);
    if (from && !to && pass.kind != PassKind::fit)
        return std::nullopt;
    return seconds_between(from.value_or(pass.begin_ns), to.value_or(pass.end_ns));
}

}   // namespace

std::optional<FastxtendBatch> fastxtend_batch(const StepRow& step, std::span<const SpanRow> spans) {
    const bool has_events = stamp_at({Event::before_batch, false}, spans).has_value();
    const auto end_ns = stamp_at({Event::after_batch, true}, spans);
    if (step.size == 0 || step.status == StepStatus::failed || (has_events && !end_ns))
        return std::nullopt;
    // The step's own draw and batch include callbacks outside of these stamps; fastxtend's do not.
    const std::int64_t draw_ns = stamp_at({Event::before_draw, false}, spans).value_or(step.draw_begin_ns);
    const std::int64_t drawn_ns =
        stamp_at({Event::before_batch, false}, spans).value_or(step.draw_begin_ns + step.draw_ns);
    return FastxtendBatch{.size = step.size,
                          .draw = seconds_between(draw_ns, drawn_ns),
                          .batch = seconds_between(drawn_ns, end_ns.value_or(drawn_ns + step.batch_ns)),
                          .forward = duration(step.phase == Phase::train ? Action::forward : Action::predict, spans),
                          .loss = duration(Action::loss, spans),
                          .backward = duration(Action::backward, spans),
                          .opt_step = duration(Action::opt_step, spans),
                          .zero_grad = duration(Action::zero_grad, spans)};
}

FastxtendValues fastxtend_values(const Ledger& ledger) {
    FastxtendValues values;
    values.steps_folded = ledger.folded.steps;
    std::int64_t from_ns = std::numeric_limits<std::int64_t>::min(), to_ns = std::numeric_limits<std::int64_t>::max();
    const PassRow* fit = nullptr;
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == PassKind::fit && (!fit || pass.begin_ns >= fit->begin_ns))
            fit = &pass;
    if (fit) {
        values.fit = duration(ledger, *fit);
        from_ns = fit->begin_ns;
        to_ns = fit->end_ns;
    }
    const auto within = [&](std::int64_t at_ns) { return from_ns <= at_ns && at_ns <= to_ns; };

    for (const PassRow& pass : ledger.passes)
        if (pass.kind != PassKind::fit && within(pass.begin_ns))
            if (const auto taken = duration(ledger, pass))
                (pass.kind == PassKind::epoch   ? values.epoch
                 : pass.kind == PassKind::train ? values.train
                                                : values.valid)
                    .push_back(*taken);
    for (const StepRow& step : ledger.steps)
        if (within(step.draw_begin_ns))
            if (auto batch = fastxtend_batch(step, ledger.spans_of(step)))
                (step.phase == Phase::train ? values.train_batches : values.valid_batches).push_back(std::move(*batch));
    return values;
}

}   // namespace drawpoint
