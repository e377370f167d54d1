#include "online_case.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/loop/event_callback.hpp>

#include "case_pipeline.hpp"
#include "case_run.hpp"
#include "truth.hpp"

namespace drawpoint::bench {
namespace {

constexpr std::array paces{1.0, 0.3, 3.0};
constexpr std::size_t phase_steps = 500, reached_after = 300, window_steps = 200, pairs = 5;

/// Sets the pace of each phase.
class Phases final : public EventCallback<Phases> {
public:
    explicit Phases(CaseLearner& learner) noexcept : learner_{&learner} {}

    void before_draw(const LoopState& state) {
        if (const std::size_t phase = state.train_steps / phase_steps;
            phase < paces.size() && state.train_steps % phase_steps == 0)
            learner_->set_pace(paces[phase]);
    }

private:
    CaseLearner* learner_;
};

/// The setting that the tuner had chosen by this step; trials do not count.
LoaderSetting setting_at(std::size_t step, const Case& of, const std::vector<TunerDecision>& decisions) {
    LoaderSetting setting = of.setting;
    for (const TunerDecision& decision : decisions)
        if (decision.kept && decision.step <= step)
            setting = decision.to;
    return setting;
}

Case at_pace(const Case& of, double pace) {
    Case paced = of;
    paced.consumer.wait_us *= pace;
    paced.consumer.work_us *= pace;
    return paced;
}

double median_rate(const Case& of, Rig& rig, std::size_t runs) {
    std::vector<double> rates(runs);
    std::ranges::generate(rates, [&] { return run_case(of, rig).batches_per_s; });
    return median_interval(rates).median;
}

/// Runs each setting once, then the three fastest again.
LoaderSetting best_of_grid(const Case& of, Rig& rig) {
    std::vector<std::pair<double, Case>> cells;
    for (const Case& cell : grid_of(of))
        cells.emplace_back(run_case(cell, rig).batches_per_s, cell);
    const auto by_rate = [](const auto& cell) { return -cell.first; };
    std::ranges::sort(cells, {}, by_rate);
    cells.resize(std::min<std::size_t>(cells.size(), 3));
    for (auto& [rate, cell] : cells)
        rate = median_rate(cell, rig, 3);
    return std::ranges::min_element(cells, {}, by_rate)->second.setting;
}

double slowest_window(std::span<const std::int64_t> begins_ns) {
    double slowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = window_steps; i < begins_ns.size(); ++i)
        slowest = std::min(slowest, static_cast<double>(window_steps) * 1e9 /
                                        static_cast<double>(begins_ns[i] - begins_ns[i - window_steps]));
    return slowest;
}

}   // namespace

OnlineCase tune_online(const Case& of, Rig& rig) {
    OnlineCase result;
    const std::size_t steps = phase_steps * paces.size();
    // enough that the loader still prefetches during the last step
    const std::size_t samples = (steps + 64) * of.setting.batch_size;
    const SequentialSampler sampler{samples};
    Recorder recorder{RecorderOptions{.ledger_bytes = 0, .ledger_steps = 400}};
    std::vector<std::int64_t> begins_ns;
    {
        CasePipeline pipeline{of, rig, sampler, samples, recorder};
        Phases phases{pipeline.learner()};
        OnlineTuner tuner{
            pipeline.loader(),
            recorder,
            {.most_workers = std::ranges::max(of.grid_workers), .most_depth = std::ranges::max(of.grid_depths)}};
        CallbackList callbacks;
        callbacks.add(tuner);
        callbacks.add(phases);
        pipeline.fit({.max_steps = steps, .record_loss = false}, callbacks);
        result.decisions = tuner.decisions();
        begins_ns = pipeline.learner().begins_ns();
    }
    for (std::size_t i = 0; i < paces.size(); ++i) {
        Case paced = at_pace(of, paces[i]);
        OnlinePhase phase{.pace = paces[i],
                          .reached = setting_at(i * phase_steps + reached_after, of, result.decisions),
                          .best = best_of_grid(paced, rig)};
        paced.setting = phase.best;
        if (phase.reached != phase.best)
            phase.behind = -measure_gain(paced, phase.reached, rig, pairs).median;
        paced.setting = setting_at(i * phase_steps, of, result.decisions);
        paced.steps = phase_steps;
        std::vector<double> rates, slowest;
        for (int run = 0; run < 3; ++run) {
            const CaseRun untuned = run_case(paced, rig);
            rates.push_back(untuned.batches_per_s);
            slowest.push_back(slowest_window(std::span{untuned.begins_ns}.subspan(warm_up_steps(paced))));
        }
        const double rate = median_interval(rates).median;
        phase.worst_window = slowest_window(std::span{begins_ns}.subspan(i * phase_steps, phase_steps)) / rate;
        phase.untuned_window = median_interval(slowest).median / rate;
        result.phases.push_back(phase);
    }
    return result;
}

}   // namespace drawpoint::bench
