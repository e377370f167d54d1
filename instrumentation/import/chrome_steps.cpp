#include "chrome_steps.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace drawpoint {
namespace {

constexpr std::size_t most_marks = 12;   // of a step: with the gaps and events around them they stay within a record

struct Interval {
    std::int64_t begin_ns, end_ns;
};

struct Mark {
    Interval at;
    Span span;
};

std::optional<std::uint32_t> step_number(std::string_view name) noexcept {
    constexpr std::string_view prefix = "ProfilerStep#";
    std::uint32_t number = 0;
    if (!name.starts_with(prefix))
        return std::nullopt;
    name.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc{} && end == name.data() + name.size() ? std::optional{number} : std::nullopt;
}

/// What an annotation's name says of the loop's time.
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

/// The marks of a step in order, none inside another; of two nested ones the inner one counts where it is torch's own
/// ("Optimizer.step#SGD.step" inside "optimizer").
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

/// The first draw of a step and those that follow it at once.
std::span<const Mark> draws_at_front(const std::vector<Mark>& marks) {
    const auto first = std::ranges::find(marks, Span::starved, &Mark::span);
    return {first, std::find_if(first, marks.end(), [](const Mark& mark) { return mark.span != Span::starved; })};
}

/// Writes the pieces of a step, one after the other, without a gap.
class Pieces {
public:
    Pieces(Ledger& ledger, std::int64_t begin_ns) : ledger_{ledger}, at_ns_{begin_ns} {}
    void until(std::int64_t end_ns, Span span) {
        if (end_ns > at_ns_)
            ledger_.spans.push_back({span, at_ns_, end_ns - at_ns_});
        at_ns_ = std::max(at_ns_, end_ns);
    }
    /// An event nobody listened to.
    void event(Event event) { ledger_.spans.push_back({span_of(event), at_ns_, 0}); }

private:
    Ledger& ledger_;
    std::int64_t at_ns_;
};

void add_batch_pieces(Pieces& pieces, const std::vector<Mark>& marks, std::int64_t end_ns) {
    // The events stand where the annotations say; each once, in the loop's order, so that the actions have their edges.
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

}   // namespace

bool says_of_steps(std::string_view name) noexcept { return step_number(name) || span_named(name); }

std::uint32_t add_steps(Ledger& ledger, std::span<const OperatorRow> operators, std::uint32_t batch_size,
                        std::vector<std::string>& warnings) {
    struct Found {
        std::uint32_t number;
        Interval at;
    };
    std::vector<Found> steps;
    std::vector<std::uint32_t> marked;   // rows of the steps' thread that say what the time was spent on
    std::uint32_t thread = nothing;
    std::size_t elsewhere = 0;
    // The first step in time says which thread the loop runs on.
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    const auto on_host = [&](const OperatorRow& row) { return ledger.threads[row.thread].device < 0; };
    for (const OperatorRow& row : operators)
        if (row.begin_ns < first_ns && on_host(row) && step_number(ledger.names[row.name])) {
            first_ns = row.begin_ns;
            thread = row.thread;
        }
    if (thread == nothing)
        return nothing;
    for (std::uint32_t i = 0; i < operators.size(); ++i) {
        const OperatorRow& row = operators[i];
        const std::string_view name = ledger.names[row.name];
        if (const auto number = step_number(name); number && on_host(row)) {
            if (row.thread != thread || (!steps.empty() && row.begin_ns < steps.back().at.end_ns))
                ++elsewhere;
            else
                steps.push_back({*number, {row.begin_ns, row.begin_ns + row.ns}});
        } else if (row.thread == thread && span_named(name)) {
            marked.push_back(i);
        }
    }
    if (elsewhere > 0)
        warnings.push_back(std::to_string(elsewhere) +
                           " ProfilerStep ranges of other threads or inside others are left out");

    PassRow pass{.kind = PassKind::train, .begin_ns = steps.front().at.begin_ns, .end_ns = steps.back().at.end_ns};
    pass.spans.first = static_cast<std::uint32_t>(ledger.spans.size());
    std::vector<std::vector<Mark>> marks;
    auto next = marked.begin();
    for (const Found& step : steps) {
        std::vector<std::uint32_t> rows;
        for (; next != marked.end() && operators[*next].begin_ns < step.at.end_ns; ++next)
            if (operators[*next].begin_ns >= step.at.begin_ns)
                rows.push_back(*next);
        marks.push_back(marks_of(ledger, operators, rows, step.at));
    }
    // An epoch's last `__next__` finds no batch; in the same step the next epoch's first one follows, and that is the
    // step's draw. Unless most steps begin with several: they accumulate, and the first one is.
    const auto redrawn = std::ranges::count_if(marks, [](const auto& of) { return draws_at_front(of).size() > 1; });
    const bool by_epoch = 2 * redrawn <= std::ssize(marks);
    std::vector<std::int64_t> draw_begins;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        // What stands before the draw, an optimizer's zero_grad even, is not this step's: it comes before its draw.
        const auto draws = draws_at_front(marks[i]);
        const bool drew = !draws.empty();
        const auto draw = draws.begin() + (drew && by_epoch ? std::ssize(draws) - 1 : 0);
        draw_begins.push_back(drew ? draw->at.begin_ns : steps[i].at.begin_ns);
        if (drew)
            marks[i].erase(marks[i].begin(), marks[i].begin() + (&*draw - marks[i].data()));
        if (marks[i].size() > most_marks)
            marks[i].resize(most_marks);
    }
    Pieces{ledger, pass.begin_ns}.until(draw_begins.front(), Span::between);
    pass.spans.count = static_cast<std::uint32_t>(ledger.spans.size()) - pass.spans.first;
    ledger.passes.push_back(pass);

    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool drew = !marks[i].empty() && marks[i].front().span == Span::starved;
        const std::int64_t draw_end = drew ? marks[i].front().at.end_ns : draw_begins[i];
        StepRow row{.step = steps[i].number,
                    .batch = steps[i].number,
                    .size = drew ? batch_size : 0,
                    .draw_begin_ns = draw_begins[i],
                    .draw_ns = draw_end - draw_begins[i],
                    .batch_ns = steps[i].at.end_ns - draw_end};
        row.spans.first = static_cast<std::uint32_t>(ledger.spans.size());
        Pieces pieces{ledger, row.draw_begin_ns};
        pieces.until(draw_end, Span::starved);
        if (drew)
            marks[i].erase(marks[i].begin());
        add_batch_pieces(pieces, marks[i], steps[i].at.end_ns);
        pieces.until(i + 1 < steps.size() ? draw_begins[i + 1] : pass.end_ns, Span::between);
        row.spans.count = static_cast<std::uint32_t>(ledger.spans.size()) - row.spans.first;
        ledger.steps.push_back(row);
    }
    return thread;
}

}   // namespace drawpoint
