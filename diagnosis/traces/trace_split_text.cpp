#include <iterator>

#include <fmt/format.h>

#include <drawpoint/diagnosis/traces/trace_split.hpp>

namespace drawpoint {
namespace {

double ms(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e6; }

/// Appends a sentence in indented lines.
void put_wrapped(std::string& text, std::string_view mark, std::string_view sentence, TextOptions options) {
    text += fitted(fmt::format("  {}{}", mark, sentence), options.width);
}

std::string_view words_of(LoaderIterator iterator) noexcept {
    switch (iterator) {
    case LoaderIterator::single_process: return ", num_workers 0";
    case LoaderIterator::multi_process: return ", drawn from worker processes";
    case LoaderIterator::unknown: break;
    }
    return "";
}

}   // namespace

std::string to_text(const TraceSplit& split, TextOptions options) {
    std::string text;
    const auto line = [&]<class... T>(fmt::format_string<T...> form, T&&... values) {
        fmt::format_to(std::back_inserter(text), form, std::forward<T>(values)...);
        text += '\n';
    };
    line("{} steps{}{}; {} steady, {} of warm-up, {} with an epoch's boundary", split.steps.size(),
         split.steps_by_draw ? " (from draw to draw)" : "", words_of(split.iterator),
         split.has_draws ? split.steady_steps : split.steps.size() - split.warm_up_steps, split.warm_up_steps,
         split.boundaries);
    if (split.has_draws) {
        line("draw           {} of the steady steps' time, {:.1f} % of all",
             styled(fmt::format("{:5.1f} %", 100 * split.draw_share), style_of_draw(split.draw_share), options.colour),
             100 * split.draw_share_of_all);
        line("a draw, ms     median {:.3f}, p90 {:.3f}, p99 {:.3f}, longest {:.3f}; a step {:.3f}",
             ms(split.steady_draw.p50_ns), ms(split.steady_draw.p90_ns), ms(split.steady_draw.p99_ns),
             ms(split.steady_draw.max_ns), ms(split.steady_step_p50_ns));
        if (split.warm_up_share + split.boundary_share > 0)
            line("of all waiting {:5.1f} % in warm-up, {:.1f} % at boundaries", 100 * split.warm_up_share,
                 100 * split.boundary_share);
        if (split.headroom_90)
            line("headroom       {:+5.1f} % throughput if draws took no time, 90 % interval {:.1f} … {:.1f}",
                 100 * *split.headroom, 100 * split.headroom_90->first, 100 * split.headroom_90->second);
        else if (split.headroom)
            line("headroom       {:+5.1f} % throughput if draws took no time (too few steps for an interval)",
                 100 * *split.headroom);
        if (split.hidden_share)
            line("device busy    {:5.1f} % of the draws' time", 100 * *split.hidden_share);
    }
    std::int64_t compute_ns = 0;
    for (const TraceStep& step : split.steps)
        compute_ns += step.compute_ns;
    if (compute_ns > 0 && !split.actions.empty()) {
        text += "of the compute";
        for (const TraceAction& action : split.actions)
            fmt::format_to(std::back_inserter(text), "{} {} {:.1f} %", &action == split.actions.data() ? "" : ",",
                           action.name, 100 * static_cast<double>(action.ns) / static_cast<double>(compute_ns));
        text += '\n';
    }
    if (split.between_share > 0 || split.profiler_ns > 0)
        line("between steps  {:5.1f} % of all time{}", 100 * split.between_share,
             split.profiler_ns > 0 ? fmt::format("; the profiler says it cost {:.3f} ms itself", ms(split.profiler_ns))
                                   : "");
    if (!split.hint.empty()) {
        text += "by rule of thumb (no verdict: the trace has nothing of the loader)\n";
        put_wrapped(text, "", split.hint, options);
    }
    if (!split.notes.empty()) {
        text += "notes\n";
        for (const std::string& note : split.notes)
            put_wrapped(text, "- ", note, options);
    }
    text += "this trace cannot tell\n";
    for (const std::string& question : split.cannot_tell)
        put_wrapped(text, "- ", question, options);
    return text;
}

}   // namespace drawpoint
