#include <drawpoint/instrumentation/report/summary.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "instrumentation/ledger/folding.hpp"
#include <drawpoint/instrumentation/ledger/detail/order_loss.hpp>
#include "instrumentation/report/durations.hpp"
#include "instrumentation/report/summary_parts.hpp"

namespace drawpoint {
namespace {

/// Samples per second of each batch.
struct Rates {
    std::vector<double> kept;
    double folded = 0;   // sum of the rates of folded batches
    std::size_t folded_count = 0;

    [[nodiscard]] std::optional<double> mean() const {
        const double mean = folded_count == 0
                                ? statistics::mean(kept)
                                : (statistics::sum(kept) + folded) / static_cast<double>(kept.size() + folded_count);
        return std::isfinite(mean) ? std::optional{mean} : std::nullopt;
    }
};

/// The counted steps of one phase, one column per action.
struct PhaseColumns {
    std::array<Durations, action_count> durations;
    std::array<Rates, action_count> rates;
    Rates pass_rates;   // rates of all steps, none dropped

    void add(const StepDurations& step, std::uint32_t size) {
        const auto of_step = rates_of(step, size);
        for (std::size_t i = 0; i < action_count; ++i) {
            if (step[i] == no_stamp)
                continue;
            durations[i].add(step[i]);
            rates[i].kept.push_back(of_step[i]);
        }
    }
    void add(const FoldedAction& folded) {
        const auto i = static_cast<std::size_t>(folded.action);
        durations[i].folded.add(folded.durations);
        const auto count = static_cast<std::size_t>(folded.durations.calls());
        rates[i] = {std::move(rates[i].kept), folded.rates, count};
        if (folded.action == Action::step)
            pass_rates = {std::move(pass_rates.kept), folded.rates, count};
    }
};

bool has_rate(Action action) noexcept {
    switch (action) {
    case Action::step:
    case Action::draw:
    case Action::batch:
    case Action::forward:
    case Action::predict:
    case Action::loss:
    case Action::backward:
    case Action::opt_step: return true;
    default: return false;
    }
}

void add_device(Summary& summary, const Ledger& ledger) {
    const DeviceTotals totals = device_totals(ledger);
    if (totals.steps == 0)
        return;
    summary.device = {.name = std::string{ledger.fact(facts::device).value_or("")},
                      .steps = totals.steps,
                      .time_s = seconds(totals.all_ns()),
                      .dry_s = seconds(totals.dry_ns),
                      .copy_wait_s = seconds(totals.copy_wait_ns),
                      .span_s = seconds(totals.span_ns),
                      .exposed_s = seconds(totals.exposed_ns()),
                      .step_s = seconds(totals.dry_step_ns),
                      .between_s = seconds(totals.dry_ns) - seconds(totals.exposed_ns()) - seconds(totals.dry_step_ns) -
                                   seconds(totals.dry_launch_ns),
                      .launch_s = seconds(totals.dry_launch_ns),
                      .starved_s = seconds(totals.dry_starved_ns),
                      .handoff_s = seconds(totals.dry_handoff_ns),
                      .transfer_s = seconds(totals.dry_transfer_ns),
                      .callbacks_s = seconds(totals.dry_callbacks_ns),
                      .hidden_s = seconds(totals.draws_ns) - seconds(totals.exposed_ns()),
                      .mean_lag_s = seconds(totals.lag_ns) / static_cast<double>(totals.steps),
                      .mean_forward_lag_s = seconds(totals.forward_lag_ns) / static_cast<double>(totals.steps),
                      .uncertainty_s = seconds(totals.uncertainty_ns),
                      .copies = totals.copies,
                      .copied_bytes = totals.copied_bytes,
                      .copy_s = seconds(totals.copy_ns)};
}

void add_steps(Summary& summary, const Ledger& ledger, bool drop_first_batch, std::array<PhaseColumns, 2>& columns) {
    const Folded& folded = ledger.folded;
    std::array<std::size_t, 2> counted{};
    for (const FoldedAction& action : folded.actions) {
        auto& of_phase = columns[static_cast<std::size_t>(action.phase)];
        of_phase.add(action);
        if (action.action == Action::step)
            counted[static_cast<std::size_t>(action.phase)] += static_cast<std::size_t>(action.durations.calls());
    }
    for (const StepRow& step : ledger.steps)
        counted[static_cast<std::size_t>(step.phase)] += counts(step) ? 1 : 0;
    std::array<bool, 2> drop;
    for (std::size_t phase = 0; phase < 2; ++phase)
        drop[phase] = drop_first_batch && counted[phase] > 1;

    std::int64_t draws_ns = folded.draws_ns, batches_ns = folded.batches_ns, other_ns = folded.other_ns;
    DrawSplit split = folded.draw;
    const OrderLoss order{ledger};
    summary.run.samples = folded.samples;
    summary.left_out.failed = folded.failed;
    summary.left_out.not_drawn = folded.not_drawn;
    for (const StepRow& step : ledger.steps) {
        summary.run.samples += step.size;
        const StepDurations durations = durations_of(ledger, step);
        draws_ns += step.draw_ns;
        batches_ns += step.batch_ns;
        other_ns += durations[static_cast<std::size_t>(Action::other)];
        if (step.phase == Phase::train && step.loss) {
            if (!summary.model.loss_first)
                summary.model.loss_first = step.loss;
            summary.model.loss_last = step.loss;
        }
        if (!counts(step)) {
            ++(step.status == StepStatus::failed ? summary.left_out.failed : summary.left_out.not_drawn);
            continue;
        }
        const auto phase = static_cast<std::size_t>(step.phase);
        columns[phase].pass_rates.kept.push_back(static_cast<double>(step.size) /
                                                 seconds(step.draw_ns + step.batch_ns));
        if (std::exchange(drop[phase], false)) {
            ++summary.left_out.first_batches;
            summary.left_out.first_draws_s += seconds(step.draw_ns);
            continue;
        }
        columns[phase].add(durations, step.size);
        add_to_split(split, ledger, order, step);
    }
    summary.draw = {.callbacks_s = seconds(split.callbacks_ns),
                    .starved_s = seconds(split.starved_ns),
                    .handoff_s = seconds(split.handoff_ns),
                    .transfer_s = seconds(split.transfer_ns),
                    .order_s = seconds(split.order_ns),
                    .order_share = ratio(seconds(split.order_ns), summary.run.wall_s)};
    for (const EndOfDataRow& end : ledger.ends_of_data) {
        columns[static_cast<std::size_t>(end.phase)].durations[static_cast<std::size_t>(Action::end_of_data)].add(
            end.ns);
        draws_ns += end.ns;
    }

    summary.run.steps = summary.conservation.steps = ledger.steps.size() + folded.steps;
    summary.conservation.max_residual_ns = max_residual_ns(ledger);
    summary.conservation.untiled_ns = untiled_ns(ledger);
    for (const PassRow& pass : ledger.passes) {
        summary.conservation.unmarked_ns += pass.unmarked_ns;
        summary.conservation.clamped_ns += pass.clamped_ns;
        summary.conservation.ahead_ns += pass.ahead_ns;
    }
    summary.conservation.other_share_of_batch = ratio(seconds(other_ns), seconds(batches_ns));
    summary.headroom.draw_s = seconds(draws_ns);
    summary.headroom.draw_share = ratio(summary.headroom.draw_s, summary.run.wall_s);
    const double all_s = summary.device ? summary.device->time_s : summary.run.wall_s,
                 data_s =
                     summary.device ? summary.device->exposed_s + summary.device->copy_wait_s : summary.headroom.draw_s;
    if (const auto gain = ratio(all_s, all_s - data_s))
        summary.headroom.throughput_gain_if_draw_were_zero = *gain - 1;
}

/// How long draws took, from the durations in the order of steps.
Summary::Draws draws_of(std::string_view phase, const std::vector<double>& ns) {
    Summary::Draws draws{.phase = phase, .over_run_s = {}, .counts = {}};
    const std::size_t parts = std::min<std::size_t>(ns.size(), 40);
    for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t from = i * ns.size() / parts, to = (i + 1) * ns.size() / parts;
        draws.over_run_s.push_back(statistics::mean(std::span{ns}.subspan(from, to - from)) / 1e9);
    }
    const auto bin_of = [](double duration) {
        const double bin = std::floor(std::log10(std::max(duration, 1.0)) * Summary::Draws::bins_a_decade);
        return std::max(static_cast<int>(bin), Summary::Draws::shortest_bin);
    };
    const auto [shortest, longest] = std::ranges::minmax(ns);
    draws.first_bin = bin_of(shortest);
    draws.counts.resize(static_cast<std::size_t>(bin_of(longest) - draws.first_bin) + 1);
    for (const double duration : ns)
        ++draws.counts[static_cast<std::size_t>(bin_of(duration) - draws.first_bin)];
    return draws;
}

/// Before `add_rows`, which sorts the durations.
void add_draws(Summary& summary, const std::array<PhaseColumns, 2>& columns) {
    for (const Phase phase : {Phase::train, Phase::valid}) {
        const auto& draws =
            columns[static_cast<std::size_t>(phase)].durations[static_cast<std::size_t>(Action::draw)].ns;
        if (!draws.empty() && !summary.draws)
            summary.draws = draws_of(name_of(phase), draws);
    }
}

void add_rows(Summary& summary, const Ledger& ledger, std::array<PhaseColumns, 2>& columns) {
    const auto add = [&](std::string_view phase, Action action, Durations& durations, std::optional<double> rate) {
        if (durations.calls() == 0)
            return;
        SummaryRow& row = summary.rows.emplace_back(SummaryRow{.phase = phase, .action = action});
        durations.describe(row);
        row.share_of_total = ratio(row.total_s, summary.run.wall_s);
        row.samples_per_s = rate;
    };
    std::array<Durations, 4> passes;
    Durations around;
    for (const PassRow& pass : ledger.passes) {
        passes[static_cast<std::size_t>(pass.kind)].add(pass.end_ns - pass.begin_ns);
        std::int64_t own_ns = 0;
        for (const SpanRow& piece : ledger.spans_of(pass))
            own_ns += piece.ns;
        around.add(own_ns);
    }
    const auto pass_rate = [&](Phase phase) { return columns[static_cast<std::size_t>(phase)].pass_rates.mean(); };
    add("fit", Action::fit, passes[static_cast<std::size_t>(PassKind::fit)], {});
    add("fit", Action::epoch, passes[static_cast<std::size_t>(PassKind::epoch)], {});
    add("fit", Action::train, passes[static_cast<std::size_t>(PassKind::train)], pass_rate(Phase::train));
    add("fit", Action::valid, passes[static_cast<std::size_t>(PassKind::valid)], pass_rate(Phase::valid));
    add("fit", Action::between, around, {});
    for (const Phase phase : {Phase::train, Phase::valid}) {
        PhaseColumns& of = columns[static_cast<std::size_t>(phase)];
        for (std::size_t i = static_cast<std::size_t>(Action::step); i < action_count; ++i) {
            const auto action = static_cast<Action>(i);
            add(name_of(phase), action, of.durations[i], has_rate(action) ? of.rates[i].mean() : std::nullopt);
        }
    }
}

}   // namespace

Summary summarize(const Ledger& ledger, SummaryOptions options) {
    Summary summary;
    summary.run.wall_s = seconds(wall_ns(ledger));
    std::array<PhaseColumns, 2> columns;
    add_device(summary, ledger);
    add_steps(summary, ledger, options.drop_first_batch, columns);
    add_draws(summary, columns);
    add_rows(summary, ledger, columns);
    add_loader(summary, ledger);
    add_facts(summary, ledger);
    return summary;
}

}   // namespace drawpoint
