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

/// Thrown by `LiveTarget::run` and `record` once the fit is over.
struct FitOver : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A fit that can be tuned while it trains: a callback that does on the loop's thread, between two steps, what another
/// thread asks for. Serves one fit. The loader is reconfigured in place: no sample is lost, repeated or delayed by a
/// restart, and steps go on whether anybody asks or not. Training steps count; the time between two passes (a
/// validation) does not.
class LiveTarget final : public EventCallback<LiveTarget>, public TuneTarget {
public:
    /// `loader` is the one that the fit trains on, and `recorder` the one that it records into. Both must outlive this.
    LiveTarget(DataLoader& loader, Recorder& recorder);
    ~LiveTarget() override;

    // For one other thread, which waits for the loop. Throw FitOver once the fit is over, and std::invalid_argument
    // where DataLoader::reconfigure does.
    Block run(const LoaderSetting&, std::size_t warm_up, std::size_t steps) override;
    RecordedRun record(const LoaderSetting&, std::size_t warm_up, std::size_t steps) override;

    [[nodiscard]] std::size_t most_workers() const override;

    /// Ends the fit before its next draw, as CancelFit does. Any thread.
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

/// Calls `fit`, which trains with `target` among its callbacks, tunes on another thread meanwhile, and ends the fit
/// once that is done. Rethrows what `fit` threw, else what `tune` threw (FitOver if the fit ended by itself).
[[nodiscard]] Tuning tune_live(LiveTarget& target, const TuneOptions&, const std::function<void()>& fit);

}   // namespace drawpoint
