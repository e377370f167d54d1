#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace drawpoint {

/// A learner's counts for the current pass.
struct Metrics {
    std::uint64_t correct = 0;   ///< samples whose largest output is that of their target
    std::uint64_t seen = 0;
    std::uint64_t in_top_k = 0;   ///< samples whose target is among the k largest outputs; 0 when k is 0
    std::size_t top_k = 0;        ///< k; 0: not counted
    double loss_sum = 0;          ///< sum over batches of mean loss × batch size

    [[nodiscard]] double accuracy() const noexcept { return share(static_cast<double>(correct)); }
    [[nodiscard]] double top_k_accuracy() const noexcept { return share(static_cast<double>(in_top_k)); }
    [[nodiscard]] double mean_loss() const noexcept { return share(loss_sum); }

private:
    [[nodiscard]] double share(double sum) const noexcept { return seen == 0 ? 0 : sum / static_cast<double>(seen); }
};

/// A named value of a pass, computed once at its end.
struct Metric {
    std::string name;
    std::function<double()> value;
};

/// The share of samples whose largest output is that of their target: "accuracy". For this and the metrics below, the
/// learner must outlive the metric.
template <class L>
[[nodiscard]] Metric accuracy_of(const L& learner) {
    return {"accuracy", [&learner] { return learner.metrics().accuracy(); }};
}

/// The share of samples whose target is among the k largest outputs: "top_5_accuracy". The learner must count it
/// (`LearnerOptions::top_k`).
template <class L>
[[nodiscard]] Metric top_k_accuracy_of(const L& learner) {
    return {"top_" + std::to_string(learner.metrics().top_k) + "_accuracy",
            [&learner] { return learner.metrics().top_k_accuracy(); }};
}

/// The mean loss over samples, accumulated by the learner on its device: "mean_loss". Unlike `valid_loss` it does not
/// need `FitOptions::record_loss`, so no step waits for a device.
template <class L>
[[nodiscard]] Metric mean_loss_of(const L& learner) {
    return {"mean_loss", [&learner] { return learner.metrics().mean_loss(); }};
}

}   // namespace drawpoint
