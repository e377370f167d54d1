#include <drawpoint/instrumentation/export/csv.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "instrumentation/export/text_stream.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::array in_draw{Span::starved, Span::handoff, Span::transfer};
constexpr std::array in_batch{Action::forward,  Action::predict,   Action::loss,      Action::backward,
                              Action::opt_step, Action::zero_grad, Action::callbacks, Action::other};

/// Visits the cells of a line in order: the step's columns, with the draw's and the batch's times followed by their
/// parts.
void walk_step(auto cell, auto duration, auto sum) {
    const auto add = [&]<class T, class Kind>([[maybe_unused]] const schema::Column<StepRow, T, Kind>& of_step) {
        if constexpr (std::is_same_v<Kind, schema::Part>) {
            return;
        } else if (of_step.name == "draw_ns") {
            duration(Action::step);
            duration(Action::draw);
            for (const Span span : in_draw)
                sum(span);
        } else if (of_step.name == "batch_ns") {
            duration(Action::batch);
            for (const Action action : in_batch)
                duration(action);
            duration(Action::between);
        } else {
            cell(of_step);
        }
    };
    schema::walk<StepRow>([&](const auto&... columns) { (add(columns), ...); });
}

/// Writes the cells of a line, separated by commas.
class Line {
public:
    explicit Line(TextStream& out) : out_{&out} {}
    ~Line() { out_->put("\n"); }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void empty() { out_->put(std::exchange(first_, false) ? "" : ","); }
    template <class T>
    void add(const T& value, std::string_view ending = "") {
        empty();
        if constexpr (std::is_enum_v<T>)
            out_->print("{}{}", name_of(value), ending);
        else
            out_->print("{}{}", value, ending);
    }
    template <class T>
    void add(const std::optional<T>& value) {
        value ? add(*value) : empty();
    }

private:
    TextStream* out_;
    bool first_ = true;
};

void write_names(TextStream& out) {
    Line line{out};
    walk_step([&](const auto& column) { line.add(column.name); }, [&](Action action) { line.add(action, "_ns"); },
              [&](Span span) { line.add(span, "_ns"); });
}

void write_step(TextStream& out, const Ledger& ledger, const StepRow& step) {
    Line line{out};
    const StepDurations durations = durations_of(ledger, step);
    walk_step(
        [&]<class T, class Kind>(const schema::Column<StepRow, T, Kind>& of_step) {
            if constexpr (std::is_same_v<Kind, schema::Time>)
                line.add(static_cast<std::int64_t>(wrapping_difference(step.*of_step.member, ledger.start_ns)));
            else
                line.add(step.*of_step.member);
        },
        [&](Action action) {
            const std::int64_t ns = durations[static_cast<std::size_t>(action)];
            ns == no_stamp ? line.empty() : line.add(ns);
        },
        [&](Span span) {
            std::int64_t sum_ns = 0;
            for (const SpanRow& piece : ledger.spans_of(step))
                sum_ns += piece.span == span ? piece.ns : 0;
            line.add(sum_ns);
        });
}

}   // namespace

void write_csv_steps(const Ledger& ledger, std::ostream& stream) {
    TextStream out{stream};
    write_names(out);
    for (const StepRow& step : ledger.steps)
        write_step(out, ledger, step);
    out.flush();
}

}   // namespace drawpoint
