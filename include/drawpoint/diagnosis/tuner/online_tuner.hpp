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
    std::size_t most_workers = 0;     ///< 0: twice the cores plus 8
    std::size_t most_depth = 16;      ///< 1 … 55
    std::size_t observe_steps = 50;   ///< before each look, ≥ 20; doubled after each look that changes nothing
    std::size_t most_observe_steps = 800;
    /// In each block that verifies a move. A move takes up to five pairs of blocks, with the new and the old setting in
    /// turns.
    std::size_t block_steps = 8;
    /// Predicted gain that a move needs. The smallest setting within half of this of the best is tried.
    double least_gain = 0.02;
    double change = 0.10;           ///< of the rate or of the loop's own time, from which the next look comes at once
    std::size_t quiet_looks = 10;   ///< looks without a move before fewer workers or less depth are tried
    std::size_t tabu_looks = 10;    ///< looks for which a move that was taken back is not tried again
    /// Share of the time stalled for memory (PSI) from which the depth is halved at once.
    double memory_pressure = 0.1;
};
static_assert(std::is_trivially_destructible_v<OnlineTunerOptions>);

/// A move that was tried.
struct TunerDecision {
    std::size_t step = 0;   ///< training step of the fit
    LoaderSetting from, to;
    Interval predicted_gain;   ///< 0.1 = 10 %
    double obtained_gain = 0;
    bool kept = false;
    std::string why;
};

/// Tunes the loader of a fit while it trains. Replays the last steps under other settings, makes one move at a time,
/// compares old and new setting in interleaved blocks on the live loader, and takes back what does not gain. No sample
/// is lost or repeated, and in-order batches stay in order. Each decision becomes a fact of the recording ("tuner.1",
/// …). Add it to the fit's callbacks. Each look copies the recorder's live ledger, so bound that in long runs
/// (`RecorderOptions::ledger_steps`, at least four times `observe_steps`). Replays on a thread of its own, which the
/// destructor joins; that takes as long as the current step, or a replay of about 50 ms.
class OnlineTuner final : public EventCallback<OnlineTuner> {
public:
    /// `loader` is the one the fit trains on and `recorder` the one it records into; both must outlive this. Throws
    /// std::invalid_argument naming an option out of range, or if the loader has no workers.
    OnlineTuner(DataLoader& loader, Recorder& recorder, const OnlineTunerOptions& = {});
    ~OnlineTuner() override;

    /// Those so far. Any thread.
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
