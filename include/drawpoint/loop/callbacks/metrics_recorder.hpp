#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/callbacks/metrics.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

struct MetricsOptions {
    double smoothing = 0.98;      ///< weight of the past in the smoothed loss, 0 ≤ smoothing < 1
    bool train_metrics = false;   ///< also compute metrics of training passes: train_NAME in addition to valid_NAME
    bool steps = true;            ///< keep every training step's values: 24 bytes per step
};
static_assert(std::is_trivially_destructible_v<MetricsOptions>);

/// The results of one epoch.
struct EpochMetrics {
    std::size_t epoch = 0;
    std::vector<std::optional<double>> values;   ///< in the order of `MetricsRecorder::names()`; nullopt: no value
    bool operator==(const EpochMetrics&) const = default;
};

/// Records loss, smoothed loss and learning rate of every training step, and losses and metrics of every epoch, like
/// fastai's Recorder. Losses need `FitOptions::record_loss`; a step cancelled before its loss is left out. A fit
/// clears the record unless it is resumed (`LoopState::resumed`). A checkpoint within an epoch lacks what the metrics
/// themselves have summed up in it.
class MetricsRecorder final : public EventCallback<MetricsRecorder>, public Stateful {
public:
    /// Records metrics only. Throws std::invalid_argument naming option and value, or a name shared by two columns.
    explicit MetricsRecorder(std::vector<Metric> metrics = {}, const MetricsOptions& = {});
    /// Also records the learner's learning rate. The learner must outlive it.
    template <TunableLearner L>
    explicit MetricsRecorder(const L& learner, std::vector<Metric> metrics = {}, const MetricsOptions& options = {})
        : MetricsRecorder{std::move(metrics), options} {
        learning_rate_ = [&learner] { return learner.learning_rate(); };
    }

    [[nodiscard]] int order() const noexcept override { return 50; }
    void before_fit(const LoopState& state);
    void before_epoch();
    void before_validate();
    void after_batch(const LoopState& state);
    void after_train();
    void after_validate();
    void after_epoch(const LoopState& state);

    /// Losses of all training steps that had one, in order.
    [[nodiscard]] const std::vector<double>& losses() const noexcept { return losses_; }
    /// Exponentially weighted mean of the losses so far, bias-corrected; over all epochs.
    [[nodiscard]] const std::vector<double>& smooth_losses() const noexcept { return smooth_losses_; }
    /// Learning rates of these steps; NaN without a learner.
    [[nodiscard]] const std::vector<double>& learning_rates() const noexcept { return learning_rates_; }

    /// The columns of `log()`: train_loss (smoothed), with `train_metrics` the metrics as train_NAME, valid_loss (mean
    /// over samples), then the metrics as NAME or, with `train_metrics`, valid_NAME.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    /// One row per finished epoch.
    [[nodiscard]] const std::vector<EpochMetrics>& log() const noexcept { return log_; }
    /// Index of a column. Throws std::invalid_argument with `who` asked and the names of the existing columns.
    [[nodiscard]] std::size_t column(std::string_view name, std::string_view who) const;
    /// The log as a text table with a header.
    [[nodiscard]] std::string table() const;

    [[nodiscard]] std::string_view state_name() const noexcept override { return name(); }
    void save(Checkpoint& to, const std::string& prefix) const override;
    void load(const Checkpoint& from, const std::string& prefix) override;

private:
    void note_metrics(std::size_t column);

    MetricsOptions options_;
    std::vector<Metric> metrics_;
    std::function<double()> learning_rate_;
    std::vector<std::string> names_;
    std::size_t valid_column_ = 0;
    std::vector<double> losses_, smooth_losses_, learning_rates_;
    std::vector<EpochMetrics> log_;
    double smooth_sum_ = 0, smooth_weight_ = 0;   // the weight is 1 - smoothing^steps
    double valid_sum_ = 0;
    std::uint64_t valid_seen_ = 0;
    std::vector<std::optional<double>> row_;   // of the current epoch
};

}   // namespace drawpoint
