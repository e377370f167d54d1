#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/tuner/tuner.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>
#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

/// All candidates as a table, cheapest first; then the chosen setting, and why. UTF-8; sentences are not wrapped.
[[nodiscard]] std::string to_text(const Tuning&, TextOptions = {});

/// The same as one page of HTML that needs nothing from elsewhere, with a picture of predicted and measured rates.
[[nodiscard]] std::string to_html(const Tuning&, std::string_view title);

/// JSON of the schema `drawpoint.tuning/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json to_json(const Tuning&, const JsonHead&, const Machine&);

/// "2_workers_depth_4_order_in": the trial's name among runs.
[[nodiscard]] std::string name_of(const TuneTrial&);

/// Logs a trial as a run of its own, with its setting, so that trackers compare the trials: `tune/predicted`,
/// `tune/low`, `tune/high` and, if it was measured, `tune/measured`, in batches per second. The caller calls
/// `finish()`.
void log_trial(const TuneTrial&, Logger&);

}   // namespace drawpoint
