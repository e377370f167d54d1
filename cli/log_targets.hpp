#pragma once

#include <array>
#include <string>
#include <string_view>

namespace drawpoint::cli {

/// What a run can be logged for, after the fact: trackers of experiments, and Prometheus.
inline constexpr std::array<std::string_view, 6> run_log_formats{"tensorboard", "wandb", "mlflow",
                                                                 "prometheus",  "csv",   "jsonl"};

/// A format and where to: a folder for trackers, else a file.
struct RunLog {
    std::string format, path;
};

/// Reads "tensorboard=DIR". Throws UsageError naming `option`.
[[nodiscard]] RunLog run_log_in(std::string_view option, std::string_view text);

}   // namespace drawpoint::cli
