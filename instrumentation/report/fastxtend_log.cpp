#include <drawpoint/instrumentation/report/fastxtend_log.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "instrumentation/report/fastxtend_rates.hpp"

namespace drawpoint {
namespace {

struct Keys {
    Action action;
    std::string_view live, live_old;   // for training batches
};
constexpr std::array keys{
    Keys{Action::step, "throughput/step", ""},
    Keys{Action::draw, "throughput/draw", "samples_per_second/train_draw"},
    Keys{Action::batch, "throughput/batch", "samples_per_second/train_batch"},
    Keys{Action::forward, "throughput/forward", "samples_per_second/train_forward"},
    Keys{Action::loss, "throughput/loss", "samples_per_second/train_loss"},
    Keys{Action::backward, "throughput/backward", "samples_per_second/train_backward"},
    Keys{Action::opt_step, "throughput/opt_step", "samples_per_second/train_opt_step"},
    Keys{Action::zero_grad, "throughput/zero_grad", ""},   // 0.0.19 omits it
};

/// Throughput as a ratio of means over the batches that have the action; nullopt if none has.
std::optional<double> ratio_of_means(const std::deque<FastxtendBatch>& batches, Action action) {
    double size = 0, seconds = 0, rest = 0;   // rest: the batch after a draw
    std::size_t count = 0;
    for (const FastxtendBatch& batch : batches)
        if (const auto taken = duration(batch, action)) {
            size += static_cast<double>(batch.size);
            seconds += *taken;
            rest += batch.batch;
            ++count;
        }
    if (count == 0)
        return std::nullopt;
    const auto n = static_cast<double>(count);
    size /= n, seconds /= n, rest /= n;
    return action == Action::draw ? size / (seconds + rest) - size / rest : size / seconds;
}

std::vector<double> rates_of(std::span<const FastxtendBatch> batches, Action action) {
    std::vector<double> rates;
    for (const FastxtendBatch& batch : batches)
        if (const auto taken = duration(batch, action))
            rates.push_back(rate(batch, action, *taken));
    return rates;
}

}   // namespace

FastxtendLiveLog::FastxtendLiveLog(ProfileMode mode, std::size_t rolling_average, bool drop_first_batch)
    : mode_{mode},
      window_{mode == ProfileMode::simple_old ? 1 : std::max<std::size_t>(rolling_average, 1)},
      waiting_{drop_first_batch ? 1u : 0u} {}

std::vector<FastxtendLogValue> FastxtendLiveLog::add(const FastxtendBatch& batch) {
    if (last_.size() == window_)
        last_.pop_front();
    last_.push_back(batch);

    // Depends on the number of batches counted before this one; 0.0.19 logs every batch.
    bool log_point = mode_ == ProfileMode::simple_old;
    if (!log_point) {
        log_point = waiting_ == 0 && counted_ >= window_ && counted_ % window_ == 0;
        if (waiting_ > 0)
            --waiting_;
        else
            ++counted_;
    }
    std::vector<FastxtendLogValue> values;
    if (!log_point)
        return values;
    for (const Action action : actions_of(mode_, Phase::train)) {
        const Keys& key = *std::ranges::find(keys, action, &Keys::action);
        const std::string_view name = mode_ == ProfileMode::simple_old ? key.live_old : key.live;
        if (const auto value = ratio_of_means(last_, action); value && !name.empty())
            values.push_back({name, *value});
    }
    return values;
}

std::vector<FastxtendSummary> fastxtend_final_log(const FastxtendValues& values, ProfileMode mode,
                                                  bool drop_first_batch) {
    std::vector<FastxtendSummary> all;
    if (mode == ProfileMode::simple_old)
        return all;
    const auto add = [&all](std::string name, std::vector<double> of) {
        if (!of.empty())
            all.push_back({std::move(name), std::move(of)});
    };
    // If a rate is not finite, the report has "-" as their mean; then they are not logged either.
    const auto add_rates = [&](std::string name, std::vector<double> rates) {
        if (std::ranges::all_of(rates, [](double value) { return std::isfinite(value); }))
            add(std::move(name), std::move(rates));
    };
    if (values.fit)
        add("fit/duration", {*values.fit});
    add("fit/epoch_duration", values.epoch);
    add_rates("fit/train_throughput", rates_of(values.train_batches, Action::step));
    add("fit/train_duration", values.train);
    add_rates("fit/valid_throughput", rates_of(values.valid_batches, Action::step));
    add("fit/valid_duration", values.valid);
    for (const Phase phase : {Phase::train, Phase::valid}) {
        std::span<const FastxtendBatch> batches = phase == Phase::train ? values.train_batches : values.valid_batches;
        if (drop_first_batch && !batches.empty())
            batches = batches.subspan(1);
        for (const Action action : actions_of(mode, phase)) {
            const std::string name = std::string{name_of(phase)} + "/" + std::string{name_of(action)};
            if (has_rate(mode, action))
                add_rates(name + "_throughput", rates_of(batches, action));
            std::vector<double> durations;
            for (const FastxtendBatch& batch : batches)
                if (const auto taken = duration(batch, action))
                    durations.push_back(*taken);
            add(name + "_duration", std::move(durations));
        }
    }
    return all;
}

}   // namespace drawpoint
