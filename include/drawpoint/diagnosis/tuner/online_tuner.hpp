#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

class DataLoader;
class Recorder;

struct OnlineTunerOptions {
    std::size_t most_workers = 0;     ///< 0: twice the cores and 8 more
    std::size_t most_depth = 16;      ///< 1 … 55
    std::size_t observe_steps = 50;   ///< seen before each look, ≥ 20; twice as many after each that changes nothing
    std::size_t most_observe_steps = 800;
    std::size_t block_steps = 8;   ///< of each block that verifies a move: up to five pairs, new and old in turns
    double least_gain =
        0.02;   ///< that a move must be predicted to have; of settings within half of it, the smallest is tried
    double change = 0.10;   ///< of the rate or of the loop's own time, while it watches: the next look comes at once
    std::size_t quiet_looks = 10;   ///< without a move, before fewer workers or less depth are tried
    std::size_t tabu_looks = 10;    ///< for which a move that was taken back is not tried again
    double memory_pressure =
        0.1;   ///< share of the time stalled for memory (PSI), from which the depth is halved at once
};
static_assert(std::is_trivially_destructible_v<OnlineTunerOptions>);

/// A move it tried.
struct TunerDecision {
    std::size_t step = 0;   ///< of the fit, training steps
    LoaderSetting from, to;
    Interval predicted_gain;   ///< 0.1 = 10 %
    double obtained_gain = 0;
    bool kept = false;
    std::string why;
};

/// Tunes the loader of a fit while it trains: looks at the last steps, replays them under other settings, makes one move at
/// a time, compares both in interleaved blocks on the live loader and takes back what does not gain. No sample is lost or
/// repeated, and in-order batches stay in order. Each decision is a fact of the recording ("tuner.1", …). Add it to the
/// fit's callbacks. Each look copies the recorder's live ledger, so bound that in long runs (`RecorderOptions::ledger_steps`,
/// at least four times `observe_steps`). It thinks on a thread of its own, which its destructor joins: within a step or a replay of some 50 ms.
class OnlineTuner final : public EventCallback<OnlineTuner> {
public:
    /// `loader` is the one the fit trains on and `recorder` the one it records into; both outlive this. Throws
    /// std::invalid_argument naming an option out of range, and that a loader without workers cannot be tuned.
    OnlineTuner(DataLoader& loader, Recorder& recorder, const OnlineTunerOptions& = {});
    ~OnlineTuner() override;

    /// So far. Any thread.
    [[nodiscard]] std::vector<TunerDecision> decisions() const;

    [[nodiscard]] int order() const noexcept override { return 60; }
    void before_train();
    void after_train();
    void after_batch(const LoopState&);
    bool fit_over() noexcept override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
