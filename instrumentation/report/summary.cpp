#include <drawpoint/instrumentation/report/summary.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <functional>
#include <map>
#include <utility>

#include <drawpoint/instrumentation/ledger.hpp>
#include <drawpoint/instrumentation/report/facts.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include <instrumentation/folding.hpp>
#include <instrumentation/order_loss.hpp>
#include <instrumentation/wrapping.hpp>

namespace drawpoint {
namespace {

double seconds(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e9; }

std::optional<double> ratio(double part, double whole) noexcept {
    return whole > 0 ? std::optional{part / whole} : std::nullopt;
}

/// Durations of one thing. Their sum is exact; the rest is computed from doubles that hold the nanoseconds exactly.
struct Durations {
    std::vector<double> ns;
    std::int64_t total_ns = 0;
    std::vector<Share> runs;   // of samples made together
    std::uint64_t in_runs = 0;
    DurationHistogram folded;   // those that the ledger does not keep one by one

    [[nodiscard]] std::size_t calls() const noexcept { return ns.size() + in_runs + folded.calls(); }
    void add(std::int64_t duration_ns) {
        ns.push_back(static_cast<double>(duration_ns));
        total_ns += duration_ns;
    }
    void add(std::int64_t duration_ns, std::uint32_t samples) {
        if (samples == 1)
            return add(duration_ns);
        for (const Share& share : shares_of(duration_ns, samples))
            if (share.calls > 0) {
                runs.push_back(share);
                in_runs += share.calls;
            }
        total_ns += duration_ns;
    }

    /// As `statistics::quantile_of_sorted` of all, one by one. Sorted.
    [[nodiscard]] double quantile(double q) const {
        if (runs.empty())
            return statistics::quantile_of_sorted(ns, q);
        const double place = static_cast<double>(in_runs - 1) * q;
        const auto below = static_cast<std::uint64_t>(place);
        const auto ranked = [this](std::uint64_t rank) {
            auto at = runs.begin();
            for (; rank >= at->calls; ++at)
                rank -= at->calls;
            return static_cast<double>(at->ns);
        };
        const double low = ranked(below), high = ranked(std::min(below + 1, in_runs - 1));
        return low + (high - low) * (place - std::floor(place));
    }

    /// Fills what rows of every kind have in common. Sorts.
    template <class Row>
    void describe(Row& row) {
        row.calls = calls();
        total_ns += folded.total_ns();
        row.total_s = seconds(total_ns);
        if (row.calls == 0)
            return;
        row.mean_s = static_cast<double>(total_ns) / static_cast<double>(row.calls) / 1e9;
        if (folded.calls() > 0) {
            for (const double duration : ns)
                folded.add(static_cast<std::int64_t>(duration));
            for (const Share& share : runs)
                folded.add(share.ns, share.calls);
            if constexpr (requires { row.std_s; })
                row.std_s = folded.std_dev_ns() / 1e9;
            row.median_s = folded.quantile_ns(0.5) / 1e9;
            row.p90_s = folded.quantile_ns(0.9) / 1e9;
            row.p99_s = folded.quantile_ns(0.99) / 1e9;
            return;
        }
        if constexpr (requires { row.std_s; })
            row.std_s = statistics::population_std_dev(ns) / 1e9;
        if (runs.empty()) {
            std::ranges::sort(ns);
        } else {
            for (const double duration : ns)
                runs.push_back({static_cast<std::int64_t>(duration), 1});
            in_runs += ns.size();
            ns.clear();
            std::ranges::sort(runs, {}, &Share::ns);
        }
        row.median_s = quantile(0.5) / 1e9;
        row.p90_s = quantile(0.9) / 1e9;
        row.p99_s = quantile(0.99) / 1e9;
    }
};

/// Samples per second of each batch.
struct Rates {
    std::vector<double> kept;
    double folded = 0;   // sum of those that the ledger does not keep one by one
    std::size_t folded_count = 0;

    [[nodiscard]] std::optional<double> mean() const {
        const double mean = folded_count == 0
                                ? statistics::mean(kept)
                                : (statistics::sum(kept) + folded) / static_cast<double>(kept.size() + folded_count);
        return std::isfinite(mean) ? std::optional{mean} : std::nullopt;
    }
};

/// The counted steps of one phase, a column an action.
struct PhaseColumns {
    std::array<Durations, action_count> durations;
    std::array<Rates, action_count> rates;
    Rates pass_rates;   // of the steps, none dropped

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

std::optional<std::string> text_of(const Ledger& ledger, std::string_view key) {
    const auto value = ledger.fact(key);
    return value ? std::optional<std::string>{*value} : std::nullopt;
}

template <class Number>
std::optional<Number> number_of(const Ledger& ledger, std::string_view key) {
    const auto text = ledger.fact(key);
    Number value{};
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
        return std::nullopt;
    return value;
}

std::optional<Summary::Reading> reading_of(const Ledger& ledger) {
    const std::int64_t retries = number_of<std::int64_t>(ledger, facts::read_retries).value_or(0);
    std::uint64_t samples = 0, ahead = 0;
    std::int64_t total_ns = 0, from_ns = std::numeric_limits<std::int64_t>::max(), to_ns = 0;
    for (const SampleRow& sample : ledger.samples) {
        samples += sample.samples;
        if (sample.read_end_ns == no_stamp)
            continue;
        ++ahead;
        total_ns += sample.read_end_ns - sample.read_begin_ns;
        from_ns = std::min(from_ns, sample.read_begin_ns);
        to_ns = std::max(to_ns, sample.read_end_ns);
    }
    if (ahead == 0 && retries == 0)
        return std::nullopt;
    Summary::Reading reading{.ahead_share = ratio(static_cast<double>(ahead), static_cast<double>(samples)),
                             .mean_s = 0,
                             .mean_in_flight = std::nullopt,
                             .retries = retries};
    if (ahead != 0) {
        reading.mean_s = static_cast<double>(total_ns) / static_cast<double>(ahead) / 1e9;
        reading.mean_in_flight = ratio(static_cast<double>(total_ns), static_cast<double>(to_ns - from_ns));
    }
    return reading;
}

/// name and value of every fact whose key begins with `prefix`.
std::vector<Fact> facts_under(const Ledger& ledger, std::string_view prefix) {
    std::vector<Fact> found;
    for (const auto& [key, value] : ledger.facts)
        if (key.starts_with(prefix))
            found.emplace_back(key.substr(prefix.size()), value);
    return found;
}

std::int64_t wall_ns(const Ledger& ledger) {
    std::int64_t sum = 0, covered_ns = no_stamp;
    for (const PassRow& pass : ledger.passes)
        if (pass.begin_ns >= covered_ns) {   // not inside the one before
            sum += pass.end_ns - pass.begin_ns;
            covered_ns = pass.end_ns;
        }
    if (ledger.passes.empty() && !ledger.steps.empty()) {
        const StepRow& last = ledger.steps.back();
        sum = last.draw_begin_ns + last.draw_ns + last.batch_ns - ledger.steps.front().draw_begin_ns;
    }
    return sum;
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
    summary.conservation.other_share_of_batch = ratio(seconds(other_ns), seconds(batches_ns));
    summary.headroom.draw_s = seconds(draws_ns);
    summary.headroom.draw_share = ratio(summary.headroom.draw_s, summary.run.wall_s);
    if (const auto gain = ratio(summary.run.wall_s, summary.run.wall_s - summary.headroom.draw_s))
        summary.headroom.throughput_gain_if_draw_were_zero = *gain - 1;
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

void add_stages(Summary& summary, const Ledger& ledger) {
    struct Column {
        std::string_view name;
        Durations durations;
        std::optional<std::int64_t> cpu_ns, run_queue_ns;
        std::uint64_t bytes = 0, failures = 0;
        bool cpu_everywhere = true;   // measured in every sample
    };
    std::vector<Column> columns;
    std::vector<std::vector<std::size_t>> column_of;   // by pipeline, by stage
    const auto column_named = [&](std::string_view name) {
        const auto at = static_cast<std::size_t>(std::ranges::find(columns, name, &Column::name) - columns.begin());
        if (at == columns.size())
            columns.push_back({.name = name});
        return at;
    };
    for (const PipelineRow& pipeline : ledger.pipelines) {
        auto& of = column_of.emplace_back();
        for (const std::string& stage : pipeline.stages)
            of.push_back(column_named(stage));
    }
    for (const SampleRow& sample : ledger.samples) {
        if (sample.pipeline >= column_of.size())
            continue;
        const auto& of = column_of[sample.pipeline];
        const auto stages = ledger.stages_of(sample);
        for (std::size_t i = 0; i < std::min(stages.size(), of.size()); ++i)
            columns[of[i]].durations.add(stages[i].ns, sample.samples);
        if (of.empty())
            continue;
        Column& first = columns[of.front()];
        first.bytes += sample.bytes;
        first.cpu_everywhere &= of.size() == 1 && sample.cpu_ns && sample.run_queue_ns;
        first.cpu_ns = first.cpu_ns.value_or(0) + sample.cpu_ns.value_or(0);
        first.run_queue_ns = first.run_queue_ns.value_or(0) + sample.run_queue_ns.value_or(0);
    }
    for (const BatchRow& batch : ledger.batches)
        if (batch.collate_begin_ns != no_stamp && batch.collate_end_ns != no_stamp)
            columns[column_named("collate")].durations.add(
                static_cast<std::int64_t>(wrapping_difference(batch.collate_end_ns, batch.collate_begin_ns)));
    for (const FoldedStage& folded : ledger.folded.stages) {
        if (folded.stage == FoldedStage::collate) {
            columns[column_named("collate")].durations.folded.add(folded.durations);
            continue;
        }
        if (folded.pipeline >= column_of.size() || folded.stage >= column_of[folded.pipeline].size())
            continue;
        const auto& of = column_of[folded.pipeline];
        Column& column = columns[of[folded.stage]];
        column.durations.folded.add(folded.durations);
        if (folded.stage > 0)
            continue;
        column.bytes += folded.bytes;
        column.cpu_everywhere &= of.size() == 1 && folded.cpu_everywhere;
        column.cpu_ns = column.cpu_ns.value_or(0) + folded.cpu_ns;
        column.run_queue_ns = column.run_queue_ns.value_or(0) + folded.run_queue_ns;
    }
    for (const FailureRow& failure : ledger.failures)
        if (const auto found = std::ranges::find(columns, failure.stage, &Column::name); found != columns.end())
            ++found->failures;
    for (Column& column : columns) {
        StageSummary& stage = summary.stages.emplace_back(StageSummary{.stage = std::string{column.name}});
        column.durations.describe(stage);
        if (column.cpu_everywhere && column.cpu_ns) {
            stage.cpu_s = seconds(*column.cpu_ns);
            stage.run_queue_s = seconds(*column.run_queue_ns);
        }
        stage.bytes = column.bytes;
        stage.failures = column.failures;
    }
}

void add_workers(Summary& summary, const Ledger& ledger) {
    struct Load {
        std::int64_t busy_ns = 0;
        std::uint64_t samples = 0;
    };
    std::map<std::uint16_t, Load> loads;
    std::uint64_t recorded = 0;
    for (const FoldedWorker& folded : ledger.folded.workers) {
        loads[folded.worker] = {folded.busy_ns, folded.samples};
        recorded += folded.samples;
    }
    for (const SampleRow& sample : ledger.samples) {
        Load& load = loads[sample.worker];
        load.samples += sample.samples;
        recorded += sample.samples;
        if (const auto stages = ledger.stages_of(sample); !stages.empty())
            load.busy_ns += stages.back().begin_ns + stages.back().ns - sample.begin_ns;
    }
    // Samples that were made and have no record: of thinned batches, or lost from a full ring.
    double made = static_cast<double>(recorded);
    const bool lost = std::ranges::any_of(
        ledger.dropped, [](const DroppedRow& row) { return row.ring != 0 && row.ring < first_operator_ring; });
    if (ledger.thinned_to() > 1 || lost) {
        std::uint64_t in_batches = ledger.folded.batch_samples;
        for (const BatchRow& batch : ledger.batches)
            in_batches += batch.size;
        made = std::max(made, static_cast<double>(in_batches));
    }
    const double scale = made / static_cast<double>(std::max<std::uint64_t>(recorded, 1));
    for (const auto& [worker, load] : loads)
        summary.workers.push_back({.worker = worker,
                                   .busy_share = ratio(seconds(load.busy_ns) * scale, summary.run.wall_s).value_or(0),
                                   .samples = load.samples});
}

void add_queue(Summary& summary, const Ledger& ledger) {
    struct Change {
        std::int64_t at_ns;
        int ready, inside;
    };
    std::vector<Change> changes;
    const bool trains = std::ranges::any_of(ledger.passes, [](const PassRow& p) { return p.kind == PassKind::train; });
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == (trains ? PassKind::train : PassKind::valid) && pass.end_ns > ledger.folded.until_ns) {
            changes.push_back({std::max(pass.begin_ns, ledger.folded.until_ns), 0, 1});
            changes.push_back({pass.end_ns, 0, -1});
        }
    for (const BatchRow& batch : ledger.batches)
        if (batch.pipeline == 0 && batch.offered_ns != no_stamp && batch.taken_ns != no_stamp) {
            changes.push_back({batch.offered_ns, 1, 0});
            changes.push_back({batch.taken_ns, -1, 0});
        }
    std::ranges::sort(changes, std::less{}, &Change::at_ns);
    std::int64_t ready = 0, inside = 0, last_ns = 0;
    double ready_ns = 0, empty_ns = 0, all_ns = 0;
    for (const Change& change : changes) {
        if (inside > 0) {
            const auto passed_ns = static_cast<double>(change.at_ns - last_ns);
            all_ns += passed_ns;
            ready_ns += passed_ns * static_cast<double>(ready);
            empty_ns += ready == 0 ? passed_ns : 0;
        }
        ready += change.ready;
        inside += change.inside;
        last_ns = change.at_ns;
    }
    if (all_ns > 0 && std::ranges::any_of(ledger.batches, [](const BatchRow& b) { return b.pipeline == 0; }))
        summary.queue = {
            .mean_ready = ready_ns / all_ns, .occupancy = 1 - empty_ns / all_ns, .empty_share = empty_ns / all_ns};
}

void add_facts(Summary& summary, const Ledger& ledger) {
    Summary::Run& run = summary.run;
    run.stopped = text_of(ledger, facts::stopped);
    run.digest = text_of(ledger, facts::digest);
    run.version = text_of(ledger, facts::version);
    run.clock = text_of(ledger, facts::clock);
    run.options = facts_under(ledger, facts::option_prefix);
    if (const auto order = ledger.fact(std::string{facts::option_prefix} + "order"))
        run.order = *order;
    else if (!ledger.pipelines.empty())
        if (const std::uint32_t most = ledger.pipelines.front().max_overtakes; most != 0)
            run.order = most == any_order ? "out" : std::to_string(most);
    if (!ledger.pipelines.empty()) {
        const PipelineRow& pipeline = ledger.pipelines.front();
        run.batch_size = pipeline.batch_size;
        run.num_workers = pipeline.num_workers;
        run.prefetch_depth = pipeline.prefetch_depth;
    }
    for (const PassRow& pass : ledger.passes) {
        run.epochs += pass.kind == PassKind::epoch ? 1 : 0;
        run.ended &= pass.ended;
    }

    Summary::Memory& memory = summary.memory;
    summary.reading = reading_of(ledger);
    if (const auto hits = number_of<std::int64_t>(ledger, facts::cache_hits))
        summary.cache =
            Summary::Cache{.hits = *hits,
                           .misses = number_of<std::int64_t>(ledger, facts::cache_misses).value_or(0),
                           .samples = number_of<std::int64_t>(ledger, facts::cache_samples).value_or(0),
                           .bytes = number_of<std::int64_t>(ledger, facts::cache_bytes).value_or(0),
                           .budget_bytes = number_of<std::int64_t>(ledger, facts::cache_budget_bytes).value_or(0),
                           .origin = text_of(ledger, facts::cache_origin).value_or("")};
    memory.planned_bytes = number_of<std::int64_t>(ledger, facts::planned_bytes);
    memory.loader_peak_bytes = number_of<std::int64_t>(ledger, facts::loader_peak_bytes);
    memory.slots_bytes = number_of<std::int64_t>(ledger, facts::slots_bytes);
    memory.peak_bytes = number_of<std::int64_t>(ledger, facts::peak_bytes);
    memory.slots_replaced = number_of<std::int64_t>(ledger, facts::slots_replaced);
    memory.allocations_per_batch = number_of<double>(ledger, facts::allocations_per_batch);
    memory.minor_faults_per_batch = number_of<double>(ledger, facts::minor_faults_per_batch);

    Summary::Recording& recording = summary.recording;
    recording.events = number_of<std::int64_t>(ledger, facts::recording_events);
    recording.ns_per_event = number_of<double>(ledger, facts::ns_per_event);
    recording.share_of_cpu = number_of<double>(ledger, facts::share_of_cpu);
    recording.dropped = ledger.dropped_records();
    recording.thinned_to = ledger.thinned_to();
    if (ledger.folded.steps > 0)
        recording.percentile_error_share = DurationHistogram::quantile_error_share;

    summary.model.accuracy = number_of<double>(ledger, facts::accuracy);
    summary.machine = {.cpu = text_of(ledger, facts::machine_cpu).value_or(""),
                       .kernel = text_of(ledger, facts::machine_kernel).value_or(""),
                       .compiler = text_of(ledger, facts::machine_compiler).value_or(""),
                       .cores_usable = number_of<std::int64_t>(ledger, facts::machine_cores),
                       .libraries = facts_under(ledger, facts::machine_library_prefix)};
    for (const FailureRow& failure : ledger.failures)
        summary.errors.push_back({failure.index, failure.path, failure.stage, failure.message});
}

}   // namespace

Summary summarize(const Ledger& ledger, SummaryOptions options) {
    Summary summary;
    summary.run.wall_s = seconds(wall_ns(ledger));
    std::array<PhaseColumns, 2> columns;
    add_steps(summary, ledger, options.drop_first_batch, columns);
    add_rows(summary, ledger, columns);
    add_stages(summary, ledger);
    add_workers(summary, ledger);
    add_queue(summary, ledger);
    add_facts(summary, ledger);
    return summary;
}

}   // namespace drawpoint
