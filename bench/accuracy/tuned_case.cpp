#include "tuned_case.hpp"

#include <algorithm>
#include <limits>

#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/diagnosis/tuner/tuner.hpp>

#include "case_pipeline.hpp"

namespace drawpoint::bench {
namespace {

constexpr std::size_t blocks_of_pass = 10, pairs = 5;

const MeasuredCell& fastest(const Truth& truth) {
    return *std::ranges::max_element(truth.grid, {},
                                     [](const MeasuredCell& cell) { return cell.batches_per_s.median; });
}

LoaderSetting at(const Case& of, const MeasuredCell& cell) {
    LoaderSetting setting = of.setting;
    setting.num_workers = cell.num_workers;
    setting.prefetch_depth = cell.prefetch_depth;
    return setting;
}

}   // namespace

TunedCase tune_case(const Case& of, const Truth& truth, Rig& rig) {
    const MeasuredCell& best = fastest(truth);
    TunedCase tuned{.chosen = of.setting, .best = at(of, best)};
    tuned.effect = best.batches_per_s.median / truth.batches_per_s.median - 1;
    const TuneOptions options{.start = of.setting,
                              .most_workers = std::ranges::max(of.grid_workers),
                              .most_depth = std::ranges::max(of.grid_depths)};
    const std::size_t samples = of.steps * of.setting.batch_size;
    const RepeatedSampler same_blocks{SequentialSampler{samples}, options.block_steps * of.setting.batch_size,
                                      blocks_of_pass};
    Recorder recorder{RecorderOptions{.ledger_bytes = 0, .ledger_steps = 4000}};
    {
        CasePipeline pipeline{of, rig, same_blocks, samples, recorder};
        LiveTarget target{pipeline.loader(), recorder};
        CallbackList callbacks;
        callbacks.add(target);
        const Tuning tuning = tune_live(target, options, [&] {
            pipeline.fit({.epochs = std::numeric_limits<std::size_t>::max(), .record_loss = false}, callbacks);
        });
        tuned.chosen = tuning.chosen;
        tuned.steps_used = tuning.steps_used;
        tuned.separated = tuning.separated;
        tuned.peak_bytes = pipeline.loader().counters().peak_bytes;
    }
    if (tuned.chosen == tuned.best)
        return tuned;
    Case from = of;
    from.setting = tuned.best;
    tuned.regret = -measure_gain(from, tuned.chosen, rig, pairs).median;
    return tuned;
}

}   // namespace drawpoint::bench
