#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>

#include <drawpoint/diagnosis/tuner/tuner.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

class DataLoader;
class Recorder;

/// Thrown by `LiveTarget::run` and `record` once the fit is over, also if they were waiting for it.
struct FitOver : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A fit that can be tuned while it trains: a callback that does on the loop's thread, between two steps, what another
/// thread asks for. Serves one fit. The loader is reconfigured in place: no sample is lost, repeated or delayed by a
/// restart, and steps go on whether anybody asks or not. Only training steps count, without the time between two passes
/// (a validation). While nobody asks, a step costs the reading of an atomic.
class LiveTarget final : public EventCallback<LiveTarget>, public TuneTarget {
public:
    /// `loader` is the one that the fit trains on, and `recorder` the one that it records into; both must outlive this.
    LiveTarget(DataLoader& loader, Recorder& recorder);
    ~LiveTarget() override;

    // For one other thread, which they block until the fit has run the steps: for ever if no fit runs. They change
    // num_workers, prefetch_depth, order and memory_budget; batch_size and read_concurrency of the setting are ignored.
    // Another order takes effect with the second pass that begins; the warm-up begins then. `steps` 0 counts as 1.
    // They throw FitOver, and what DataLoader::reconfigure throws; then the fit goes on.
    Block run(const LoaderSetting&, std::size_t warm_up, std::size_t steps) override;
    /// Copies the recorder's live ledger. The run's `unusable` says why it cannot be replayed.
    RecordedRun record(const LoaderSetting&, std::size_t warm_up, std::size_t steps) override;

    [[nodiscard]] std::size_t most_workers() const override;   ///< the loader's

    /// Ends the fit before its next draw, by a CancelFit. Any thread.
    void end_fit() noexcept;

    // Called by the loop.
    [[nodiscard]] int order() const noexcept override { return 60; }   // after the step's own callbacks
    void before_train();
    void before_draw();
    void after_train();
    void after_batch(const LoopState&);
    bool fit_over() noexcept override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Calls `fit`, which must train with `target` among its callbacks, runs `tune` on another thread meanwhile, and ends
/// the fit once that is done. Returns when both have ended; the loader then has the setting that ran last, which need
/// not be the chosen one. Rethrows what `fit` threw, else what `tune` threw (FitOver if the fit ended before it was
/// tuned).
[[nodiscard]] Tuning tune_live(LiveTarget& target, const TuneOptions&, const std::function<void()>& fit);

}   // namespace drawpoint
