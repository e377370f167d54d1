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

/// A *look* replays the last steps under other settings and decides whether to try one of them.
struct OnlineTunerOptions {
    /// 0: twice the usable cores plus 8. In both cases the loader's `most_workers()` is a limit, too.
    std::size_t most_workers = 0;
    std::size_t most_depth = 16;   ///< 1 … 55
    /// Steps that a look replays, ≥ 20. Looks are as many steps apart; the distance doubles after each look that
    /// changes nothing, up to `most_observe_steps`.
    std::size_t observe_steps = 50;
    std::size_t most_observe_steps = 800;
    /// Counted steps of each block that verifies a move, ≥ 1. A move takes one to five pairs of blocks, with the new
    /// and the old setting in turns.
    std::size_t block_steps = 8;
    /// Gain that a move must be predicted to have, as a fraction. Of the settings within half of this of the best, the
    /// smallest is tried, and kept if its measured gain is above half of this by a standard error. Smaller settings
    /// than the present one may cost this much, all of them together since the last gain.
    double least_gain = 0.02;
    /// Relative change of the rate, or of the loop's own time, after which the next look comes at once.
    double change = 0.10;
    std::size_t quiet_looks = 10;   ///< looks without a move before fewer workers or less depth are tried
    std::size_t tabu_looks = 10;    ///< looks for which a move that was taken back is not tried again
    /// Share of the time stalled for memory (PSI of the whole system) from which the depth is halved at once.
    double memory_pressure = 0.1;
};
static_assert(std::is_trivially_destructible_v<OnlineTunerOptions>);

/// A move that was tried, or a depth that was halved because memory was short (then without gains).
struct TunerDecision {
    std::size_t step = 0;   ///< number of training steps of the fit by then
    LoaderSetting from, to;
    Interval predicted_gain;    ///< of throughput: 0.1 = 10 % more
    double obtained_gain = 0;   ///< the same, measured
    bool kept = false;          ///< false: `from` is in force again
    std::string why;
};

/// Tunes the loader of a fit while it trains. Replays the last steps under other settings, makes one move at a time,
/// compares old and new setting in interleaved blocks on the live loader, and takes back what does not gain. No sample
/// is lost or repeated, and in-order batches stay in order. Each decision becomes a fact of the recording ("tuner.1",
/// …); if it had to stop tuning, "tuner.stopped" says why. Add it to the callbacks of one fit. Each look copies the
/// recorder's live ledger, so bound that in long runs by steps (`RecorderOptions::ledger_steps`, at least four times
/// `observe_steps`). Looks run on a thread of its own, which the destructor joins; that takes as long as the look that
/// is under way, up to about 5 ms times batch_size.
class OnlineTuner final : public EventCallback<OnlineTuner> {
public:
    /// `loader` is the one the fit trains on and `recorder` the one it records into; both must outlive this. Throws
    /// std::invalid_argument naming an option out of range, or if the loader has no workers.
    OnlineTuner(DataLoader& loader, Recorder& recorder, const OnlineTunerOptions& = {});
    ~OnlineTuner() override;

    /// The decisions so far. Any thread.
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
