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

/// A loader's ranges on one thread.
struct ThreadRanges {
    struct Step {
        std::uint32_t number = 0;
        TimeRange at;
    };
    std::vector<Step> steps;   // none inside another
    std::vector<TimeRange> draws;
    std::size_t overlapping = 0, single = 0, multi = 0;
};

std::optional<std::uint32_t> step_number(std::string_view name) noexcept {
    constexpr std::string_view prefix = "ProfilerStep#";
    std::uint32_t number = 0;
    if (!name.starts_with(prefix))
        return std::nullopt;
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    return error == std::errc{} && end == name.data() + name.size() ? std::optional{number} : std::nullopt;
}

std::map<std::uint32_t, ThreadRanges> ranges_by_thread(const Ledger& ledger) {
    std::map<std::uint32_t, ThreadRanges> threads;
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
            if (found.draws.empty() || at.begin_ns >= found.draws.back().end_ns)   // a loader's of a loader is its
                found.draws.push_back(at);
        }
    }
    return threads;
}

/// Where most steps draw as often as this, one that draws more often ended an epoch.
std::size_t usual_count(const std::vector<std::vector<TimeRange>>& draws) {
    std::map<std::size_t, std::size_t> steps;
    for (const auto& of : draws)
        if (!of.empty())
            ++steps[of.size()];
    std::size_t usual = 0, most = 0;
    for (const auto& [count, so_many] : steps)
        if (so_many > most) {
            usual = count;
            most = so_many;
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

void mark_boundaries(TraceSplit& split, const std::vector<std::vector<TimeRange>>& draws) {
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

/// Those of a recording, or of our own export: the loop's own rows.
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

}   // namespace

void find_steps(const Ledger& ledger, TraceSplit& split) {
    const auto threads = ranges_by_thread(ledger);
    const auto loop = std::ranges::max_element(
        threads, {}, [](const auto& of) { return std::pair{of.second.steps.size(), of.second.draws.size()}; });
    if (loop == threads.end())
        return take_recorded_steps(ledger, split);
    ThreadRanges ranges = loop->second;
    std::size_t other_steps = 0, other_draws = 0;
    for (const auto& [thread, of] : threads)
        if (thread != loop->first) {
            other_steps += of.steps.size();
            other_draws += of.draws.size();
        }
    if (ranges.overlapping > 0)
        split.notes.push_back(
            fmt::format("{} ProfilerStep ranges begin inside another one and are left out", ranges.overlapping));
    if (other_steps > 0)
        split.notes.push_back(fmt::format("{} ProfilerStep ranges of other threads are left out", other_steps));
    if (other_draws > 0)
        split.notes.push_back(
            fmt::format("{} draws are on threads other than the steps': something prefetches there, and whether "
                        "the loop waited for it is not in these figures",
                        other_draws));
    if (ranges.steps.empty()) {
        split.steps_by_draw = true;
        for (std::size_t i = 0; i + 1 < ranges.draws.size(); ++i)
            ranges.steps.push_back(
                {static_cast<std::uint32_t>(i), {ranges.draws[i].begin_ns, ranges.draws[i + 1].begin_ns}});
        split.notes.push_back(
            "no ProfilerStep ranges (the program does not call profiler.step()): a step lasts from one draw to "
            "the next, and the last draw is left out");
    }

    std::vector<std::vector<TimeRange>> draws(ranges.steps.size());
    std::size_t stray = 0, i = 0, repeated = 0;
    for (const TimeRange& draw : ranges.draws) {
        while (i < ranges.steps.size() && ranges.steps[i].at.end_ns <= draw.begin_ns)
            ++i;
        if (i < ranges.steps.size() && draw.begin_ns >= ranges.steps[i].at.begin_ns)
            draws[i].push_back({draw.begin_ns, std::min(draw.end_ns, ranges.steps[i].at.end_ns)});
        else if (!split.steps_by_draw)
            ++stray;
    }
    for (std::size_t s = 0; s < ranges.steps.size(); ++s) {
        const auto& [number, at] = ranges.steps[s];
        TraceStep step{.number = number,
                       .draws = static_cast<std::uint32_t>(draws[s].size()),
                       .begin_ns = at.begin_ns,
                       .draw_begin_ns = draws[s].empty() ? at.begin_ns : draws[s].front().begin_ns};
        for (const TimeRange& draw : draws[s])
            step.draw_ns += draw.end_ns - draw.begin_ns;
        step.compute_ns = at.end_ns - at.begin_ns - step.draw_ns;
        if (s + 1 < ranges.steps.size())
            step.between_ns = ranges.steps[s + 1].at.begin_ns - at.end_ns;
        repeated += s > 0 && number <= ranges.steps[s - 1].number;
        split.has_draws = split.has_draws || step.draws > 0;
        split.steps.push_back(step);
    }
    if (stray > 0)
        split.notes.push_back(fmt::format("{} draws lie outside every ProfilerStep and are left out", stray));
    if (repeated > 0)
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
