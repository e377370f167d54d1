#include <drawpoint/diagnosis/trust/interference.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "diagnosis/trust/host_pieces.hpp"
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/text/format.hpp>

namespace drawpoint {
namespace {

using Reason = std::optional<std::string>;

constexpr double most_foreign = 0.25, most_foreign_change = 0.125, most_steal = 0.25;   // shares of the cores
constexpr double most_run_queue = 0.05, most_throttled = 0.01, most_lost = 1e-3, most_misplaced = 0.01,
                 most_drift = 0.1;

std::string percent(double share) { return fmt::format("{:.2g} %", 100 * share); }

Reason find_foreign_load(const Interference& others) {
    const double most = most_foreign * others.cores;
    if (!others.measured || others.foreign_cores < most)
        return std::nullopt;
    return fmt::format("others kept {:.2f} of {:.3g} cores busy (the replay allows for less than {:.3g})",
                       others.foreign_cores, others.cores, most);
}

Reason find_changing_load(const Ledger& ledger, const Interference& others, std::int64_t from_ns, std::int64_t to_ns) {
    const std::int64_t middle_ns = std::midpoint(from_ns, to_ns);
    const Interference first = interference(ledger, from_ns, middle_ns),
                       second = interference(ledger, middle_ns, to_ns);
    const double change = std::abs(first.foreign_cores - second.foreign_cores);
    // A tick finds each core busy or not: a variance of at most a quarter tick² each, in both halves.
    const double ticks = (static_cast<double>(to_ns) - static_cast<double>(from_ns)) / 2 / accounting_tick_ns;
    const double by_ticks = 3 * std::sqrt(2 * others.cores * 0.25 / std::max(ticks, 1.0));
    if (!first.measured || !second.measured || change < most_foreign_change * others.cores || change < by_ticks)
        return std::nullopt;
    return fmt::format("others kept {:.2f} cores busy in the first half and {:.2f} in the second", first.foreign_cores,
                       second.foreign_cores);
}

/// Waiting for cores that cannot be due to this process's own threads.
Reason find_run_queue(const Ledger& ledger, const Interference& others) {
    std::uint64_t threads = 1;   // the loop's
    for (const PipelineRow& pipeline : ledger.pipelines)
        threads = std::max<std::uint64_t>(threads, 1 + std::uint64_t{pipeline.num_workers});
    for (const SettingRow& setting : ledger.settings)
        threads = std::max<std::uint64_t>(threads, 1 + std::uint64_t{setting.num_workers});
    if (others.measured || others.run_queue_share < most_run_queue || static_cast<double>(threads) > others.cores)
        return std::nullopt;
    return fmt::format(
        "workers waited {} of their time for a core, although {} threads share {:.3g} cores; the load of other "
        "processes was not measured",
        percent(others.run_queue_share), threads, others.cores);
}

Reason find_throttling(const Interference& others) {
    if (others.throttled_share <= most_throttled)
        return std::nullopt;
    return fmt::format("the cgroup's quota stopped this process for {} of the time", percent(others.throttled_share));
}

Reason find_steal(const Interference& others) {
    const double share = others.steal_cores / others.cores;
    if (share <= most_steal)
        return std::nullopt;
    return fmt::format("the hypervisor took {} of the cores", percent(share));
}

Reason find_lost_records(const Ledger& ledger) {
    double lost = 0;   // of the loop's and the workers' rings: an operator's ring does not matter here
    for (const DroppedRow& row : ledger.dropped)
        if (row.ring < first_operator_ring)
            lost += static_cast<double>(row.records);
    const double kept = static_cast<double>(ledger.steps.size() + ledger.batches.size() + ledger.samples.size()) +
                        static_cast<double>(ledger.folded.steps) + static_cast<double>(ledger.folded.samples);
    if (lost <= most_lost * (lost + kept))
        return std::nullopt;
    return fmt::format("{:.0f} records were lost, {} of them", lost, percent(lost / (lost + kept)));
}

Reason find_residual(const Ledger& ledger) {
    if (const std::int64_t ns = max_residual_ns(ledger); ns != 0)
        return fmt::format("the measured parts of a pass differ from its length by {} ns", ns);
    if (const std::int64_t ns = untiled_ns(ledger); ns != 0)
        return fmt::format("{} ns of the passes are in no measured part, or in two", ns);
    return std::nullopt;
}

Reason find_misplaced(const Ledger& ledger) {
    std::int64_t unmarked_ns = 0, off_ns = 0, wall_ns = 0, until_ns = ledger.start_ns;
    for (const PassRow& pass : ledger.passes) {
        unmarked_ns += pass.unmarked_ns;
        off_ns += pass.clamped_ns + pass.ahead_ns;
        wall_ns += std::max<std::int64_t>(pass.end_ns - std::max(pass.begin_ns, until_ns), 0);
        until_ns = std::max(until_ns, pass.end_ns);
    }
    const double most = most_misplaced * static_cast<double>(wall_ns);
    if (static_cast<double>(off_ns) > most)
        return fmt::format("stamps were off by {:.3g} ms in all: before the one before them, or in the future",
                           static_cast<double>(off_ns) / 1e6);
    if (static_cast<double>(unmarked_ns) > most)
        return fmt::format("{:.3g} ms at the edges of passes and steps were not marked, so they count as what followed",
                           static_cast<double>(unmarked_ns) / 1e6);
    return std::nullopt;
}

struct Mean {
    double mean = 0, variance = 0;   ///< variance of the mean
};

/// Computed from the means of `blocks` runs of consecutive values: neighbouring values depend on each other, runs
/// hardly do.
Mean mean_of(std::span<const double> values) {
    constexpr std::size_t blocks = 8;
    std::array<double, blocks> means{};
    for (std::size_t i = 0; i < blocks; ++i) {
        const std::size_t begin = values.size() * i / blocks, end = values.size() * (i + 1) / blocks;
        means[i] = std::reduce(values.begin() + static_cast<std::ptrdiff_t>(begin),
                               values.begin() + static_cast<std::ptrdiff_t>(end)) /
                   static_cast<double>(end - begin);
    }
    Mean found{.mean = std::reduce(means.begin(), means.end()) / blocks};
    for (const double mean : means)
        found.variance += (mean - found.mean) * (mean - found.mean) / (blocks * (blocks - 1));
    return found;
}

Reason find_drift(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    std::vector<double> steps;
    for (const StepRow& step : ledger.steps)
        if (step.phase == Phase::train && step.size > 0 && step.batch > 0 && step.draw_begin_ns >= from_ns &&
            step.draw_begin_ns < to_ns)
            steps.push_back(static_cast<double>(step.draw_ns) + static_cast<double>(step.batch_ns));
    if (steps.size() < 32)
        return std::nullopt;
    std::array<Mean, 4> quarters;
    for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t begin = steps.size() * i / 4, end = steps.size() * (i + 1) / 4;
        quarters[i] = mean_of(std::span{steps}.subspan(begin, end - begin));
    }
    const auto [least, most] = std::ranges::minmax(quarters, {}, &Mean::mean);
    const double mean = std::reduce(steps.begin(), steps.end()) / static_cast<double>(steps.size());
    if (most.mean - least.mean <= most_drift * mean + 4 * std::sqrt(least.variance + most.variance))
        return std::nullopt;
    return fmt::format("steps took {}, {}, {} and {} in the four quarters of the run",
                       format_duration(quarters[0].mean / 1e9), format_duration(quarters[1].mean / 1e9),
                       format_duration(quarters[2].mean / 1e9), format_duration(quarters[3].mean / 1e9));
}

Reason find_time_gone_back(const Ledger& ledger) {
    std::int64_t until_ns = std::numeric_limits<std::int64_t>::min();
    for (const StepRow& step : ledger.steps) {
        if (step.draw_ns < 0 || step.batch_ns < 0 || step.draw_begin_ns < until_ns)
            return fmt::format("the clock went back at step {}", step.step);
        until_ns = end_ns(step);
    }
    return std::nullopt;
}

/// The recorder reads the host's counters at regular intervals, whatever the loop does. If it did not, for as long as
/// one step took, the whole process stood still or its clock jumped ahead.
Reason find_stood_still(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    constexpr double least_ns = 5e8;   // the writer thread may be late
    // The interval of the readings. In a short run most pieces are shorter, because it has one more at its end.
    constexpr double least_usual_ns = 2e8;
    const auto pieces = host_pieces<1>(ledger, from_ns, to_ns, {&HostRow::own_cpu_ns});
    if (pieces.empty())
        return std::nullopt;
    std::vector<double> lengths, steps;
    for (const auto& piece : pieces)
        lengths.push_back(piece.to_ns - piece.from_ns);
    for (const StepRow& step : ledger.steps)
        steps.push_back(static_cast<double>(end_ns(step)) - static_cast<double>(step.draw_begin_ns));
    const auto median = [](std::vector<double>& values) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
        std::ranges::nth_element(values, middle);
        return *middle;
    };
    if (steps.empty())
        return std::nullopt;
    const double usual_ns = std::max(median(lengths), least_usual_ns), usual_step_ns = median(steps);
    for (const auto& gap : pieces) {
        const double more_ns = gap.to_ns - gap.from_ns - usual_ns;
        if (more_ns < least_ns || more_ns < 2 * usual_ns)
            continue;
        // The last step that began early enough to fill nine tenths of the gap.
        const auto next =
            std::ranges::upper_bound(ledger.steps, gap.to_ns - 0.9 * more_ns, {},
                                     [](const StepRow& step) { return static_cast<double>(step.draw_begin_ns); });
        if (next == ledger.steps.begin())
            continue;
        const StepRow& step = *std::prev(next);
        const auto begin = static_cast<double>(step.draw_begin_ns), end = static_cast<double>(end_ns(step));
        if (std::min(end, gap.to_ns) - std::max(begin, gap.from_ns) > 0.9 * more_ns && end - begin > 10 * usual_step_ns)
            return fmt::format("nothing happened for {} in step {}: the process was stopped or its clock stepped",
                               format_duration(more_ns / 1e9), step.step);
    }
    return std::nullopt;
}

/// The words of the reasons, in the order of the enumeration.
struct ReasonWord {
    std::string_view word;
    bool is_interference;
};
constexpr std::array<ReasonWord, 11> reason_words{{{"foreign-load", true},
                                                   {"changing-load", true},
                                                   {"run-queue", true},
                                                   {"throttling", true},
                                                   {"steal", true},
                                                   {"lost-records", false},
                                                   {"residual", false},
                                                   {"misplaced", false},
                                                   {"drift", false},
                                                   {"clock-went-back", false},
                                                   {"stood-still", false}}};

const ReasonWord& word_of(DistrustReason reason) noexcept { return reason_words[static_cast<std::size_t>(reason)]; }

}   // namespace

std::string_view to_string(DistrustReason reason) noexcept { return word_of(reason).word; }
bool is_interference(DistrustReason reason) noexcept { return word_of(reason).is_interference; }

std::vector<std::string> Trust::texts() const {
    std::vector<std::string> all;
    for (const Doubt& doubt : reasons)
        all.push_back(doubt.text);
    return all;
}

Trust trust_of(const Ledger& ledger, const Interference& others, std::int64_t from_ns, std::int64_t to_ns) {
    Trust trust;
    if (others.cores > 0) {
        trust.interference_share = std::clamp(others.foreign_cores / others.cores, 0.0, 1.0);
        trust.steal_share = std::clamp(others.steal_cores / others.cores, 0.0, 1.0);
    }
    using enum DistrustReason;
    const auto note = [&trust](DistrustReason reason, Reason text) {
        if (text)
            trust.reasons.push_back({reason, std::move(*text)});
    };
    note(foreign_load, find_foreign_load(others));
    note(changing_load, find_changing_load(ledger, others, from_ns, to_ns));
    note(run_queue, find_run_queue(ledger, others));
    note(throttling, find_throttling(others));
    note(steal, find_steal(others));
    note(lost_records, find_lost_records(ledger));
    note(residual, find_residual(ledger));
    note(misplaced, find_misplaced(ledger));
    note(drift, find_drift(ledger, from_ns, to_ns));
    note(clock_went_back, find_time_gone_back(ledger));
    note(stood_still, find_stood_still(ledger, from_ns, to_ns));
    trust.trusted = trust.reasons.empty();
    return trust;
}

}   // namespace drawpoint
