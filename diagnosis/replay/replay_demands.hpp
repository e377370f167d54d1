#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint {

/// What a replay asks of workers and loop: the recording's demands with the change applied, in the order in which they
/// are replayed. Position 0 is the first sample of the warm-up, step 0 its first step.
class ReplayDemands {
public:
    static constexpr std::size_t max_parts = 2 * (max_stages + 1);

    /// Parts of a sample in order: its read's waiting and computing, then each stage's. `batches`: most that are
    /// opened.
    ReplayDemands(const RecordedRun&, const ReplayOptions&, std::size_t warm_up, std::size_t batches);

    [[nodiscard]] std::size_t stage_count() const noexcept { return stages_; }
    [[nodiscard]] std::uint32_t sample_at(std::uint64_t position) const noexcept {
        return picks_[static_cast<std::size_t>(position)];
    }
    [[nodiscard]] const std::int64_t* parts_of(std::uint32_t sample) const noexcept {
        return &parts_[sample * 2 * (stages_ + 1)];
    }
    /// The part of which a sample passes the line that all reads share, after that part's own time, and for how long.
    [[nodiscard]] std::size_t line_part() const noexcept { return run_->reads_ahead ? 0 : 2; }
    [[nodiscard]] std::int64_t line_ns(std::uint32_t sample) const noexcept {
        return line_ns_.empty() ? 0 : line_ns_[sample];
    }
    [[nodiscard]] const SampleDemand& sample(std::uint32_t sample) const noexcept { return run_->samples[sample]; }
    /// Of a batch of `size` samples from `position` on: as the recorded one of its middle sample.
    [[nodiscard]] BatchDemand batch_at(std::uint64_t position, std::uint32_t size) const noexcept;
    [[nodiscard]] StepDemand step_at(std::uint64_t step, std::uint32_t size) const noexcept;

private:
    /// Every demand becomes the mean of its kind; `resampled`: over the bootstrap's picks.
    void level_all(bool resampled);
    /// By less than it takes to leave a core two clocks differ; as a wait it would hand the core to whoever queues for it.
    void compute_short_waits() noexcept;

    const RecordedRun* run_;
    std::size_t stages_;
    std::vector<std::int64_t> parts_, line_ns_;
    std::vector<BatchDemand> batches_;
    std::vector<StepDemand> steps_;
    std::vector<std::uint32_t> picks_, step_picks_;
};

}   // namespace drawpoint
