#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "diagnosis/blame/stage_spending.hpp"
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint {

namespace {

constexpr std::size_t blocks = 20;

std::int64_t difference(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(wrapping_difference(a, b)); }

std::uint64_t magnitude(std::int64_t ns) {
    return ns < 0 ? wrapping_difference(0, ns) : static_cast<std::uint64_t>(ns);
}

/// The time of something that steps have.
struct Piece {
    bool of_draw = false;
    std::int64_t ns = 0;
    std::array<std::int64_t, blocks> by_block{};   // of neighbouring steps
};

struct Count {
    std::uint64_t all = 0;
    std::array<std::uint64_t, blocks> by_block{};   // all 0: not known
    void add(std::size_t block) {
        ++all;
        ++by_block[block];
    }
};

/// The steps of a phase, or what stands for them. Draws are counted without the first of each pass.
struct Steps {
    Count steps, draws;
    std::map<std::string, Piece> pieces;

    void add(const std::string& name, bool of_draw, std::size_t block, std::int64_t ns) {
        Piece& piece = pieces[name];
        piece.of_draw = of_draw;
        piece.ns = wrapping_sum(piece.ns, ns);
        piece.by_block[block] = wrapping_sum(piece.by_block[block], ns);
    }
    [[nodiscard]] const Count& count_of(const Piece& piece) const { return piece.of_draw ? draws : steps; }
};

/// A run's wall time, cut into parts that sum to it.
struct Account {
    std::int64_t wall_ns = 0;
    std::uint64_t steps = 0;
    std::array<Steps, 2> phases;                   // by Phase
    std::map<std::string, std::int64_t> outside;   // of steps
};

/// Callbacks of events are one piece, as in reports.
std::string name_in_batch(Span span) {
    return static_cast<std::size_t>(span) < event_count ? "callbacks" : std::string{name_of(span)};
}

/// The time that a draw waited for its batch's other samples, by the stage that workers had them in: add(stage, ns) for
/// each, and add(nullopt, ns) for what is in none. The parts sum to the piece.
template <class F>
void split_other_samples(const Ledger& ledger, const LoaderRows& rows, const DrawBlame& draw, const BlamePiece& piece,
                         F&& add) {
    constexpr std::int64_t most_ns = std::int64_t{1} << 50;   // 13 days: a longer wait is nonsense
    if (piece.ns > most_ns)
        return add(std::nullopt, piece.ns);
    std::array<std::int64_t, max_stages> worker_ns{};
    std::int64_t all_ns = 0;
    for (const std::uint32_t sample : rows.samples_of(draw.batch)) {
        if (all_ns > most_ns)
            break;
        const auto stages = ledger.stages_of(ledger.samples[sample]);
        for (std::size_t i = 0; i < std::min(stages.size(), max_stages); ++i) {
            const std::int64_t from_ns = std::max(stages[i].begin_ns, piece.begin_ns);
            const std::int64_t to_ns =
                std::min(end_ns(stages[i].begin_ns, stages[i].ns), end_ns(piece.begin_ns, piece.ns));
            worker_ns[i] += length_ns(from_ns, to_ns);
            all_ns += length_ns(from_ns, to_ns);
        }
    }
    // Several workers are at it at once: then the piece is shared out in proportion.
    std::int64_t left_ns = piece.ns;
    for (std::size_t i = 0; i < max_stages; ++i)
        if (worker_ns[i] > 0) {
            const std::int64_t ns =
                std::min(left_ns, all_ns > piece.ns ? proportion(piece.ns, worker_ns[i], all_ns) : worker_ns[i]);
            add(static_cast<std::uint8_t>(i), ns);
            left_ns -= ns;
        }
    add(std::nullopt, left_ns);
}

Account account_of(const Ledger& ledger) {
    Account account{.wall_ns = wall_ns(ledger), .steps = ledger.steps.size() + ledger.folded.steps};
    std::int64_t told_ns = 0;
    const auto outside = [&](const char* name, std::int64_t ns) {
        std::int64_t& sum = account.outside[name];
        sum = wrapping_sum(sum, ns);
        told_ns = wrapping_sum(told_ns, ns);
    };
    std::array<std::uint64_t, 2> in_phase{};
    for (const StepRow& step : ledger.steps)
        ++in_phase[static_cast<std::size_t>(step.phase)];
    std::array<std::uint64_t, 2> seen{};
    const Blame blamed = blame(ledger);
    const LoaderRows rows{ledger};
    const UntimedSteps untimed{ledger};
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& step = ledger.steps[i];
        const auto phase = static_cast<std::size_t>(step.phase);
        Steps& steps = account.phases[phase];
        const std::size_t block = seen[phase]++ * blocks / in_phase[phase];
        steps.steps.add(block);
        const DrawBlame& draw = blamed.draws[i];
        if (draw.first_of_pass)
            outside("first draws", step.draw_ns);
        else
            steps.draws.add(block);
        // Without workers the loop makes all samples itself, and is in no stage between two of them.
        const auto has_workers = [&](const DrawBlame& of) {
            return rows.setting_at(ledger.batches[of.batch].pipeline, step.draw_begin_ns).num_workers != 0;
        };
        const auto told = [&](const std::string& name, std::int64_t ns) {
            if (ns == 0)
                return;
            steps.add(name, true, block, ns);
            told_ns = wrapping_sum(told_ns, ns);
        };
        const auto waited = [&](const BlamePiece& piece, std::int64_t ns) {
            told("draw: " + name_of(ledger, draw, piece), ns);
        };
        for (const BlamePiece& piece : std::span{blamed.pieces}.subspan(draw.pieces.first, draw.pieces.count)) {
            if (draw.first_of_pass)
                continue;
            if (untimed.has(step))
                told("draw: not timed on the device", piece.ns);
            else if (piece.cause != Cause::other_samples || draw.batch == nothing || !has_workers(draw))
                waited(piece, piece.ns);
            else
                split_other_samples(ledger, rows, draw, piece, [&](std::optional<std::uint8_t> stage, std::int64_t ns) {
                    waited(stage ? BlamePiece{.cause = Cause::stage, .stage = *stage} : piece, ns);
                });
        }
        for (const SpanRow& piece : ledger.spans_of(step))
            if (piece.begin_ns >= wrapping_sum(step.draw_begin_ns, step.draw_ns)) {
                steps.add(name_in_batch(piece.span), false, block, piece.ns);
                told_ns = wrapping_sum(told_ns, piece.ns);
            }
    }
    for (const EndOfDataRow& end : ledger.ends_of_data)
        outside("ends of data", end.ns);
    for (const PassRow& pass : ledger.passes)
        for (const SpanRow& piece : ledger.spans_of(pass))
            outside("outside steps", piece.ns);
    const Folded& folded = ledger.folded;
    std::int64_t folded_ns = 0;
    for (const PassRow& pass : ledger.passes)
        folded_ns = wrapping_sum(folded_ns, pass.folded_ns);
    outside("folded draws", folded.draws_ns);
    outside("folded batches", folded.batches_ns);
    outside("folded rest", difference(difference(folded_ns, folded.draws_ns), folded.batches_ns));
    if (ledger.passes.empty())
        account.wall_ns = told_ns;
    account.outside["not recorded"] = difference(account.wall_ns, told_ns);
    return account;
}

/// Mean time a step and its standard error; the error is absent with too few steps.
struct Mean {
    double ns = 0;
    std::optional<double> error;
};

Mean mean_of(const Count& count, const Piece& piece) {
    Mean mean;
    if (count.all == 0)
        return mean;
    mean.ns = static_cast<double>(piece.ns) / static_cast<double>(count.all);
    if (std::ranges::any_of(count.by_block, [](std::uint64_t one) { return one == 0; }))
        return mean;
    double squares = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
        const double beyond = static_cast<double>(piece.by_block[i]) / static_cast<double>(count.by_block[i]) - mean.ns;
        squares += beyond * beyond;
    }
    mean.error = std::sqrt(squares / (blocks - 1) / blocks);
    return mean;
}

void add_steps(std::vector<WaterfallRow>& rows, const std::string& phase, const Steps& a, const Steps& b) {
    constexpr double t = 1.70;   // 95 % of Student's t with about 30 degrees of freedom
    WaterfallRow number{.phase = phase, .name = "number of steps"};
    std::map<std::string, std::pair<Piece, Piece>> pieces;
    for (const auto& [name, piece] : a.pieces)
        pieces[name].first = piece;
    for (const auto& [name, piece] : b.pieces) {
        pieces[name].second = piece;
        pieces[name].first.of_draw = piece.of_draw;
    }
    for (const auto& [name, piece] : pieces) {
        WaterfallRow row{.phase = phase, .name = name, .a_ns = piece.first.ns, .b_ns = piece.second.ns};
        const std::int64_t change = difference(row.b_ns, row.a_ns);
        std::int64_t by_number = change;
        const Count &count_a = a.count_of(piece.first), &count_b = b.count_of(piece.first);
        if (count_a.all != 0 && count_b.all != 0) {
            const auto times_a = static_cast<double>(count_a.all), times_b = static_cast<double>(count_b.all);
            const Mean mean_a = mean_of(count_a, piece.first), mean_b = mean_of(count_b, piece.second);
            by_number = std::llround((times_b - times_a) * ((mean_a.ns + mean_b.ns) / 2));
            row.difference_ns = difference(change, by_number);
            if (mean_a.error && mean_b.error) {
                const double width = t * ((times_a + times_b) / 2) * std::hypot(*mean_a.error, *mean_b.error);
                const auto middle = static_cast<double>(row.difference_ns);
                row.interval_ns = Interval{middle, middle - width, middle + width};
            }
        }
        number.difference_ns = wrapping_sum(number.difference_ns, by_number);
        rows.push_back(std::move(row));
    }
    rows.push_back(std::move(number));
}

/// Whether the fact is an option that says where to something is written.
bool names_output(std::string_view key) {
    return key.ends_with(".output") || key.ends_with(".html") || key.ends_with(".log");
}

/// What reports print of a run and its surroundings, by name; without what only says how the run went. Loaders of one
/// recorder have different names.
std::map<std::string, std::string> circumstances_of(const Ledger& ledger) {
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : ledger.facts)
        if ((key.starts_with(facts::option_prefix) && !names_output(key)) || key.starts_with("machine.") ||
            key == facts::digest || key == facts::version)
            all[key] = value;
    for (const PipelineRow& pipeline : ledger.pipelines) {
        const std::string prefix = "loader " + pipeline.name + ": ";
        all[prefix + "batch_size"] = std::to_string(pipeline.batch_size);
        all[prefix + "num_workers"] = std::to_string(pipeline.num_workers);
        all[prefix + "prefetch_depth"] = std::to_string(pipeline.prefetch_depth);
        all[prefix + "order"] = to_string(pipeline.order);
        all[prefix + "read_concurrency"] = std::to_string(pipeline.read_concurrency);
        all[prefix + "memory_budget"] = std::to_string(pipeline.memory_budget);
        std::string stages;
        for (const std::string& stage : pipeline.stages)
            stages += (stages.empty() ? "" : ", ") + stage;
        all[prefix + "stages"] = stages;
    }
    return all;
}

std::vector<RunDifference> differences_of(const Ledger& a, const Ledger& b) {
    std::map<std::string, RunDifference> all;
    for (auto& [name, value] : circumstances_of(a))
        all[name] = {.name = name, .a = value};
    for (auto& [name, value] : circumstances_of(b)) {
        all[name].name = name;
        all[name].b = value;
    }
    std::vector<RunDifference> different;
    for (auto& [name, one] : all)
        if (one.a != one.b)
            different.push_back(std::move(one));
    return different;
}

}   // namespace

RunComparison compare_runs(const Ledger& a, const Ledger& b) {
    const Account from = account_of(a), to = account_of(b);
    RunComparison found{.a_wall_ns = from.wall_ns,
                        .b_wall_ns = to.wall_ns,
                        .a_steps = from.steps,
                        .b_steps = to.steps,
                        .differences = differences_of(a, b)};
    for (const Phase phase : {Phase::train, Phase::valid})
        add_steps(found.rows, std::string{name_of(phase)}, from.phases[static_cast<std::size_t>(phase)],
                  to.phases[static_cast<std::size_t>(phase)]);
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> outside;
    for (const auto& [name, ns] : from.outside)
        outside[name].first = ns;
    for (const auto& [name, ns] : to.outside)
        outside[name].second = ns;
    for (const auto& [name, ns] : outside)
        found.rows.push_back({.phase = "run",
                              .name = name,
                              .a_ns = ns.first,
                              .b_ns = ns.second,
                              .difference_ns = difference(ns.second, ns.first)});
    std::erase_if(found.rows,
                  [](const WaterfallRow& row) { return row.a_ns == 0 && row.b_ns == 0 && row.difference_ns == 0; });
    std::ranges::sort(found.rows, [](const WaterfallRow& x, const WaterfallRow& y) {
        const std::uint64_t first = magnitude(x.difference_ns), second = magnitude(y.difference_ns);
        return first != second ? first > second : std::tie(x.phase, x.name) < std::tie(y.phase, y.name);
    });
    return found;
}

}   // namespace drawpoint
