#include "cli/top/top_view.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <drawpoint/diagnosis/demands/detail/number_fact.hpp>
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::int64_t window_ns = 5'000'000'000;
constexpr std::ptrdiff_t least_steps = 8, most_steps = 50;   // the window is longer, or shorter, to have as many

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

constexpr auto end_of = [](const StepRow& step) { return end_ns(step); };

std::uint64_t count_in(const Ledger& ledger, const std::string& fact) {
    constexpr double most = 1e15;
    return static_cast<std::uint64_t>(number_fact(ledger, fact, most).value_or(0));
}

/// The loader whose batches are drawn in this phase: the first one trains, a second one validates.
const PipelineRow* loader_of(const Ledger& ledger, Phase phase) {
    const std::size_t position = phase == Phase::valid && ledger.pipelines.size() > 1 ? 1 : 0;
    return position < ledger.pipelines.size() ? &ledger.pipelines[position] : nullptr;
}

std::optional<TopProgress> progress_of(const Ledger& ledger, const Summary& run) {
    if (ledger.steps.empty())
        return std::nullopt;
    const StepRow &first = ledger.steps.front(), &last = ledger.steps.back();
    const auto batches_of = [&](Phase phase) {
        const PipelineRow* const loader = loader_of(ledger, phase);
        return loader ? count_in(ledger, std::string{facts::batches_prefix} + loader->name) : 0;
    };
    const std::string option{facts::option_prefix};
    TopProgress progress{.phase = last.phase,
                         .epoch = last.epoch + std::uint64_t{1},
                         .epochs = count_in(ledger, option + "epochs"),
                         .batch = last.batch + std::uint64_t{1},
                         .batches = batches_of(last.phase),
                         .left_s = std::nullopt};
    const std::uint64_t batches = batches_of(Phase::train);
    if (batches == 0 || progress.epochs == 0)
        return progress;
    // Training steps: before this recording, so far, and in all.
    const auto place = [&](const StepRow& step) {
        return step.phase == Phase::train ? step.epoch * batches + step.batch : (step.epoch + 1) * batches;
    };
    const std::uint64_t before = place(first), done = place(last) + (last.phase == Phase::train ? 1 : 0);
    std::uint64_t all = progress.epochs * batches;
    if (const std::uint64_t steps = count_in(ledger, option + "steps"); steps != 0)
        all = std::min(all, before + steps);
    if (done > before && done <= all)
        progress.left_s = run.run.wall_s * static_cast<double>(all - done) / static_cast<double>(done - before);
    return progress;
}

/// The window of the view: it ends `earlier_ns` before the last record, and begins where rows are kept.
std::pair<std::int64_t, std::int64_t> window_of(const Ledger& ledger, std::int64_t earlier_ns) {
    const auto& steps = ledger.steps;
    const auto kept =
        std::ranges::find_if(steps, [&](const StepRow& step) { return step.draw_begin_ns >= ledger.folded.until_ns; });
    if (kept == steps.end())
        return {end_of(steps.back()), end_of(steps.back())};
    const std::int64_t first_ns = kept->draw_begin_ns;
    const std::int64_t to_ns =
        std::max(end_of(steps.back()) - earlier_ns, std::min(end_of(*kept), end_of(steps.back())));
    const auto after = std::ranges::upper_bound(steps, to_ns, {}, end_of);
    const auto begin_of = [&](std::ptrdiff_t last_steps) {
        return after == kept ? first_ns : (after - std::min(after - kept, last_steps))->draw_begin_ns;
    };
    const std::int64_t from_ns = std::clamp(to_ns - window_ns, begin_of(most_steps), begin_of(least_steps));
    const auto first = std::ranges::lower_bound(kept, after, from_ns, {}, &StepRow::draw_begin_ns);   // whole steps
    return {first != after ? first->draw_begin_ns : from_ns, to_ns};
}

/// What the draws of the steps from `from_ns` on waited for, the longest first, in nanoseconds.
std::vector<std::pair<std::string, double>> causes_of(const Ledger& ledger, const Blame& blame, std::int64_t from_ns) {
    std::map<std::string, std::int64_t> sums;
    for (const DrawBlame& draw : blame.draws)
        if (ledger.steps[draw.step].draw_begin_ns >= from_ns)
            for (const BlamePiece& piece : std::span{blame.pieces}.subspan(draw.pieces.first, draw.pieces.count))
                if (piece.cause != Cause::hidden)   // it cost nothing
                    sums[name_of(ledger, draw, piece)] += piece.ns;
    std::vector<std::pair<std::string, double>> causes;
    for (const auto& [name, ns] : sums)
        if (ns > 0)
            causes.emplace_back(name, seconds(ns));
    std::ranges::stable_sort(causes, std::ranges::greater{}, &std::pair<std::string, double>::second);
    return causes;
}

std::vector<TopSample> slow_samples_of(const Ledger& ledger, const Blame& blame) {
    std::vector<TopSample> samples;
    for (const SlowSample& slow : blame.slow_samples) {
        const SampleRow& row = ledger.samples[slow.sample];
        const auto stages =
            row.pipeline < ledger.pipelines.size() ? ledger.pipelines[row.pipeline].stages : std::vector<std::string>{};
        samples.push_back({.index = row.index,
                           .stage = slow.stage < stages.size() ? stages[slow.stage] : "",
                           .path = path_of(ledger, slow).value_or(""),
                           .times = slow.times,
                           .stall_s = seconds(slow.stall_ns)});
    }
    return samples;
}

}   // namespace

TopDiagnosis top_diagnosis(const Ledger& ledger, Diagnosis diagnosis) {
    TopDiagnosis of{.diagnosis = std::move(diagnosis), .slow_samples = {}};
    of.slow_samples = slow_samples_of(ledger, of.diagnosis.blame);
    of.diagnosis.blame = {};
    return of;
}

TopView top_view(const Ledger& ledger, std::int64_t earlier_ns) {
    TopView view;
    const auto drops_first = ledger.fact(std::string{facts::option_prefix} + "drop-first-batch");
    view.run = summarize(ledger, {.drop_first_batch = drops_first != "false"});
    view.progress = progress_of(ledger, view.run);
    for (const HostRow& row : ledger.host)
        if (row.resident_bytes != no_stamp)
            view.resident_bytes = row.resident_bytes;
    if (ledger.steps.empty())
        return view;
    const auto [from_ns, to_ns] = window_of(ledger, earlier_ns);
    if (to_ns <= from_ns)
        return view;
    const std::int64_t last_ns = end_of(ledger.steps.back());
    if (to_ns < last_ns)
        view.earlier_s = seconds(last_ns - to_ns);
    view.now_s = seconds(to_ns - from_ns);
    const Ledger now = window(ledger, from_ns, to_ns);
    view.now = summarize(now, {.drop_first_batch = false});

    // Batches drawn in the window were begun before it.
    const std::int64_t wider_ns = std::max(from_ns - (to_ns - from_ns), ledger.folded.until_ns);
    const Ledger wider = window(ledger, wider_ns, to_ns);
    Blame blamed = blame(wider);
    view.causes = causes_of(wider, blamed, from_ns);
    view.workers = std::move(blamed.workers);

    for (const PipelineRow& loader : ledger.pipelines)
        view.stages.insert(view.stages.end(), loader.stages.begin(), loader.stages.end());
    return view;
}

void TopRates::add(std::int64_t at_ns, std::uint64_t samples) {
    constexpr std::size_t most = 512;
    if (!points_.empty() && at_ns - points_.back().at_ns < apart_ns_)
        return;
    points_.push_back({at_ns, samples});
    if (points_.size() <= most)
        return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); i += 2)
        points_[kept++] = points_[i];
    points_.resize(kept);
    apart_ns_ = (points_.back().at_ns - points_.front().at_ns) / static_cast<std::int64_t>(kept);
}

std::vector<double> TopRates::rates() const {
    std::vector<double> rates;
    for (std::size_t i = 1; i < points_.size(); ++i)
        if (const std::int64_t ns = points_[i].at_ns - points_[i - 1].at_ns; ns > 0)
            rates.push_back(static_cast<double>(points_[i].samples - points_[i - 1].samples) / seconds(ns));
    return rates;
}

double TopRates::span_s() const noexcept {
    return points_.empty() ? 0 : static_cast<double>(points_.back().at_ns - points_.front().at_ns) / 1e9;
}

}   // namespace drawpoint::cli
