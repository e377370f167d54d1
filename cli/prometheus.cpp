#include "cli/prometheus.hpp"

#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
public:
    void gauge(const char* name, const char* help, std::optional<double> value, Labels labels = {}) {
        if (value)
            metric(name, help, MetricType::Gauge, std::move(labels)).gauge.value = *value;
    }
    void counter(const char* name, const char* help, double value, Labels labels = {}) {
        metric(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
    }
    void summary(const char* name, const char* help, const auto& row, Labels labels) {
        ClientMetric::Summary& to = metric(name, help, MetricType::Summary, std::move(labels)).summary;
        to.sample_count = row.calls;
        to.sample_sum = row.total_s;
        to.quantile = {{0.5, row.median_s}, {0.9, row.p90_s}, {0.99, row.p99_s}};
    }
    [[nodiscard]] std::string text() const {
        std::ostringstream out;
        prometheus::TextSerializer{}.Serialize(out, all_);
        return out.str();
    }

private:
    ClientMetric& metric(const char* name, const char* help, MetricType type, Labels labels) {
        if (all_.empty() || all_.back().name != name)
            all_.push_back({name, help, type, {}});
        ClientMetric& one = all_.back().metric.emplace_back();
        for (ClientMetric::Label& label : labels)   // names of a recording need not be UTF-8
            label.value = printable(label.value);
        one.label = std::move(labels);
        return one;
    }

    std::vector<prometheus::MetricFamily> all_;
};

template <class T>
std::optional<double> number(const std::optional<T>& value) {
    return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
}

void add_run(Families& to, const Summary& summary, const Diagnosis* diagnosis) {
    const Summary::Run& run = summary.run;
    Labels labels{{"version", run.version.value_or("")}, {"digest", run.digest.value_or("")}, {"order", run.order}};
    if (diagnosis) {
        labels.push_back({"verdict", std::string{to_string(diagnosis->verdict)}});
        labels.push_back({"advice", diagnosis->advice ? diagnosis->advice->change : ""});
    }
    to.gauge("drawpoint_run_info", "The run, and what holds it back.", 1, std::move(labels));
    to.gauge("drawpoint_run_ended", "Whether the recording has the run's end.", run.ended && run.steps > 0 ? 1 : 0);
    to.counter("drawpoint_run_seconds_total", "Wall time of the run.", run.wall_s);
    to.counter("drawpoint_steps_total", "Steps begun.", static_cast<double>(run.steps));
    to.counter("drawpoint_samples_total", "Samples in the batches drawn.", static_cast<double>(run.samples));
    to.counter("drawpoint_epochs_total", "Epochs begun.", static_cast<double>(run.epochs));
    to.gauge("drawpoint_num_workers", "Workers the loader was made with.", run.num_workers);
    to.gauge("drawpoint_prefetch_depth", "Batches loaded ahead.", run.prefetch_depth);
    to.gauge("drawpoint_batch_size", "Samples a batch.", run.batch_size);
}

void add_draws(Families& to, const Summary& summary, const Diagnosis* diagnosis) {
    for (const SummaryRow& row : summary.rows)
        to.summary("drawpoint_action_seconds", "Time of what the loop did, by phase and action.", row,
                   {{"phase", std::string{row.phase}}, {"action", std::string{name_of(row.action)}}});
    for (const SummaryRow& row : summary.rows)
        to.gauge("drawpoint_samples_per_second", "Rate of samples, as the report has it.", row.samples_per_s,
                 {{"phase", std::string{row.phase}}, {"action", std::string{name_of(row.action)}}});
    for (const auto& [part, s] : {std::pair{"starved", summary.draw.starved_s},
                                  {"handoff", summary.draw.handoff_s},
                                  {"transfer", summary.draw.transfer_s},
                                  {"callbacks", summary.draw.callbacks_s}})
        to.counter("drawpoint_draw_seconds_total", "Time in draws, by part.", s, {{"part", part}});
    if (diagnosis)   // two causes may have the same name, but not the same key; what is steady changes as a run goes on
        for (const BlameRow& row : diagnosis->blame_rows)
            to.gauge("drawpoint_draw_blame_seconds", "Time that steady training draws waited, by cause.",
                     static_cast<double>(row.ns) / 1e9, {{"cause", row.cause}, {"key", row.key}});
    to.counter("drawpoint_order_seconds_total", "Time that complete batches waited behind older ones.",
               summary.draw.order_s);
    to.gauge("drawpoint_draw_gain_ratio", "Gain of throughput if draws took no time.",
             summary.headroom.throughput_gain_if_draw_were_zero);
}

void add_loader(Families& to, const Summary& summary) {
    for (const StageSummary& stage : summary.stages)
        to.summary("drawpoint_stage_seconds", "Time of a sample in a stage of the loader.", stage,
                   {{"stage", stage.stage}});
    for (const StageSummary& stage : summary.stages)
        to.counter("drawpoint_stage_read_bytes_total", "Bytes read from storage.", static_cast<double>(stage.bytes),
                   {{"stage", stage.stage}});
    for (const StageSummary& stage : summary.stages)
        to.counter("drawpoint_stage_failures_total", "Samples that failed.", static_cast<double>(stage.failures),
                   {{"stage", stage.stage}});
    for (const WorkerSummary& worker : summary.workers)
        to.gauge("drawpoint_worker_busy_ratio", "Part of the time that a worker was busy.", worker.busy_share,
                 {{"worker", fmt::format("{}", worker.worker)}});
    if (summary.queue) {
        to.gauge("drawpoint_ready_batches", "Batches ready to be drawn, mean over time.", summary.queue->mean_ready);
        to.gauge("drawpoint_queue_empty_ratio", "Part of the time without a ready batch.", summary.queue->empty_share);
    }
    to.gauge("drawpoint_planned_memory_bytes", "Memory planned for loaders.", number(summary.memory.planned_bytes));
    to.gauge("drawpoint_loader_peak_bytes", "Most memory that loaders held.", number(summary.memory.loader_peak_bytes));
    to.gauge("drawpoint_process_peak_bytes", "Most memory of the process.", number(summary.memory.peak_bytes));
}

void add_trust(Families& to, const Summary& summary) {
    if (summary.trust) {
        to.gauge("drawpoint_trusted", "Whether nothing speaks against the numbers.", summary.trust->trusted ? 1 : 0);
        to.gauge("drawpoint_interference_ratio", "Part of the cores that other processes used.",
                 summary.trust->interference_share);
        to.gauge("drawpoint_steal_ratio", "Part of the cores that the hypervisor took.", summary.trust->steal_share);
    }
    to.gauge("drawpoint_largest_residual_seconds", "Time that the recorded pieces of a pass lack.",
             static_cast<double>(summary.conservation.max_residual_ns) / 1e9);
    to.counter("drawpoint_dropped_records_total", "Records lost.", static_cast<double>(summary.recording.dropped));
}

}   // namespace

std::string to_prometheus(const Summary& summary, const Diagnosis* diagnosis) {
    Families families;
    add_run(families, summary, diagnosis);
    add_draws(families, summary, diagnosis);
    add_loader(families, summary);
    add_trust(families, summary);
    return families.text();
}

}   // namespace drawpoint::cli
