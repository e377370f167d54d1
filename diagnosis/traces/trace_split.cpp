#include <drawpoint/diagnosis/traces/trace_split.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include <fmt/format.h>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/traces/trace_steps.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t least_for_warm_up = 10, least_for_interval = 20, least_for_hint = 5;

/// Times of the steady steps, in order.
struct Steady {
    std::vector<std::int64_t> draw_ns, step_ns, all_ns;   // draw; draw + compute; draw + compute + between
};

std::int64_t rank(const std::vector<std::int64_t>& sorted, std::size_t percent) {
    return sorted.empty() ? 0 : sorted[(sorted.size() * percent + 99) / 100 - 1];
}

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

double sum(std::span<const std::int64_t> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::int64_t time_of(const TraceStep& step) noexcept { return step.draw_ns + step.setup_ns + step.compute_ns; }

void mark_warm_up(TraceSplit& split) {
    const std::size_t count = split.steps.size();
    if (count < least_for_warm_up) {
        if (count > 0)
            split.notes.push_back(
                fmt::format("{} steps are too few to find the warm-up ({} are needed)", count, least_for_warm_up));
        return;
    }
    std::vector<std::int64_t> late;
    for (std::size_t i = count / 2; i < count; ++i)
        late.push_back(time_of(split.steps[i]));
    std::ranges::sort(late);
    const std::int64_t usual = rank(late, 50);
    while (split.warm_up_steps < count / 2 && time_of(split.steps[split.warm_up_steps]) - usual > usual / 2)
        ++split.warm_up_steps;
    if (split.warm_up_steps == count / 2) {
        split.warm_up_steps = 0;
        split.notes.push_back("the steps get shorter throughout the first half: warm-up cannot be told from the rest");
    }
    for (std::size_t i = 0; i < split.warm_up_steps; ++i)
        split.steps[i].warm_up = true;
}

/// By how much throughput would rise without draws (0.1 = 10 %).
std::optional<double> headroom_of(double draw_ns, double all_ns) {
    return all_ns > draw_ns ? std::optional{draw_ns / (all_ns - draw_ns)} : std::nullopt;
}

/// A 90 % interval by a block bootstrap, so that steps that follow one another stay together.
std::optional<std::pair<double, double>> headroom_interval(const Steady& steady) {
    constexpr std::size_t replications = 400, most_blocks = 1000;
    const std::size_t count = steady.all_ns.size();
    if (count < least_for_interval)
        return std::nullopt;
    const std::size_t length =
        std::max<std::size_t>({5, static_cast<std::size_t>(std::cbrt(count)), count / most_blocks});
    std::vector<double> draw(count + 1), all(count + 1);   // prefix sums
    for (std::size_t i = 0; i < count; ++i) {
        draw[i + 1] = draw[i] + static_cast<double>(steady.draw_ns[i]);
        all[i + 1] = all[i] + static_cast<double>(steady.all_ns[i]);
    }
    std::mt19937_64 random{1};
    std::vector<double> found;
    for (std::size_t r = 0; r < replications; ++r) {
        double draws = 0, times = 0;
        for (std::size_t taken = 0; taken < count; taken += length) {
            const std::size_t at = random() % (count - length + 1);
            draws += draw[at + length] - draw[at];
            times += all[at + length] - all[at];
        }
        if (const auto gain = headroom_of(draws, times))
            found.push_back(*gain);
    }
    if (found.size() < replications)
        return std::nullopt;
    std::ranges::sort(found);
    return std::pair{found[replications / 20], found[replications - 1 - replications / 20]};
}

/// The lag at which the autocorrelation of the draws is highest, if it is above 0.5.
std::optional<std::size_t> period_of(const std::vector<std::int64_t>& draws) {
    constexpr std::size_t longest = 64, most = 4096;
    const std::size_t count = std::min(draws.size(), most);
    const double mean = ratio(sum(std::span{draws}.first(count)), static_cast<double>(count));
    const auto product = [&](std::size_t lag) {
        double total = 0;
        for (std::size_t i = 0; i + lag < count; ++i)
            total += (static_cast<double>(draws[i]) - mean) * (static_cast<double>(draws[i + lag]) - mean);
        return total / static_cast<double>(count - lag);
    };
    const double variance = product(0);
    if (!(variance > 0) || mean * mean > 25 * variance)   // nearly constant: whatever repeats there is small
        return std::nullopt;
    std::optional<std::size_t> found;
    double best = 0.5;
    for (std::size_t lag = 2; lag <= longest && lag * 4 <= count; ++lag)
        // A multiple of the period correlates as well as the period: a later lag has to be clearly better.
        if (const double r = product(lag) / variance; r > best + (found ? 0.1 : 0)) {
            best = r;
            found = lag;
        }
    return found && product(1) / variance < best ? found : std::nullopt;
}

/// The part of the steady draws' time during which a device worked; nothing if the trace has no work of a device.
std::optional<double> hidden_share_of(const Ledger& ledger, const TraceSplit& split) {
    std::vector<std::pair<std::int64_t, std::int64_t>> busy;   // begin, end
    for (const OperatorRow& row : ledger.operators)
        if (row.kind == OperatorKind::kernel || row.kind == OperatorKind::memcpy || row.kind == OperatorKind::memset)
            busy.emplace_back(row.begin_ns, row.begin_ns + row.ns);
    if (busy.empty())
        return std::nullopt;
    std::ranges::sort(busy);
    double hidden = 0, drawn = 0;
    std::size_t next = 0;
    std::int64_t until = 0;   // busy time before this was counted, or lies before the draw
    for (const TraceStep& step : split.steps) {
        if (step.warm_up || step.boundary || step.draws != 1)
            continue;
        const std::int64_t begin = step.draw_begin_ns, end = begin + step.draw_ns;
        drawn += static_cast<double>(step.draw_ns);
        until = std::max(until, begin);
        for (; next < busy.size() && busy[next].first < end; ++next) {
            const std::int64_t from = std::max(busy[next].first, until), to = std::min(busy[next].second, end);
            if (to > from) {
                hidden += static_cast<double>(to - from);
                until = to;
            }
            if (busy[next].second > end)   // goes on in later draws
                break;
        }
    }
    return ratio(hidden, drawn);
}

std::vector<TraceAction> actions_of(const Ledger& ledger) {
    constexpr std::array actions{std::pair{Span::forward, "forward"}, std::pair{Span::loss, "loss"},
                                 std::pair{Span::backward, "backward"}, std::pair{Span::opt_step, "optimizer"},
                                 std::pair{Span::zero_grad, "zero_grad"}};
    std::vector<TraceAction> found;
    for (const auto& [span, name] : actions) {
        std::int64_t ns = 0;
        for (const StepRow& row : ledger.steps)
            for (const SpanRow& piece : ledger.spans_of(row))
                ns += piece.span == span ? piece.ns : 0;
        if (ns > 0)
            found.push_back({name, ns});
    }
    return found;
}

void list_questions(const Ledger& ledger, TraceSplit& split) {
    auto& list = split.cannot_tell;
    if (split.iterator != LoaderIterator::single_process) {
        list.push_back(
            "Which stage (reading, decoding, transforming, collating) a draw waited for: nothing of the worker "
            "processes is in the trace.");
        list.push_back(
            "Whether workers were busy, waiting for storage, waiting for a core, or idle because the loader had "
            "prefetched enough.");
        list.push_back("Whether a finished batch lay waiting behind an older one.");
    } else {
        list.push_back(
            "Which stage (reading, decoding, transforming, collating) a draw spent its time in, unless the data set "
            "annotates it: only operators of PyTorch are in the trace.");
    }
    list.push_back("Which sample made a draw long.");
    list.push_back(
        "What another number of workers, prefetch factor or batch size would give: that needs the samples' times.");
    list.push_back("Whether other programs on the machine took part of it.");
    const bool has_device = std::ranges::any_of(ledger.threads, [](const ThreadRow& row) { return row.device >= 0; });
    const auto devices = ledger.fact("trace.deviceProperties");
    if (!has_device && devices && devices->find('{') != devices->npos)
        list.push_back(
            "Whether the device was still busy during a draw, which then cost nothing: device work was not imported.");
}

/// How many of the draws, sorted by length, are long: the longer of the two groups that differ most from each other by
/// the logarithm of their lengths (Otsu's method). 0: the groups' geometric means differ by less than a factor of 5.
std::size_t long_draws_of(const std::vector<std::int64_t>& sorted_ns) {
    constexpr std::int64_t shortest_ns = 1000;   // shorter draws are alike
    std::vector<double> logs;
    for (const std::int64_t ns : sorted_ns)
        logs.push_back(std::log(static_cast<double>(std::max(ns, shortest_ns))));
    const double all = std::accumulate(logs.begin(), logs.end(), 0.0);
    double below = 0, most = 0, apart = 0;
    std::size_t first_long = logs.size();
    for (std::size_t i = 1; i < logs.size(); ++i) {
        below += logs[i - 1];
        const auto before = static_cast<double>(i), after = static_cast<double>(logs.size() - i);
        const double difference = (all - below) / after - below / before;
        if (before * after * difference * difference > most) {
            most = before * after * difference * difference;
            apart = difference;
            first_long = i;
        }
    }
    return apart < std::log(5) ? 0 : logs.size() - first_long;
}

/// The hint for uneven draws without a period, by how many of them are long.
std::string hint_of_uneven(const TraceSplit& split) {
    constexpr std::size_t few = 5;   // long draws are few if at most one in this many is long
    const auto ms = [](std::int64_t ns) { return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6); };
    const DrawTail& draw = split.steady_draw;
    const std::string counted = fmt::format("{} of {} draws are long (median {}, 99th percentile {})", split.long_draws,
                                            split.steady_steps, ms(draw.p50_ns), ms(draw.p99_ns));
    if (split.steady_steps < least_for_interval)
        return counted + ": too few steps to tell single slow samples from workers that are too slow as a whole.";
    if (split.long_draws * few <= split.steady_steps)
        return fmt::format(
            "Few draws are long (99th percentile {}, median {}): single slow samples or batches, or too few "
            "batches prefetched to bridge them; the workers are not too slow on the whole.",
            ms(draw.p99_ns), ms(draw.p50_ns));
    return counted + ", in no regular order: the workers are too slow as a whole, and finish several batches at about "
                     "the same time, or samples differ much. More workers, or cheaper samples.";
}

std::string hint_of(const TraceSplit& split) {
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
    const auto ms = [](std::int64_t ns) { return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6); };
    const DrawTail& draw = split.steady_draw;
    if (!split.has_draws || split.steady_steps < least_for_hint)
        return {};
    if (split.draw_share < 0.03 && split.warm_up_share + split.boundary_share >= 0.7)
        return "Steady draws are short; " + percent(split.warm_up_share + split.boundary_share) +
               " of the waiting is in warm-up and at epoch boundaries: persistent workers, or longer epochs, would "
               "avoid it.";
    if (split.draw_share < 0.03 && draw.p99_ns < split.steady_step_p50_ns / 10)
        return "The loop hardly waits for data: draws that took no time would gain " +
               percent(split.headroom.value_or(0)) + ".";
    if (split.iterator == LoaderIterator::single_process)
        return "num_workers is 0: the loop's own process loads, and every draw is the loading itself. With workers it "
               "would go "
               "on during the steps; if they keep up, and find free cores, the gain is up to " +
               percent(split.headroom.value_or(0)) + ".";
    if (split.hidden_share && *split.hidden_share >= 0.5)
        return percent(*split.hidden_share) +
               " of the draws' time the device was still working: part of that waiting is hidden behind device work.";
    if (split.period)
        return fmt::format(
            "About every {} draw is long and those between are short, as when {} workers finish together: the "
            "workers are too slow as a whole, not single samples. More workers, or cheaper samples.",
            format_ordinal(*split.period), *split.period);
    if (split.long_draws != 0 && split.long_draws * 10 < split.steady_steps * 9)
        return hint_of_uneven(split);
    return fmt::format(
        "Draws are alike (median {}, 99th percentile {}): the workers are too slow on the whole, or handing a batch "
        "over costs this much each time. If more workers leave the median as it is, it is the handing over.",
        ms(draw.p50_ns), ms(draw.p99_ns));
}

}   // namespace

TraceSplit split_trace(const Ledger& ledger) {
    TraceSplit split;
    find_steps(ledger, split);
    if (split.steps.empty())
        split.notes.push_back("no steps: neither ProfilerStep ranges nor two draws of a DataLoader");
    else if (!split.has_draws)
        split.notes.push_back(
            "no draws: the loop has no enumerate(DataLoader)#….__next__ range, so it draws from something else, "
            "or another thread does; nothing can be said of its waiting");
    mark_warm_up(split);

    Steady steady;
    double waited = 0, warm_up = 0, at_boundaries = 0, all = 0, between = 0;
    std::size_t without = 0;
    for (const TraceStep& step : split.steps) {
        const auto wait = static_cast<double>(step.draw_ns + step.setup_ns);
        waited += wait;
        all += static_cast<double>(time_of(step) + step.between_ns);
        between += static_cast<double>(step.between_ns);
        without += step.draws == 0;
        split.boundaries += step.boundary;
        if (step.warm_up) {
            warm_up += wait;
        } else if (step.boundary) {
            at_boundaries += wait;
        } else {
            steady.draw_ns.push_back(step.draw_ns);
            steady.step_ns.push_back(time_of(step));
            steady.all_ns.push_back(time_of(step) + step.between_ns);
        }
    }
    if (split.has_draws && without > 0)
        split.notes.push_back(fmt::format("{} steps fetch no batch", without));
    split.between_share = ratio(between, all);
    if (const auto cost = ledger.fact(facts::trace_overhead_ns))
        std::from_chars(cost->data(), cost->data() + cost->size(), split.profiler_ns);
    split.actions = actions_of(ledger);
    list_questions(ledger, split);
    if (!split.has_draws)
        return split;

    split.steady_steps = steady.draw_ns.size();
    split.draw_share = ratio(sum(steady.draw_ns), sum(steady.all_ns));
    split.draw_share_of_all = ratio(waited, all);
    split.warm_up_share = ratio(warm_up, waited);
    split.boundary_share = ratio(at_boundaries, waited);
    split.headroom = headroom_of(sum(steady.draw_ns), sum(steady.all_ns));
    split.headroom_90 = headroom_interval(steady);
    split.period = period_of(steady.draw_ns);
    split.hidden_share = hidden_share_of(ledger, split);
    std::ranges::sort(steady.draw_ns);
    std::ranges::sort(steady.step_ns);
    split.steady_draw = {rank(steady.draw_ns, 50), rank(steady.draw_ns, 90), rank(steady.draw_ns, 99),
                         rank(steady.draw_ns, 100)};
    split.long_draws = long_draws_of(steady.draw_ns);
    split.steady_step_p50_ns = rank(steady.step_ns, 50);
    split.hint = hint_of(split);
    return split;
}

}   // namespace drawpoint
