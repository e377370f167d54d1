#include "instrumentation/ledger/step_slices.hpp"

#include <algorithm>
#include <optional>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

std::uint64_t length_of(const StepSlice& slice) noexcept { return wrapping_difference(slice.end_ns, slice.begin_ns); }

bool is_callbacks(Span span) noexcept { return span < Span::starved || span == Span::callbacks; }

std::optional<std::int64_t> stamp_of(std::span<const SpanRow> spans, Edge edge) noexcept {
    for (const SpanRow& piece : spans)
        if (piece.span == span_of(edge.event))
            return edge.end ? wrapping_sum(piece.begin_ns, piece.ns) : piece.begin_ns;
    return std::nullopt;
}

}   // namespace

void find_step_slices(const StepRow& row, std::span<const SpanRow> spans, std::vector<StepSlice>& slices) {
    const std::int64_t draw_end_ns = wrapping_sum(row.draw_begin_ns, row.draw_ns),
                       end_ns = wrapping_sum(draw_end_ns, row.batch_ns);
    slices.clear();
    const auto add = [&](StepSlice::Where where, std::string_view name, std::int64_t begin_ns, std::int64_t until_ns) {
        if (until_ns > begin_ns)
            slices.push_back({where, name, begin_ns, until_ns});
    };
    for (const ActionSpan& action : action_spans) {
        const bool here = row.phase == Phase::train ? action.in_train : action.in_valid;
        if (!here || action.action == Action::draw || action.action == Action::batch)
            continue;
        const auto from = stamp_of(spans, action.from), to = stamp_of(spans, action.to);
        if (from && to && *from >= draw_end_ns && *to <= end_ns)
            add(StepSlice::Where::batch, name_of(action.action), *from, *to);
    }
    const std::size_t actions = slices.size();
    const auto in_an_action = [&](std::int64_t begin_ns, std::int64_t until_ns) {
        return std::any_of(
            slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(actions),
            [&](const StepSlice& action) { return begin_ns >= action.begin_ns && until_ns <= action.end_ns; });
    };
    for (const SpanRow& piece : spans) {
        const std::int64_t until_ns = wrapping_sum(piece.begin_ns, piece.ns);
        if (until_ns <= draw_end_ns && piece.begin_ns < draw_end_ns) {
            add(StepSlice::Where::draw, name_of(piece.span), piece.begin_ns, until_ns);
        } else if (until_ns <= end_ns && piece.begin_ns >= draw_end_ns && piece.begin_ns < end_ns) {
            if (!is_callbacks(piece.span) || in_an_action(piece.begin_ns, until_ns))
                continue;
            const bool continues = slices.size() > actions && slices.back().where == StepSlice::Where::batch &&
                                   slices.back().end_ns == piece.begin_ns;
            if (continues)
                slices.back().end_ns = until_ns;
            else
                add(StepSlice::Where::batch, name_of(Span::callbacks), piece.begin_ns, until_ns);
        }
    }
    if (!spans.empty())
        add(StepSlice::Where::after, name_of(Span::between), end_ns,
            wrapping_sum(spans.back().begin_ns, spans.back().ns));
    std::stable_sort(slices.begin(), slices.end(),
                     [](const StepSlice& a, const StepSlice& b) { return a.begin_ns < b.begin_ns; });
}

void keep_longest(std::vector<StepSlice>& slices, std::size_t most) {
    while (slices.size() > most)
        slices.erase(std::min_element(slices.begin(), slices.end(), [](const StepSlice& a, const StepSlice& b) {
            return length_of(a) < length_of(b);
        }));
}

}   // namespace drawpoint
