#pragma once

#include <array>
#include <optional>
#include <span>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>

namespace drawpoint {

/// The actions that a report has for a phase's batches, in order.
inline std::span<const Action> actions_of(ProfileMode mode, Phase phase) {
    static constexpr std::array simple_train{Action::step, Action::draw,     Action::batch,    Action::forward,
                                             Action::loss, Action::backward, Action::opt_step, Action::zero_grad};
    static constexpr std::array simple_valid{Action::step, Action::draw, Action::batch, Action::predict, Action::loss};
    const std::span<const Action> all = phase == Phase::train ? std::span<const Action>{simple_train} : simple_valid;
    if (mode == ProfileMode::throughput)
        return all.first(3);
    return mode == ProfileMode::simple_old ? all.subspan(1) : all;
}

inline std::optional<double> duration(const FastxtendBatch& batch, Action action) {
    switch (action) {
    case Action::step: return batch.draw + batch.batch;
    case Action::draw: return batch.draw;
    case Action::batch: return batch.batch;
    case Action::forward:
    case Action::predict: return batch.forward;
    case Action::loss: return batch.loss;
    case Action::backward: return batch.backward;
    case Action::opt_step: return batch.opt_step;
    case Action::zero_grad: return batch.zero_grad;
    default: return std::nullopt;
    }
}

inline bool has_rate(ProfileMode mode, Action action) {
    return action != Action::zero_grad && !(mode == ProfileMode::simple_old && action == Action::predict);
}

/// Samples per second of one batch; for a draw: the (negative) change that it causes.
inline double rate(const FastxtendBatch& batch, Action action, double seconds) {
    const auto size = static_cast<double>(batch.size);
    return action == Action::draw ? -(size / batch.batch - size / (seconds + batch.batch)) : size / seconds;
}

}   // namespace drawpoint
