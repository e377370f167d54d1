#include "baselines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "diagnosis/verdict/interventions.hpp"

namespace drawpoint::bench {
namespace {

constexpr std::size_t most_workers = 64, deepest = 16;

Verdict verdict_of_stage(std::string_view name) {
    if (name.find("decode") != std::string_view::npos)
        return Verdict::decode;
    return name == "read" ? Verdict::read_latency : Verdict::transform;
}

LoaderSetting with_workers_up_to(LoaderSetting setting, std::size_t workers) {
    setting.num_workers = std::clamp<std::size_t>(workers, 1, most_workers);
    return setting;
}

double workers_of(const RunFigures& run) noexcept {
    return static_cast<double>(std::max<std::size_t>(1, run.setting.num_workers));
}
double batch_of(const RunFigures& run) noexcept { return static_cast<double>(run.setting.batch_size); }
double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// The stage that takes longest; of a batch, by all workers together.
std::pair<Verdict, double> largest_stage(const RunFigures& run) {
    std::pair<Verdict, double> largest{Verdict::compute_bound, 0};
    const auto offer = [&](Verdict verdict, double us) {
        if (us > largest.second)
            largest = {verdict, us};
    };
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
        offer(verdict_of_stage(run.stages[stage]), run.stage_us[stage] * batch_of(run) / workers_of(run));
    const auto readers = static_cast<double>(std::max<std::size_t>(1, run.setting.read_concurrency));
    offer(Verdict::read_latency, run.read_us * batch_of(run) / readers);
    offer(Verdict::collate, run.collate_us / workers_of(run));
    offer(Verdict::copy, run.transfer_us);
    return largest;
}

RuleAnswer blame_largest(const RunFigures& run) {
    const auto [verdict, us] = largest_stage(run);
    return {us > run.compute_us ? verdict : Verdict::compute_bound, std::nullopt};
}

/// Walks the queues from source to sink: the bottleneck lies between a full queue and an empty one. Here the queues
/// hold contents read ahead and finished batches.
RuleAnswer walk_occupancy(const RunFigures& run) {
    if (run.empty_share < 0.1)
        return {Verdict::compute_bound, std::nullopt};
    if (run.read_us > 0 && run.reads_ready_share < 0.5)
        return {Verdict::read_latency, std::nullopt};
    std::pair<Verdict, double> slowest{Verdict::collate, run.collate_us / batch_of(run)};
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
        if (run.stage_us[stage] > slowest.second)
            slowest = {verdict_of_stage(run.stages[stage]), run.stage_us[stage]};
    return {slowest.first, with_workers_up_to(run.setting, run.setting.num_workers + 1)};
}

RuleAnswer five_percent(const RunFigures& run) {
    if (run.draw_share() < 0.05)
        return {Verdict::compute_bound, std::nullopt};
    return {Verdict::workers, with_workers_up_to(run.setting, 2 * run.setting.num_workers)};
}

/// Moderately from 5 %, highly from 20 % on; either way the larger of reading and preprocessing is named.
RuleAnswer five_and_twenty_percent(const RunFigures& run) {
    if (run.draw_share() < 0.05)
        return {Verdict::compute_bound, std::nullopt};
    if (run.draw_share() < 0.2)
        return {Verdict::balanced, with_workers_up_to(run.setting, run.setting.num_workers + 1)};
    double reading = run.read_us, preprocessing = 0;
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
        (run.stages[stage] == "read" ? reading : preprocessing) += run.stage_us[stage];
    if (reading > preprocessing)
        return {Verdict::read_latency, with_workers_up_to(run.setting, 2 * run.setting.num_workers)};
    return {largest_stage(run).first, with_workers_up_to(run.setting, 2 * run.setting.num_workers)};
}

/// Warns from 10 %, is critical from 20 % of the step on.
RuleAnswer ten_and_twenty_percent(const RunFigures& run) {
    const double step_us = run.draw_us + run.compute_us;
    if (run.transfer_us >= 0.1 * step_us && 2 * run.transfer_us >= run.draw_us)
        return {Verdict::copy, std::nullopt};
    if (run.draw_share() < 0.1)
        return {Verdict::compute_bound, std::nullopt};
    if (run.draw_share() < 0.2)
        return {Verdict::workers, with_workers_up_to(run.setting, run.setting.num_workers + 1)};
    return {Verdict::workers, with_workers_up_to(run.setting, 2 * run.setting.num_workers)};
}

/// The time a draw waits, as tf.data's model has it.
double modelled_draw_us(const RunFigures& run, std::size_t workers, std::size_t depth) {
    const double made_us =
        (sum(run.stage_us) + run.read_us) * batch_of(run) / static_cast<double>(workers) + run.collate_us;
    return share_empty(made_us, run.compute_us, depth) * made_us;
}

/// From the smallest setting up, each time by what the model says helps most, until the processor is spent.
RuleAnswer climb_hill(const RunFigures& run) {
    LoaderSetting setting = run.setting;
    setting.num_workers = setting.prefetch_depth = 1;
    const double processing_us = sum(run.stage_us) * batch_of(run) + run.collate_us;
    const auto cores = static_cast<std::size_t>(std::max(1.0, std::floor(run.cores)));
    for (;;) {
        const double now_us = modelled_draw_us(run, setting.num_workers, setting.prefetch_depth);
        if (now_us < processing_us / run.cores)
            break;
        const double by_worker = setting.num_workers < cores
                                     ? now_us - modelled_draw_us(run, setting.num_workers + 1, setting.prefetch_depth)
                                     : 0;
        const double by_depth = setting.prefetch_depth < deepest
                                    ? now_us - modelled_draw_us(run, setting.num_workers, setting.prefetch_depth + 1)
                                    : 0;
        if (std::max(by_worker, by_depth) <= 1e-3)   // a nanosecond
            break;
        ++(by_worker >= by_depth ? setting.num_workers : setting.prefetch_depth);
    }
    if (modelled_draw_us(run, run.setting.num_workers, run.setting.prefetch_depth) < 0.03 * run.compute_us)
        return {Verdict::compute_bound, setting};
    if (setting.num_workers > run.setting.num_workers)
        return {Verdict::workers, setting};
    if (setting.prefetch_depth > run.setting.prefetch_depth)
        return {Verdict::prefetch_depth, setting};
    return {largest_stage(run).first, setting};
}

/// Cores are given to stages in proportion to their CPU time, which bounds the rate; what takes most is the bottleneck.
RuleAnswer share_cores(const RunFigures& run) {
    const double cpu_us = sum(run.stage_cpu_us) * batch_of(run) + run.collate_us;
    const double bound_us = cpu_us / run.cores;   // a batch, however many workers
    const auto needed = static_cast<std::size_t>(std::ceil(cpu_us / std::max({run.compute_us, bound_us, 1e-3})));
    if (bound_us < run.compute_us) {
        if (run.draw_share() < 0.05)
            return {Verdict::compute_bound, std::nullopt};
        return {Verdict::workers,
                with_workers_up_to(run.setting, std::max(needed, static_cast<std::size_t>(run.cores)))};
    }
    std::pair<Verdict, double> most{Verdict::collate, run.collate_us};
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
        if (run.stage_cpu_us[stage] * batch_of(run) > most.second)
            most = {verdict_of_stage(run.stages[stage]), run.stage_cpu_us[stage] * batch_of(run)};
    return {most.first, with_workers_up_to(run.setting, needed)};
}

RuleAnswer workers_are_cores(const RunFigures& run) {
    LoaderSetting setting = with_workers_up_to(run.setting, static_cast<std::size_t>(std::max(1.0, run.cores)));
    setting.prefetch_depth = 2;
    if (setting.num_workers != run.setting.num_workers)
        return {setting.num_workers > run.setting.num_workers ? Verdict::workers : Verdict::oversubscription, setting};
    return {setting.prefetch_depth > run.setting.prefetch_depth ? Verdict::prefetch_depth : Verdict::balanced, setting};
}

/// The change that shortens the longest of the four most, as `diagnose` changes one thing at a time.
RuleAnswer one_line(const RunFigures& run) {
    const double now_us = one_line_step_us(run);
    RuleAnswer best{run.compute_us + run.transfer_us >= 0.97 * now_us ? Verdict::compute_bound : Verdict::balanced,
                    std::nullopt};
    double least_us = now_us / 1.03;
    const auto offer = [&](Verdict verdict, const RunFigures& other, std::optional<LoaderSetting> advice = {}) {
        if (const double us = one_line_step_us(other, advice.value_or(run.setting)); us < least_us) {
            least_us = us;
            best = {verdict, advice};
        }
    };
    offer(Verdict::workers, run, with_workers_up_to(run.setting, 2 * run.setting.num_workers));
    if (run.read_us > 0)
        if (const auto more = moved(Lever::more_reads, run.setting))
            offer(Verdict::read_latency, run, more);
    RunFigures other = run;
    other.compute_us /= 2;
    other.cpu_us -= std::max(0.0, run.cpu_us - sum(run.stage_cpu_us) * batch_of(run) - run.collate_us) / 2;
    offer(Verdict::compute_bound, other);
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
        other = run;
        other.stage_us[stage] /= 2;
        other.cpu_us -= run.stage_cpu_us[stage] * batch_of(run) / 2;
        offer(verdict_of_stage(run.stages[stage]), other);
    }
    other = run;
    other.read_us /= 2;
    offer(Verdict::read_latency, other);
    other = run;   // whatever waits, waits half as long
    other.read_us /= 2;
    std::pair<Verdict, double> longest{Verdict::read_latency, run.read_us};
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
        const double wait_us = std::max(0.0, run.stage_us[stage] - run.stage_cpu_us[stage]);
        other.stage_us[stage] -= wait_us / 2;
        if (wait_us > longest.second)
            longest = {verdict_of_stage(run.stages[stage]), wait_us};
    }
    offer(longest.first, other);
    other = run;
    other.collate_us /= 2;
    other.cpu_us -= run.collate_us / 2;
    offer(Verdict::collate, other);
    other = run;
    other.transfer_us /= 2;
    offer(Verdict::copy, other);
    return best;
}

constexpr std::array<Rule, 9> all_rules{{{"one line: the longest of four", one_line},
                                         {"largest stage", blame_largest},
                                         {"occupancy walk (SPDL)", walk_occupancy},
                                         {"5 % (PyTorch)", five_percent},
                                         {"5 / 20 % (TensorFlow)", five_and_twenty_percent},
                                         {"10 / 20 % (TraceML)", ten_and_twenty_percent},
                                         {"M/M/1/K, hill climb (tf.data)", climb_hill},
                                         {"linear programme (Plumber)", share_cores},
                                         {"workers = cores, depth 2", workers_are_cores}}};

}   // namespace

std::span<const Rule> rules() noexcept { return all_rules; }

double one_line_step_us(const RunFigures& run, const LoaderSetting& setting) noexcept {
    const double loader_us = sum(run.stage_us) * batch_of(run) + run.collate_us;
    const auto workers = static_cast<double>(std::max<std::size_t>(1, setting.num_workers));
    const auto readers = static_cast<double>(std::max<std::size_t>(1, setting.read_concurrency));
    return std::max({run.compute_us + run.transfer_us, loader_us / workers, run.cpu_us / run.cores,
                     run.read_us * batch_of(run) / readers, 1e-3});
}

double one_line_step_us(const RunFigures& run) noexcept { return one_line_step_us(run, run.setting); }

double share_empty(double producer_us, double consumer_us, std::size_t depth) noexcept {
    const auto n = static_cast<double>(depth);
    if (producer_us <= 0)
        return 0;
    if (consumer_us <= 0)
        return 1;
    if (std::abs(producer_us - consumer_us) < 1e-9 * producer_us)
        return 1 / (n + 1);
    if (producer_us > consumer_us) {
        const double rho = consumer_us / producer_us;
        return (1 - rho) / (1 - std::pow(rho, n + 1));
    }
    const double rho = producer_us / consumer_us;
    return std::pow(rho, n) * (1 - rho) / (1 - std::pow(rho, n + 1));
}

RunFigures figures_of(const Ledger& ledger, std::size_t first_step, double cores) {
    RunFigures run;
    run.cores = cores;
    if (ledger.pipelines.empty())
        return run;
    const PipelineRow& pipeline = ledger.pipelines.front();
    run.setting = setting_of(pipeline);
    run.stages = pipeline.stages;
    run.stage_us.resize(run.stages.size());
    run.stage_cpu_us.resize(run.stages.size());

    double steps = 0, empty = 0;
    for (std::size_t i = first_step; i < ledger.steps.size(); ++i) {
        const StepRow& row = ledger.steps[i];
        if (row.phase != Phase::train || row.status != StepStatus::complete)
            continue;
        ++steps;
        run.draw_us += static_cast<double>(row.draw_ns) * 1e-3;
        run.compute_us += static_cast<double>(row.batch_ns) * 1e-3;
        for (std::uint32_t at = row.spans.first; at < row.spans.first + row.spans.count; ++at) {
            const SpanRow& piece = ledger.spans[at];
            if (piece.span == Span::transfer)
                run.transfer_us += static_cast<double>(piece.ns) * 1e-3;
            else if (piece.span == Span::starved)
                empty += piece.ns > 0 ? 1 : 0;
            else if (piece.span == Span::between)
                run.compute_us += static_cast<double>(piece.ns) * 1e-3;
        }
    }
    for (double* const value : {&run.draw_us, &run.compute_us, &run.transfer_us})
        *value /= std::max(1.0, steps);
    run.empty_share = empty / std::max(1.0, steps);

    const std::int64_t from_ns = first_step < ledger.steps.size() ? ledger.steps[first_step].draw_begin_ns : 0;
    const auto first = std::ranges::find_if(ledger.host, [&](const HostRow& row) { return row.at_ns >= from_ns; });
    if (steps > 0 && first != ledger.host.end() && first->own_cpu_ns != no_stamp &&
        ledger.host.back().own_cpu_ns != no_stamp && ledger.host.back().at_ns > first->at_ns) {
        const auto cpu = static_cast<double>(ledger.host.back().own_cpu_ns - first->own_cpu_ns);
        const auto wall = static_cast<double>(ledger.host.back().at_ns - first->at_ns);
        run.cpu_us = cpu / wall * (run.draw_us + run.compute_us);
    }
    double collated = 0;
    for (const BatchRow& row : ledger.batches)
        if (row.collate_begin_ns != no_stamp && row.collate_end_ns != no_stamp && row.collate_begin_ns >= from_ns) {
            run.collate_us += static_cast<double>(row.collate_end_ns - row.collate_begin_ns) * 1e-3;
            ++collated;
        }
    run.collate_us /= std::max(1.0, collated);

    double samples = 0, reads = 0, ready = 0;
    std::vector<double> measured(run.stages.size()), wall_of_measured(run.stages.size());
    for (const SampleRow& row : ledger.samples) {
        if (row.begin_ns < from_ns || row.status != SampleStatus::complete || row.stages.count > run.stages.size())
            continue;
        samples += row.samples;
        for (std::uint32_t stage = 0; stage < row.stages.count; ++stage) {
            const StageRow& of = ledger.stages[row.stages.first + stage];
            run.stage_us[stage] += static_cast<double>(of.ns) * 1e-3;
            if (of.cpu_ns != no_stamp) {
                measured[stage] += static_cast<double>(of.cpu_ns);
                wall_of_measured[stage] += static_cast<double>(of.ns);
            }
        }
        if (row.read_begin_ns != no_stamp && row.read_end_ns != no_stamp) {
            ++reads;
            run.read_us += static_cast<double>(row.read_end_ns - row.read_begin_ns) * 1e-3;
            ready += row.read_end_ns <= row.begin_ns ? 1 : 0;
        }
    }
    run.read_us /= std::max(1.0, reads);
    run.reads_ready_share = reads > 0 ? ready / reads : 1;
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
        run.stage_us[stage] /= std::max(1.0, samples);
        run.stage_cpu_us[stage] = run.stage_us[stage];
        if (wall_of_measured[stage] > 0)
            run.stage_cpu_us[stage] *= std::min(1.0, measured[stage] / wall_of_measured[stage]);
    }
    return run;
}

}   // namespace drawpoint::bench
