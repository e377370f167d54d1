#include "chrome_steps.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace drawpoint {
namespace {

constexpr std::size_t most_marks = 12;   // per step: with the gaps and events around them they fit into a record

struct Interval {
    std::int64_t begin_ns, end_ns;
};

struct Step {
    std::uint32_t number;
    Interval at;
};

/// A range that says what the time of a step was spent on.
struct Mark {
    Interval at;
    Span span;
};

/// Ranges on the thread of the loop.
struct LoopRanges {
    std::vector<Step> steps;
    std::vector<std::uint32_t> marks;   // positions in the operators
    std::size_t left_out = 0;           // steps of other threads or inside others
};

bool is_on_host(const Ledger& ledger, const OperatorRow& row) { return ledger.threads[row.thread].device < 0; }

std::optional<std::uint32_t> step_number(std::string_view name) noexcept {
    constexpr std::string_view prefix = "ProfilerStep#";
    std::uint32_t number = 0;
    if (!name.starts_with(prefix))
        return std::nullopt;
    name.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc{} && end == name.data() + name.size() ? std::optional{number} : std::nullopt;
}

/// The span of the loop's time that an annotation's name stands for.
std::optional<Span> span_named(std::string_view name) noexcept {
    if (name.starts_with("enumerate(Data") && name.ends_with("__next__"))
        return Span::starved;
    if (name.starts_with("Optimizer.step#") || name == "optimizer" || name == "optimizer_step" || name == "opt_step")
        return Span::opt_step;
    if (name.starts_with("Optimizer.zero_grad#") || name == "zero_grad")
        return Span::zero_grad;
    if (name == "forward" || name == "model_forward")
        return Span::forward;
    if (name == "loss")
        return Span::loss;
    if (name == "backward" || name == "model_backward")
        return Span::backward;
    return std::nullopt;
}

/// The thread of the first step in time, on which the loop runs; `nothing` if there is no step.
std::uint32_t thread_of_loop(const Ledger& ledger, std::span<const OperatorRow> operators) {
    std::uint32_t thread = nothing;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    for (const OperatorRow& row : operators)
        if (row.begin_ns < first_ns && is_on_host(ledger, row) && step_number(ledger.names[row.name])) {
            first_ns = row.begin_ns;
            thread = row.thread;
        }
    return thread;
}

LoopRanges ranges_of_loop(const Ledger& ledger, std::span<const OperatorRow> operators, std::uint32_t thread) {
    LoopRanges ranges;
    for (std::uint32_t i = 0; i < operators.size(); ++i) {
        const OperatorRow& row = operators[i];
        const std::string_view name = ledger.names[row.name];
        if (const auto number = step_number(name); number && is_on_host(ledger, row)) {
            if (row.thread != thread || (!ranges.steps.empty() && row.begin_ns < ranges.steps.back().at.end_ns))
                ++ranges.left_out;
            else
                ranges.steps.push_back({*number, {row.begin_ns, row.begin_ns + row.ns}});
        } else if (row.thread == thread && span_named(name)) {
            ranges.marks.push_back(i);
        }
    }
    return ranges;
}

/// The marks of a step in order, none inside another. Of two nested ones the outer one is kept, except that torch's own
/// replaces it ("Optimizer.step#SGD.step" inside "optimizer").
std::vector<Mark> marks_of(const Ledger& ledger, std::span<const OperatorRow> operators,
                           const std::vector<std::uint32_t>& rows, Interval step) {
    std::vector<Mark> marks;
    bool replaceable = false;
    for (const std::uint32_t i : rows) {
        const OperatorRow& row = operators[i];
        const Interval at{row.begin_ns, row.begin_ns + row.ns};
        if (at.begin_ns < step.begin_ns || at.end_ns > step.end_ns)
            continue;
        const std::string_view name = ledger.names[row.name];
        const Span span = *span_named(name);
        const bool own = name.starts_with("Optimizer.");
        if (!marks.empty() && at.begin_ns < marks.back().at.end_ns) {
            if (!own || !replaceable)
                continue;
            marks.pop_back();
        }
        marks.push_back({at, span});
        replaceable = span == Span::opt_step && !own;
    }
    return marks;
}

std::vector<std::vector<Mark>> marks_by_step(const Ledger& ledger, std::span<const OperatorRow> operators,
                                             const LoopRanges& ranges) {
    std::vector<std::vector<Mark>> marks;
    auto next = ranges.marks.begin();
    for (const Step& step : ranges.steps) {
        std::vector<std::uint32_t> rows;
        for (; next != ranges.marks.end() && operators[*next].begin_ns < step.at.end_ns; ++next)
            if (operators[*next].begin_ns >= step.at.begin_ns)
                rows.push_back(*next);
        marks.push_back(marks_of(ledger, operators, rows, step.at));
    }
    return marks;
}

/// The first draw of a step and the draws that follow it without another mark between.
std::span<const Mark> draws_at_front(const std::vector<Mark>& marks) {
    const auto first = std::ranges::find(marks, Span::starved, &Mark::span);
    return {first, std::find_if(first, marks.end(), [](const Mark& mark) { return mark.span != Span::starved; })};
}

/// Removes from each step the marks before its draw and those beyond `most_marks`. Returns where each step's draw
/// begins; for a step without a draw that is the step's begin.
std::vector<std::int64_t> begin_at_draws(std::vector<std::vector<Mark>>& marks, const std::vector<Step>& steps) {
    // At the end of an epoch `__next__` finds no batch, and the step draws once more from the next epoch: that draw
    // counts. If most steps draw several times, they accumulate gradients, and the first draw counts.
    const auto redrawn = std::ranges::count_if(marks, [](const auto& of) { return draws_at_front(of).size() > 1; });
    const bool by_epoch = 2 * redrawn <= std::ssize(marks);
    std::vector<std::int64_t> draw_begins;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        // What comes before the draw, even an optimizer's zero_grad, is time between this step and the previous one.
        const auto draws = draws_at_front(marks[i]);
        const bool drew = !draws.empty();
        const auto draw = draws.begin() + (drew && by_epoch ? std::ssize(draws) - 1 : 0);
        draw_begins.push_back(drew ? draw->at.begin_ns : steps[i].at.begin_ns);
        if (drew)
            marks[i].erase(marks[i].begin(), marks[i].begin() + (&*draw - marks[i].data()));
        if (marks[i].size() > most_marks)
            marks[i].resize(most_marks);
    }
    return draw_begins;
}

/// Appends pieces to the ledger, one after the other, without gaps.
class Pieces {
public:
    Pieces(Ledger& ledger, std::int64_t begin_ns) : ledger_{ledger}, at_ns_{begin_ns} {}
    void until(std::int64_t end_ns, Span span) {
        if (end_ns > at_ns_)
            ledger_.spans.push_back({span, at_ns_, end_ns - at_ns_});
        at_ns_ = std::max(at_ns_, end_ns);
    }
    /// An event without callbacks: a piece of no length.
    void event(Event event) { ledger_.spans.push_back({span_of(event), at_ns_, 0}); }

private:
    Ledger& ledger_;
    std::int64_t at_ns_;
};

void add_batch_pieces(Pieces& pieces, std::span<const Mark> marks, std::int64_t end_ns) {
    // The annotations give the events' places. Each event is written once and in the loop's order: actions are measured
    // from event to event.
    enum Stage { drawn, predicted, lost, went_back, stepped, zeroed } stage = drawn;
    bool open_backward = false;
    for (const Mark& mark : marks) {
        pieces.until(mark.at.begin_ns, Span::other);
        if (mark.span == Span::forward && stage == drawn)
            pieces.event(Event::before_batch);
        if (mark.span == Span::backward && stage < went_back) {
            pieces.event(Event::before_backward);
            open_backward = true;
        }
        if (mark.span == Span::opt_step && stage < stepped) {
            pieces.event(Event::before_step);
            open_backward = false;
        }
        pieces.until(mark.at.end_ns, mark.span);
        if (mark.span == Span::forward && stage == drawn) {
            pieces.event(Event::after_pred);
            stage = predicted;
        } else if (mark.span == Span::loss && stage == predicted) {
            pieces.event(Event::after_loss);
            stage = lost;
        } else if (mark.span == Span::backward && stage < went_back) {
            stage = went_back;
        } else if (mark.span == Span::opt_step && stage < stepped) {
            pieces.event(Event::after_step);
            stage = stepped;
        } else if (mark.span == Span::zero_grad && stage == stepped) {
            pieces.event(Event::after_batch);
            stage = zeroed;
        }
    }
    if (open_backward)
        pieces.event(Event::before_step);
    pieces.until(end_ns, Span::other);
}

/// Appends a step whose `marks` begin with its draw, if it has one. `next_ns`: begin of the next draw.
void add_step(Ledger& ledger, const Step& step, std::span<const Mark> marks, std::int64_t draw_begin_ns,
              std::int64_t next_ns, std::uint32_t batch_size) {
    const bool drew = !marks.empty() && marks.front().span == Span::starved;
    const std::int64_t draw_end_ns = drew ? marks.front().at.end_ns : draw_begin_ns;
    StepRow row{.step = step.number,
                .batch = step.number,
                .size = drew ? batch_size : 0,
                .draw_begin_ns = draw_begin_ns,
                .draw_ns = draw_end_ns - draw_begin_ns,
                .batch_ns = step.at.end_ns - draw_end_ns};
    row.spans.first = static_cast<std::uint32_t>(ledger.spans.size());
    Pieces pieces{ledger, draw_begin_ns};
    pieces.until(draw_end_ns, Span::starved);
    add_batch_pieces(pieces, marks.subspan(drew ? 1 : 0), step.at.end_ns);
    pieces.until(next_ns, Span::between);
    row.spans.count = static_cast<std::uint32_t>(ledger.spans.size()) - row.spans.first;
    ledger.steps.push_back(row);
}

}   // namespace

bool says_of_steps(std::string_view name) noexcept { return step_number(name) || span_named(name); }

std::uint32_t add_steps(Ledger& ledger, std::span<const OperatorRow> operators, std::uint32_t batch_size,
                        std::vector<std::string>& warnings) {
    const std::uint32_t thread = thread_of_loop(ledger, operators);
    if (thread == nothing)
        return nothing;
    const LoopRanges ranges = ranges_of_loop(ledger, operators, thread);
    if (ranges.left_out > 0)
        warnings.push_back(std::to_string(ranges.left_out) +
                           " ProfilerStep ranges of other threads or inside others are left out");

    const std::vector<Step>& steps = ranges.steps;
    std::vector<std::vector<Mark>> marks = marks_by_step(ledger, operators, ranges);
    const std::vector<std::int64_t> draw_begins = begin_at_draws(marks, steps);
    PassRow pass{.kind = PassKind::train, .begin_ns = steps.front().at.begin_ns, .end_ns = steps.back().at.end_ns};
    pass.spans.first = static_cast<std::uint32_t>(ledger.spans.size());
    Pieces{ledger, pass.begin_ns}.until(draw_begins.front(), Span::between);
    pass.spans.count = static_cast<std::uint32_t>(ledger.spans.size()) - pass.spans.first;
    ledger.passes.push_back(pass);
    for (std::size_t i = 0; i < steps.size(); ++i)
        add_step(ledger, steps[i], marks[i], draw_begins[i], i + 1 < steps.size() ? draw_begins[i + 1] : pass.end_ns,
                 batch_size);
    return thread;
}

}   // namespace drawpoint
