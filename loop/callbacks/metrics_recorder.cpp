#include <drawpoint/loop/callbacks/metrics_recorder.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace drawpoint {

MetricsRecorder::MetricsRecorder(std::vector<Metric> metrics, const MetricsOptions& options)
    : options_{options}, metrics_{std::move(metrics)}, learning_rate_{[] { return std::nan(""); }} {
    if (!(options.smoothing >= 0 && options.smoothing < 1))
        throw std::invalid_argument{
            fmt::format("MetricsRecorder: smoothing must be at least 0 and below 1, got {}", options.smoothing)};
    const auto add_metrics = [this](std::string_view prefix) {
        for (const Metric& metric : metrics_)
            names_.push_back(fmt::format("{}{}", prefix, metric.name));
    };
    names_.emplace_back("train_loss");
    if (options.train_metrics)
        add_metrics("train_");
    valid_column_ = names_.size();
    names_.emplace_back("valid_loss");
    add_metrics(options.train_metrics ? "valid_" : "");
    for (std::set<std::string> seen; const std::string& name : names_)
        if (!seen.insert(name).second)
            throw std::invalid_argument{fmt::format("MetricsRecorder: two columns are named {}", name)};
    row_.resize(names_.size());
}

void MetricsRecorder::before_fit(const LoopState& state) {
    if (state.resumed)
        return;
    losses_.clear();
    smooth_losses_.clear();
    learning_rates_.clear();
    log_.clear();
    smooth_sum_ = smooth_weight_ = 0;
}

void MetricsRecorder::before_epoch() { std::ranges::fill(row_, std::nullopt); }

void MetricsRecorder::before_validate() {
    valid_sum_ = 0;
    valid_seen_ = 0;
}

void MetricsRecorder::after_batch(const LoopState& state) {
    if (!state.loss)
        return;
    if (!state.training.value_or(true)) {
        valid_sum_ += *state.loss * static_cast<double>(state.batch_size);
        valid_seen_ += state.batch_size;
        return;
    }
    smooth_sum_ = options_.smoothing * smooth_sum_ + (1 - options_.smoothing) * *state.loss;
    smooth_weight_ = options_.smoothing * smooth_weight_ + (1 - options_.smoothing);
    if (options_.steps) {
        losses_.push_back(*state.loss);
        smooth_losses_.push_back(smooth_sum_ / smooth_weight_);
        learning_rates_.push_back(learning_rate_());
    }
}

void MetricsRecorder::note_metrics(std::size_t column) {
    for (const Metric& metric : metrics_)
        row_[column++] = metric.value();
}

void MetricsRecorder::after_train() {
    if (smooth_weight_ > 0)
        row_[0] = smooth_sum_ / smooth_weight_;
    if (options_.train_metrics)
        note_metrics(1);
}

void MetricsRecorder::after_validate() {
    if (valid_seen_ > 0)
        row_[valid_column_] = valid_sum_ / static_cast<double>(valid_seen_);
    note_metrics(valid_column_ + 1);
}

void MetricsRecorder::after_epoch(const LoopState& state) { log_.push_back({state.epoch, row_}); }

std::size_t MetricsRecorder::column(std::string_view name, std::string_view who) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
        throw std::invalid_argument{
            fmt::format("{}: there is no column {}; there are {}", who, name, fmt::join(names_, ", "))};
    return static_cast<std::size_t>(found - names_.begin());
}

std::string MetricsRecorder::table() const {
    std::string text = "epoch";
    for (const std::string& name : names_)
        text += fmt::format("  {:>10}", name);
    for (const EpochMetrics& row : log_) {
        text += fmt::format("\n{:>5}", row.epoch);
        for (std::size_t i = 0; i < names_.size(); ++i)
            text += fmt::format("  {:>{}}", row.values[i] ? fmt::format("{:.6f}", *row.values[i]) : "-",
                                std::max<std::size_t>(10, names_[i].size()));
    }
    return text + '\n';
}

void MetricsRecorder::save(Checkpoint& to, const std::string& prefix) const {
    std::vector<double> epochs, values, present;
    for (const EpochMetrics& row : log_) {
        epochs.push_back(static_cast<double>(row.epoch));
        for (const std::optional<double>& value : row.values) {
            values.push_back(value.value_or(0));
            present.push_back(value ? 1 : 0);
        }
    }
    to.set_text(prefix + "names", fmt::format("{}", fmt::join(names_, ", ")));
    to.set_numbers(prefix + "epochs", std::move(epochs));
    to.set_numbers(prefix + "values", std::move(values));
    to.set_numbers(prefix + "present", std::move(present));
    to.set_numbers(prefix + "losses", losses_);
    to.set_numbers(prefix + "smooth_losses", smooth_losses_);
    to.set_numbers(prefix + "learning_rates", learning_rates_);
    to.set_number(prefix + "smooth_sum", smooth_sum_);
    to.set_number(prefix + "smooth_weight", smooth_weight_);
}

void MetricsRecorder::load(const Checkpoint& from, const std::string& prefix) {
    if (const std::string names = fmt::format("{}", fmt::join(names_, ", ")); from.text(prefix + "names") != names)
        from.refuse(fmt::format("its log has the columns {}, this run's has {}", from.text(prefix + "names"), names));
    const std::vector<double> epochs = from.numbers(prefix + "epochs"), values = from.numbers(prefix + "values"),
                              present = from.numbers(prefix + "present");
    if (values.size() != epochs.size() * names_.size() || present.size() != values.size())
        from.refuse("its log has no value for each epoch and column");
    std::vector<EpochMetrics> log;
    for (std::size_t i = 0, at = 0; i < epochs.size(); ++i) {
        EpochMetrics& row = log.emplace_back();
        row.epoch = static_cast<std::size_t>(epochs[i]);
        for (std::size_t c = 0; c < names_.size(); ++c, ++at)
            row.values.push_back(present[at] != 0 ? std::optional{values[at]} : std::nullopt);
    }
    std::vector<double> losses = from.numbers(prefix + "losses"),
                        smooth_losses = from.numbers(prefix + "smooth_losses"),
                        learning_rates = from.numbers(prefix + "learning_rates");
    const double smooth_sum = from.number(prefix + "smooth_sum"), smooth_weight = from.number(prefix + "smooth_weight");
    log_ = std::move(log);
    losses_ = std::move(losses);
    smooth_losses_ = std::move(smooth_losses);
    learning_rates_ = std::move(learning_rates);
    smooth_sum_ = smooth_sum;
    smooth_weight_ = smooth_weight;
}

}   // namespace drawpoint
