#include <drawpoint/diagnosis/logging/run_log.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

using Scalars = std::vector<Scalar>;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// The names that `report_scalars` may give.
constexpr std::array<std::string_view, 15> report_names{
    "report/samples_per_s", "report/draw_mean_s",       "report/draw_median_s", "report/draw_p90_s",
    "report/draw_p99_s",    "report/draw_total_s",      "report/step_mean_s",   "report/wall_s",
    "report/starved_s",     "report/draw_gain_if_zero", "report/mean_ready",    "report/empty_share",
    "report/accuracy",      "report/trusted",           "report/predicted_gain"};

/// Numbers of the report that stand for the whole run.
Scalars report_scalars(const Summary& summary, const Diagnosis* diagnosis) {
    Scalars scalars;
    const auto add = [&](std::string_view name, std::optional<double> value) {
        if (value)
            scalars.push_back({name, *value});
    };
    for (const SummaryRow& row : summary.rows) {
        if (row.phase == "fit" && row.action == Action::train)
            add("report/samples_per_s", row.samples_per_s);
        if (row.phase == "train" && row.action == Action::draw) {
            add("report/draw_mean_s", row.mean_s);
            add("report/draw_median_s", row.median_s);
            add("report/draw_p90_s", row.p90_s);
            add("report/draw_p99_s", row.p99_s);
            add("report/draw_total_s", row.total_s);
        }
        if (row.phase == "train" && row.action == Action::step)
            add("report/step_mean_s", row.mean_s);
    }
    add("report/wall_s", summary.run.wall_s);
    add("report/starved_s", summary.draw.starved_s);
    add("report/draw_gain_if_zero", summary.headroom.throughput_gain_if_draw_were_zero);
    if (summary.queue) {
        add("report/mean_ready", summary.queue->mean_ready);
        add("report/empty_share", summary.queue->empty_share);
    }
    add("report/accuracy", summary.model.accuracy);
    if (diagnosis) {
        add("report/trusted", diagnosis->trust.trusted ? 1 : 0);
        if (diagnosis->advice)
            add("report/predicted_gain", diagnosis->advice->gain.median);
    }
    return scalars;
}

/// Options and what the run ran on.
std::vector<std::pair<std::string, std::string>> settings_of(const Summary& summary, const Diagnosis* diagnosis) {
    std::vector<std::pair<std::string, std::string>> settings = summary.run.options;
    const auto add = [&](const char* name, std::string value) {
        const auto known =
            std::ranges::find(settings, std::string_view{name}, &std::pair<std::string, std::string>::first);
        if (known == settings.end() && !value.empty())
            settings.emplace_back(name, std::move(value));
    };
    if (summary.run.batch_size > 0) {
        add("batch-size", fmt::format("{}", summary.run.batch_size));
        add("num-workers", fmt::format("{}", summary.run.num_workers));
        add("prefetch-depth", fmt::format("{}", summary.run.prefetch_depth));
        add("order", summary.run.order);
    }
    add("machine", summary.machine.cpu);
    if (summary.machine.cores_usable)
        add("cores", fmt::format("{}", *summary.machine.cores_usable));
    add("digest", summary.run.digest.value_or(""));
    add("drawpoint", summary.run.version.value_or(""));
    if (diagnosis) {
        add("verdict", std::string{to_string(diagnosis->verdict)});
        if (diagnosis->advice)
            add("advice", diagnosis->advice->change);
    }
    return settings;
}

/// Unix time of a stamp of the recording, if the recording says what that is.
class UnixTime {
public:
    explicit UnixTime(const Ledger& ledger) {
        const auto text = ledger.fact(facts::unix_offset_ns);
        std::int64_t offset_ns = 0;
        if (text && std::from_chars(text->data(), text->data() + text->size(), offset_ns).ec == std::errc{})
            offset_ns_ = offset_ns;
    }
    [[nodiscard]] std::optional<double> at(std::int64_t ns) const {
        return offset_ns_ ? std::optional{seconds(*offset_ns_) + seconds(ns)} : std::nullopt;
    }

private:
    std::optional<std::int64_t> offset_ns_;
};

}   // namespace

void RunLogger::log_settings(const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    auto settings = settings_of(summary, diagnosis);
    std::vector<LogSetting> all;
    for (auto& [name, value] : settings) {   // trackers take nothing but UTF-8
        name = printable(name);
        value = printable(value);
        all.push_back({name, value});
    }
    logger_->set_time(UnixTime{ledger}.at(ledger.start_ns));
    logger_->log_settings(all, report_names);
    has_settings_ = true;
}

RunLogger::Durations RunLogger::log_steps(const Ledger& ledger) {
    const UnixTime time{ledger};
    const LoaderRows rows{ledger};
    Durations durations;
    std::uint64_t step = 0;   // training steps so far, with those of which only totals are kept
    for (const FoldedAction& action : ledger.folded.actions)
        if (action.phase == Phase::train && action.action == Action::step)
            step = action.durations.calls();
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& row = ledger.steps[i];
        if (row.phase != Phase::train || row.size == 0 || row.status == StepStatus::failed)
            continue;
        const double draw_s = seconds(row.draw_ns), batch_s = seconds(row.batch_ns);
        durations.draws_s.push_back(draw_s);
        durations.batches_s.push_back(batch_s);
        if (++step <= logged_)
            continue;
        const double step_s = seconds(wrapping_sum(row.draw_ns, row.batch_ns));
        Scalars scalars{{"drawpoint/draw_s", draw_s}, {"drawpoint/batch_s", batch_s}, {"drawpoint/step_s", step_s}};
        if (step_s > 0) {
            scalars.push_back({"drawpoint/samples_per_s", static_cast<double>(row.size) / step_s});
            scalars.push_back({"drawpoint/draw_share", draw_s / step_s});
        }
        if (const std::uint32_t batch = rows.batch_of(i); batch != nothing)
            scalars.push_back({"drawpoint/ready_batches", static_cast<double>(ledger.batches[batch].ready_batches)});
        if (row.loss)
            scalars.push_back({"drawpoint/loss", *row.loss});
        logger_->set_time(time.at(end_ns(row)));
        logger_->log_scalars(scalars, step);
        logged_ = step;
    }
    return durations;
}

void RunLogger::update(const Ledger& ledger) {
    if (!has_settings_ && std::ranges::find(ledger.steps, Phase::train, &StepRow::phase) == ledger.steps.end())
        return;
    if (!has_settings_)
        log_settings(ledger, summarize(ledger), nullptr);
    log_steps(ledger);
}

void RunLogger::finish(const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    log_settings(ledger, summary, diagnosis);
    const Durations durations = log_steps(ledger);
    if (!ledger.steps.empty())
        logger_->set_time(UnixTime{ledger}.at(end_ns(ledger.steps.back())));
    logger_->log_summary("drawpoint/draws_s", durations.draws_s);
    logger_->log_summary("drawpoint/batches_s", durations.batches_s);
    logger_->log_scalars(report_scalars(summary, diagnosis), std::max<std::uint64_t>(logged_, 1));
    logger_->log_text("drawpoint/report", to_markdown(summary));
    if (diagnosis)
        logger_->log_text("drawpoint/verdict", to_markdown(*diagnosis));
    constexpr std::array<std::string_view, 3> signals{"Ctrl-C", "SIGTERM", "SIGHUP"};   // as `stopped` names them
    const bool failed =
        summary.left_out.failed > 0 || (summary.run.stopped && summary.run.stopped->starts_with("error: "));
    const bool interrupted = summary.run.stopped && std::ranges::find(signals, *summary.run.stopped) != signals.end();
    logger_->set_end(!summary.run.ended || interrupted ? RunEnd::killed : failed ? RunEnd::failed : RunEnd::finished);
}

std::span<const ScalarChart> run_charts() {
    static const std::array charts{
        ScalarChart{"where a step's time goes", {"drawpoint/draw_s", "drawpoint/batch_s"}},
        ScalarChart{"samples per second", {"drawpoint/samples_per_s"}},
        ScalarChart{"share of the draw", {"drawpoint/draw_share"}},
        ScalarChart{"batches that are ready", {"drawpoint/ready_batches"}},
        ScalarChart{"loss", {"drawpoint/loss"}},
    };
    return charts;
}

}   // namespace drawpoint
