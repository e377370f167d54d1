#include <drawpoint/instrumentation/export/csv.hpp>

#include <array>
#include <optional>

#include "instrumentation/export/text_stream.hpp"
#include "instrumentation/wrapping.hpp"

namespace drawpoint {
namespace {

constexpr std::array in_draw{Span::starved, Span::handoff, Span::transfer};
constexpr std::array in_batch{Action::forward,  Action::predict,   Action::loss,      Action::backward,
                              Action::opt_step, Action::zero_grad, Action::callbacks, Action::other};

}   // namespace

void write_csv_steps(const Ledger& ledger, std::ostream& stream) {
    TextStream out{stream};
    out.put("step,epoch,batch,phase,status,size,draw_begin_ns,step_ns,draw_ns");
    for (const Span span : in_draw)
        out.print(",{}_ns", name_of(span));
    out.put(",batch_ns");
    for (const Action action : in_batch)
        out.print(",{}_ns", name_of(action));
    out.put(",between_ns,loss,cpu_ns,run_queue_ns,between_run_queue_ns\n");
    for (const StepRow& step : ledger.steps) {
        const StepDurations durations = durations_of(ledger, step);
        const auto put = [&](Action action) {
            const std::int64_t ns = durations[static_cast<std::size_t>(action)];
            if (ns == no_stamp)
                out.put(",");
            else
                out.print(",{}", ns);
        };
        out.print("{},{},{},{},{},{},{}", step.step, step.epoch, step.batch, name_of(step.phase), name_of(step.status),
                  step.size, static_cast<std::int64_t>(wrapping_difference(step.draw_begin_ns, ledger.start_ns)));
        put(Action::step);
        put(Action::draw);
        for (const Span span : in_draw) {
            std::int64_t sum_ns = 0;
            for (const SpanRow& piece : ledger.spans_of(step))
                sum_ns += piece.span == span ? piece.ns : 0;
            out.print(",{}", sum_ns);
        }
        put(Action::batch);
        for (const Action action : in_batch)
            put(action);
        put(Action::between);
        if (step.loss)
            out.print(",{}", *step.loss);
        else
            out.put(",");
        for (const std::optional<std::int64_t>& ns : {step.cpu_ns, step.run_queue_ns, step.between_run_queue_ns})
            ns ? out.print(",{}", *ns) : out.put(",");
        out.put("\n");
    }
    out.flush();
}

}   // namespace drawpoint
