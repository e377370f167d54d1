#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint {

/// What a replay asks of workers and loop: the recording's demands with the change applied, in the order in which they
/// are replayed. Position 0 is the first sample of the warm-up, step 0 its first step.
class ReplayDemands {
public:
    /// `batches`: the most that are opened.
    ReplayDemands(const RecordedRun&, const ReplayOptions&, std::size_t warm_up, std::size_t batches);

    [[nodiscard]] std::uint32_t sample_at(std::uint64_t position) const noexcept {
        return picks_[static_cast<std::size_t>(position)];
    }
    /// The demands of a sample, in order: its read, then each stage.
    [[nodiscard]] std::span<const Demand> pieces_of(std::uint32_t sample) const noexcept {
        return {&pieces_[sample * piece_count()], piece_count()};
    }
    /// The piece in which a sample takes its turn on the bandwidth that all reads share, after the waiting of that
    /// piece.
    [[nodiscard]] std::size_t line_piece() const noexcept { return run_->reads_ahead ? 0 : 1; }
    /// How long that turn takes.
    [[nodiscard]] std::int64_t line_ns(std::uint32_t sample) const noexcept {
        return line_ns_.empty() ? 0 : line_ns_[sample];
    }
    /// Core time of a sample that is in none of its pieces.
    [[nodiscard]] std::int64_t unstamped_ns(std::uint32_t sample) const noexcept { return unstamped_ns_[sample]; }
    [[nodiscard]] const SampleDemand& sample(std::uint32_t sample) const noexcept { return run_->samples[sample]; }
    /// The demand of a batch of `size` samples from `position` on: that of the recorded batch of its middle sample,
    /// scaled.
    [[nodiscard]] BatchDemand batch_at(std::uint64_t position, std::uint32_t size) const noexcept;
    [[nodiscard]] StepDemand step_at(std::uint64_t step, std::uint32_t size) const noexcept;
    /// Of the sampler, for each pass.
    [[nodiscard]] const Demand& order() const noexcept { return order_; }
    /// Between the starts of two workers in a pass.
    [[nodiscard]] std::int64_t worker_gap_ns() const noexcept { return worker_gap_ns_; }

private:
    /// Leaves `factor` of the distance of every demand from the mean of its kind; `resampled`: over what the bootstrap
    /// picked.
    void level_all(double factor, bool resampled);
    /// Makes waits that are shorter than it takes to leave a core part of the computing: they are the error of two
    /// clocks, and as waits they would hand the core to a thread that queues for it.
    void compute_short_waits() noexcept;

    [[nodiscard]] std::size_t piece_count() const noexcept { return 1 + stages_; }
    void add_samples(const ReplayOptions&);
    void add_line(const ReplayOptions&);
    void add_batches_and_steps(const ReplayOptions&);
    void pick(const ReplayOptions&, std::size_t warm_up, std::size_t batches);

    const RecordedRun* run_;
    std::size_t stages_;
    std::vector<Demand> pieces_;   // `piece_count()` for each sample
    std::vector<std::int64_t> unstamped_ns_, line_ns_;
    std::vector<BatchDemand> batches_;
    std::vector<StepDemand> steps_;
    Demand order_;
    std::int64_t worker_gap_ns_ = 0;
    std::vector<std::uint32_t> picks_, step_picks_;
};

}   // namespace drawpoint
