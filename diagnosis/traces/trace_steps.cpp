#include "diagnosis/traces/trace_steps.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace drawpoint {
namespace {

struct TimeRange {
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// The steps and draws that one thread ran.
struct ThreadRanges {
    struct Step {
        std::uint32_t number = 0;
        TimeRange at;
    };
    std::vector<Step> steps;   // none inside another
    std::vector<TimeRange> draws;
    std::size_t overlapping = 0;         // steps left out, as they begin inside another one
    std::size_t single = 0, multi = 0;   // draws by kind of iterator
};

using RangesByThread = std::map<std::uint32_t, ThreadRanges>;
using StepDraws = std::vector<std::vector<TimeRange>>;   // the draws of each step

std::optional<std::uint32_t> step_number(std::string_view name) noexcept {
    constexpr std::string_view prefix = "ProfilerStep#";
    std::uint32_t number = 0;
    if (!name.starts_with(prefix))
        return std::nullopt;
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    return error == std::errc{} && end == name.data() + name.size() ? std::optional{number} : std::nullopt;
}

RangesByThread ranges_by_thread(const Ledger& ledger) {
    RangesByThread threads;
    for (const OperatorRow& row : ledger.operators) {
        if (ledger.threads[row.thread].device >= 0)
            continue;
        const std::string_view name = ledger.names[row.name];
        const TimeRange at{row.begin_ns, row.begin_ns + row.ns};
        if (const auto number = step_number(name)) {
            ThreadRanges& found = threads[row.thread];
            if (!found.steps.empty() && at.begin_ns < found.steps.back().at.end_ns)
                ++found.overlapping;
            else
                found.steps.push_back({*number, at});
        } else if (name.starts_with("enumerate(Data") && name.ends_with("__next__")) {
            ThreadRanges& found = threads[row.thread];
            if (name.find("_SingleProcessDataLoaderIter") != name.npos)
                ++found.single;
            else if (name.find("_MultiProcessingDataLoaderIter") != name.npos)
                ++found.multi;
            if (found.draws.empty() || at.begin_ns >= found.draws.back().end_ns)   // one inside another belongs to it
                found.draws.push_back(at);
        }
    }
    return threads;
}

/// The number of draws that most steps have: a step with more ended an epoch.
std::size_t usual_count(const StepDraws& draws) {
    std::map<std::size_t, std::size_t> steps_by_count;
    for (const auto& of : draws)
        if (!of.empty())
            ++steps_by_count[of.size()];
    std::size_t usual = 0, most = 0;
    for (const auto& [count, steps] : steps_by_count)
        if (steps > most) {
            usual = count;
            most = steps;
        }
    return usual;
}

std::int64_t median(std::vector<std::int64_t> values) {
    if (values.empty())
        return 0;
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::ranges::nth_element(values, middle);
    return *middle;
}

void mark_boundaries(TraceSplit& split, const StepDraws& draws) {
    constexpr std::int64_t least_gap_ns = 100'000;
    const std::size_t usual = usual_count(draws);
    std::vector<std::int64_t> gaps, lengths;
    for (std::size_t i = 0; i < draws.size(); ++i)
        if (!draws[i].empty()) {
            gaps.push_back(draws[i].front().begin_ns - split.steps[i].begin_ns);
            lengths.push_back(split.steps[i].draw_ns);
        }
    const std::int64_t gap = median(gaps), length = median(lengths);
    for (std::size_t i = 0; i < draws.size(); ++i) {
        TraceStep& step = split.steps[i];
        if (draws[i].size() > usual && draws[i].size() > 1) {
            step.boundary = true;
            if (usual == 1) {
                step.setup_ns = draws[i].back().begin_ns - draws[i].front().end_ns;
                for (std::size_t d = 1; d + 1 < draws[i].size(); ++d)
                    step.setup_ns -= draws[i][d].end_ns - draws[i][d].begin_ns;
                step.compute_ns -= step.setup_ns;
            }
        } else if (!draws[i].empty() && !split.steps_by_draw) {
            const std::int64_t late = draws[i].front().begin_ns - step.begin_ns;
            step.boundary = (late - least_gap_ns) / 10 > gap && step.draw_ns / 5 > length;
        }
    }
}

/// Takes the loop's own rows, which a recording or our own export of one has.
void take_recorded_steps(const Ledger& ledger, TraceSplit& split) {
    const StepRow* last = nullptr;
    for (const StepRow& row : ledger.steps) {
        if (row.phase != Phase::train)
            continue;
        TraceStep step{.number = row.step,
                       .draws = row.size > 0 ? 1u : 0u,
                       .begin_ns = row.draw_begin_ns,
                       .draw_begin_ns = row.draw_begin_ns,
                       .draw_ns = row.draw_ns,
                       .compute_ns = row.batch_ns,
                       .boundary = last != nullptr && last->epoch != row.epoch};
        for (const SpanRow& piece : ledger.spans_of(row))
            if (piece.span == Span::between)
                step.between_ns += piece.ns;
        split.has_draws = split.has_draws || step.draws > 0;
        split.steps.push_back(step);
        last = &row;
    }
}

/// Notes what is left out of the split: ranges inside others, and those of threads other than the `loop`'s.
void note_left_out(const RangesByThread& threads, RangesByThread::const_iterator loop, TraceSplit& split) {
    std::size_t other_steps = 0, other_draws = 0;
    for (const auto& [thread, of] : threads)
        if (thread != loop->first) {
            other_steps += of.steps.size();
            other_draws += of.draws.size();
        }
    if (loop->second.overlapping > 0)
        split.notes.push_back(
            fmt::format("{} ProfilerStep ranges begin inside another one and are left out", loop->second.overlapping));
    if (other_steps > 0)
        split.notes.push_back(fmt::format("{} ProfilerStep ranges of other threads are left out", other_steps));
    if (other_draws > 0)
        split.notes.push_back(
            fmt::format("{} draws are on threads other than the steps': something prefetches there, and whether "
                        "the loop waited for it is not in these figures",
                        other_draws));
}

/// Makes a step from each draw to the next, for a trace without ProfilerStep ranges.
void make_steps_by_draw(ThreadRanges& ranges, TraceSplit& split) {
    split.steps_by_draw = true;
    for (std::size_t i = 0; i + 1 < ranges.draws.size(); ++i)
        ranges.steps.push_back(
            {static_cast<std::uint32_t>(i), {ranges.draws[i].begin_ns, ranges.draws[i + 1].begin_ns}});
    split.notes.push_back("no ProfilerStep ranges (the program does not call profiler.step()): a step lasts from one "
                          "draw to the next, and the last draw is left out");
}

/// The draws of each step, cut at its end. `stray`: number of draws outside all steps.
StepDraws draws_by_step(const ThreadRanges& ranges, std::size_t& stray) {
    StepDraws draws(ranges.steps.size());
    std::size_t i = 0;
    for (const TimeRange& draw : ranges.draws) {
        while (i < ranges.steps.size() && ranges.steps[i].at.end_ns <= draw.begin_ns)
            ++i;
        if (i < ranges.steps.size() && draw.begin_ns >= ranges.steps[i].at.begin_ns)
            draws[i].push_back({draw.begin_ns, std::min(draw.end_ns, ranges.steps[i].at.end_ns)});
        else
            ++stray;
    }
    return draws;
}

void add_steps(const std::vector<ThreadRanges::Step>& steps, const StepDraws& draws, TraceSplit& split) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto& [number, at] = steps[i];
        TraceStep step{.number = number,
                       .draws = static_cast<std::uint32_t>(draws[i].size()),
                       .begin_ns = at.begin_ns,
                       .draw_begin_ns = draws[i].empty() ? at.begin_ns : draws[i].front().begin_ns};
        for (const TimeRange& draw : draws[i])
            step.draw_ns += draw.end_ns - draw.begin_ns;
        step.compute_ns = at.end_ns - at.begin_ns - step.draw_ns;
        if (i + 1 < steps.size())
            step.between_ns = steps[i + 1].at.begin_ns - at.end_ns;
        split.has_draws = split.has_draws || step.draws > 0;
        split.steps.push_back(step);
    }
}

/// Number of steps whose number is not above that of the step before.
std::size_t count_repeated(const std::vector<ThreadRanges::Step>& steps) {
    std::size_t repeated = 0;
    for (std::size_t i = 1; i < steps.size(); ++i)
        repeated += steps[i].number <= steps[i - 1].number;
    return repeated;
}

}   // namespace

void find_steps(const Ledger& ledger, TraceSplit& split) {
    const RangesByThread threads = ranges_by_thread(ledger);
    const auto loop = std::ranges::max_element(
        threads, {}, [](const auto& of) { return std::pair{of.second.steps.size(), of.second.draws.size()}; });
    if (loop == threads.end())
        return take_recorded_steps(ledger, split);
    note_left_out(threads, loop, split);
    ThreadRanges ranges = loop->second;
    if (ranges.steps.empty())
        make_steps_by_draw(ranges, split);
    std::size_t stray = 0;
    const StepDraws draws = draws_by_step(ranges, stray);
    add_steps(ranges.steps, draws, split);
    if (stray > 0 && !split.steps_by_draw)
        split.notes.push_back(fmt::format("{} draws lie outside every ProfilerStep and are left out", stray));
    if (const std::size_t repeated = count_repeated(ranges.steps); repeated > 0)
        split.notes.push_back(
            fmt::format("{} step numbers do not go up: several recordings in one trace, perhaps", repeated));
    if (ranges.single > 0 && ranges.multi > 0)
        split.notes.push_back(fmt::format("draws from two kinds of iterator: {} of a single process, {} of several",
                                          ranges.single, ranges.multi));
    else if (ranges.single + ranges.multi > 0)
        split.iterator = ranges.single > 0 ? LoaderIterator::single_process : LoaderIterator::multi_process;
    mark_boundaries(split, draws);
}

}   // namespace drawpoint
