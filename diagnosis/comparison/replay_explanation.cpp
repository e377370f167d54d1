#include <drawpoint/diagnosis/comparison/replay_explanation.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnosis/comparison/signed_duration.hpp"
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {

namespace {

constexpr double least_change = 0.02;
constexpr std::size_t most_samples = 20'000;   // replayed for each change …
constexpr std::size_t fewest_steps = 50;       // … but at least so many steps
constexpr std::size_t warm_up_steps = 64;      // in which the prefetched batches come to what they will be

/// The mean of what `ns` gives for each row.
template <class Rows, class F>
double mean_of(const Rows& rows, F&& ns) {
    double sum = 0;
    for (const auto& row : rows)
        sum += static_cast<double>(ns(row));
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

/// A demand of both runs, and the factor of `Change` that scales it.
struct Scalable {
    std::string name;
    double a_ns = 0, b_ns = 0;
    double* factor = nullptr;
};

std::vector<Scalable> scalables(const RecordedRun& a, const RecordedRun& b, Change& change) {
    std::vector<Scalable> all;
    const auto add = [&](std::string name, double* factor, auto&& mean) {
        all.push_back({.name = std::move(name), .a_ns = mean(a), .b_ns = mean(b), .factor = factor});
    };
    for (std::size_t stage = 0; stage < a.stages.size(); ++stage)
        add(a.stages[stage], &change.stages[stage], [stage](const RecordedRun& run) {
            return mean_of(run.samples, [stage](const SampleDemand& sample) { return sample.stages[stage].ns(); });
        });
    add("read", &change.read, [](const RecordedRun& run) {
        return mean_of(run.samples, [](const SampleDemand& sample) { return sample.read.ns(); });
    });
    add("collate", &change.collate, [](const RecordedRun& run) {
        return mean_of(run.batches, [](const BatchDemand& batch) { return batch.collate.ns(); });
    });
    add("transfer", &change.transfer, [](const RecordedRun& run) {
        return mean_of(run.batches, [](const BatchDemand& batch) { return batch.transfer.ns(); });
    });
    add("compute", &change.compute, [](const RecordedRun& run) {
        return mean_of(run.steps, [](const StepDemand& step) { return step.compute.ns() + step.after.ns(); });
    });
    add("sampler", &change.sampler, [](const RecordedRun& run) { return static_cast<double>(run.order.ns()); });
    return all;
}

bool has_changed(const Scalable& one) {
    return one.a_ns != one.b_ns && (one.a_ns <= 0 || std::abs(one.b_ns / one.a_ns - 1) >= least_change);
}

double step_ns(const RecordedRun& run, const LoaderSetting& setting, const Change& change, std::size_t steps) {
    const Replayed replayed =
        replay(run, {.setting = setting, .change = change, .steps = steps, .warm_up_steps = warm_up_steps});
    return static_cast<double>(replayed.wall_ns) / static_cast<double>(steps);
}

ReplayExplanation explain(const RecordedRun& a, const RecordedRun& b) {
    ReplayExplanation found{.measured_ns = 1e9 / b.batches_per_s - 1e9 / a.batches_per_s};
    const std::size_t steps = std::max(most_samples / std::max<std::size_t>(a.setting.batch_size, 1), fewest_steps);
    const double base = step_ns(a, a.setting, {}, steps);
    Change all, alone;
    const std::vector<Scalable> together = scalables(a, b, all), single = scalables(a, b, alone);
    for (std::size_t i = 0; i < together.size(); ++i) {
        const Scalable& one = together[i];
        if (!has_changed(one))
            continue;
        if (one.a_ns <= 0) {   // there is nothing to scale
            found.changes.push_back({.name = one.name, .b_ns = one.b_ns, .is_replayed = false});
            continue;
        }
        *single[i].factor = one.b_ns / one.a_ns;
        try {
            found.changes.push_back({one.name, one.a_ns, one.b_ns, step_ns(a, a.setting, alone, steps) - base});
            *one.factor = *single[i].factor;
        } catch (const std::invalid_argument&) {   // the replay takes no such factor
            found.changes.push_back({.name = one.name, .a_ns = one.a_ns, .b_ns = one.b_ns, .is_replayed = false});
        }
        *single[i].factor = 1;
    }
    if (!(a.setting == b.setting))
        found.changes.push_back({.name = "settings", .a_step_ns = step_ns(a, b.setting, {}, steps) - base});
    std::ranges::stable_sort(found.changes, std::ranges::greater{},
                             [](const DemandChange& one) { return std::abs(one.a_step_ns); });
    if (std::ranges::count_if(found.changes, &DemandChange::is_replayed) > 1)
        found.changes.push_back({.name = "all of these", .a_step_ns = step_ns(a, b.setting, all, steps) - base});
    return found;
}

}   // namespace

ReplayExplanation explain_by_replay(const Ledger& a, const Ledger& b) {
    const RecordedRun first = prepare(a).run, second = prepare(b).run;
    for (const auto& [name, run] : {std::pair{"first", &first}, {"second", &second}})
        if (!run->unusable.empty())
            return {.missing = fmt::format("the {} run cannot be replayed: {}", name, run->unusable)};
    if (first.stages != second.stages)
        return {.missing = "the stages of the two runs differ"};
    if (first.setting.batch_size != second.setting.batch_size)
        return {.missing = "the batch sizes of the two runs differ"};
    if (!(first.batches_per_s > 0 && second.batches_per_s > 0))
        return {.missing = "a run has no steady steps"};
    try {
        return explain(first, second);
    } catch (const std::invalid_argument& error) {   // e.g. a setting that the first run's loader would refuse
        return {.missing = error.what()};
    }
}

std::string to_text(const ReplayExplanation& found) {
    if (!found.missing.empty())
        return fmt::format("no replay of the change: {}\n", printable(found.missing));
    std::string text = fmt::format("a training step takes {}", signed_duration(found.measured_ns));
    if (found.changes.empty())
        return text + "; no demand changed by 2 %, and no setting\n";
    const bool replays_all = std::ranges::all_of(found.changes, &DemandChange::is_replayed);
    text += ". In a replay of the first run it takes\n";
    for (const DemandChange& one : found.changes) {
        text += fmt::format("{:>10}  with {}", one.is_replayed ? signed_duration(one.a_step_ns) : "?",
                            one.name == "settings"       ? "the second run's settings"
                            : one.name == "all of these" ? replays_all ? "all of these" : "all that can be scaled"
                                                         : "the second run's " + printable(one.name));
        if (!one.is_replayed)
            text += fmt::format(", {} instead of {}: that cannot be scaled", format_duration(one.b_ns * 1e-9),
                                format_duration(one.a_ns * 1e-9));
        else if (one.a_ns > 0)
            text +=
                fmt::format(", {} instead of {}", format_duration(one.b_ns * 1e-9), format_duration(one.a_ns * 1e-9));
        text += '\n';
    }
    return text;
}

nlohmann::ordered_json to_json(const ReplayExplanation& found) {
    nlohmann::ordered_json changes = nlohmann::ordered_json::array();
    for (const DemandChange& one : found.changes)
        changes.push_back({{"name", one.name},
                           {"a_ns", one.a_ns},
                           {"b_ns", one.b_ns},
                           {"step_difference_ns", one.is_replayed ? nlohmann::ordered_json(one.a_step_ns) : nullptr}});
    return {{"measured_step_difference_ns", found.measured_ns},
            {"changes", std::move(changes)},
            {"missing", found.missing}};
}

}   // namespace drawpoint
