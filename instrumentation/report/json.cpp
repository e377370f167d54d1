#include <drawpoint/instrumentation/report/json.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

namespace drawpoint {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

template <class T>
Json known(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json array_of(const auto& rows, auto json_of) {
    Json array = Json::array();
    for (const auto& row : rows)
        array.push_back(json_of(row));
    return array;
}

Json row_json(const SummaryRow& row) {
    return {{"phase", row.phase},
            {"action", name_of(row.action)},
            {"calls", row.calls},
            {"mean_s", number(row.mean_s)},
            {"std_s", number(row.std_s)},
            {"median_s", number(row.median_s)},
            {"p90_s", number(row.p90_s)},
            {"p99_s", number(row.p99_s)},
            {"total_s", number(row.total_s)},
            {"share_of_total", number(row.share_of_total)},
            {"samples_per_s", number(row.samples_per_s)}};
}

Json stage_json(const StageSummary& stage) {
    return {{"stage", stage.stage},
            {"calls", stage.calls},
            {"mean_s", number(stage.mean_s)},
            {"median_s", number(stage.median_s)},
            {"p90_s", number(stage.p90_s)},
            {"p99_s", number(stage.p99_s)},
            {"total_s", number(stage.total_s)},
            {"cpu_s", number(stage.cpu_s)},
            {"run_queue_s", number(stage.run_queue_s)},
            {"bytes", stage.bytes},
            {"failures", stage.failures}};
}

Json blame_json(const BlameSummary& blame) {
    return {{"cause", blame.cause}, {"total_s", number(blame.total_s)}, {"share", number(blame.share)}};
}

Json run_json(const Summary::Run& run) {
    return {{"batch_size", run.batch_size},
            {"num_workers", run.num_workers},
            {"prefetch_depth", run.prefetch_depth},
            {"order", run.order},
            {"epochs", run.epochs},
            {"steps", run.steps},
            {"samples", run.samples},
            {"wall_s", number(run.wall_s)},
            {"samples_per_s", number(run.samples_per_s())},
            {"stopped", run.ended ? known(run.stopped) : Json("the recording stops inside the run")},
            {"digest", known(run.digest)}};
}

/// Each bin that has draws.
Json draws_json(const Summary::Draws& draws) {
    Json histogram = Json::array();
    for (std::size_t i = 0; i < draws.counts.size(); ++i)
        if (draws.counts[i] > 0)
            histogram.push_back(
                {{"from_s", draws.begin_s(i)}, {"to_s", draws.begin_s(i + 1)}, {"draws", draws.counts[i]}});
    return {{"phase", draws.phase}, {"over_run_s", draws.over_run_s}, {"histogram", histogram}};
}

Json draw_json(const Summary& summary) {
    const Summary::Draw& draw = summary.draw;
    return {{"callbacks_s", number(draw.callbacks_s)},
            {"starved_s", number(draw.starved_s)},
            {"handoff_s", number(draw.handoff_s)},
            {"transfer_s", number(draw.transfer_s)},
            {"order", {{"lost_s", number(draw.order_s)}, {"share", number(draw.order_share)}}},
            {"blame", summary.blame ? array_of(*summary.blame, blame_json) : Json(nullptr)}};
}

Json device_json(const Summary::Device& device) {
    return {{"name", text_or_null(device.name)},
            {"steps", device.steps},
            {"time_s", number(device.time_s)},
            {"dry_s", number(device.dry_s)},
            {"copy_wait_s", number(device.copy_wait_s)},
            {"span_s", number(device.span_s)},
            {"dry",
             {{"exposed_s", number(device.exposed_s)},
              {"step_s", number(device.step_s)},
              {"between_s", number(device.between_s)},
              {"launch_s", number(device.launch_s)}}},
            {"draw",
             {{"hidden_s", number(device.hidden_s)},
              {"starved_s", number(device.starved_s)},
              {"handoff_s", number(device.handoff_s)},
              {"transfer_s", number(device.transfer_s)},
              {"callbacks_s", number(device.callbacks_s)}}},
            {"mean_lag_s", number(device.mean_lag_s)},
            {"mean_forward_lag_s", number(device.mean_forward_lag_s)},
            {"paced_by_loop", device.is_paced_by_loop()},
            {"synchronised", device.is_synchronised()},
            {"uncertainty_s", number(device.uncertainty_s)},
            {"copies", device.copies},
            {"copied_bytes", device.copied_bytes},
            {"copy_s", number(device.copy_s)}};
}

Json worker_json(const WorkerSummary& worker) {
    return {{"worker", worker.worker}, {"busy_share", number(worker.busy_share)}, {"samples", worker.samples}};
}

Json queue_json(const std::optional<Summary::Queue>& queue) {
    const auto of_queue = [&](double Summary::Queue::* member) {
        return queue ? number((*queue).*member) : Json(nullptr);
    };
    return {{"mean_ready", of_queue(&Summary::Queue::mean_ready)},
            {"occupancy", of_queue(&Summary::Queue::occupancy)},
            {"empty_share", of_queue(&Summary::Queue::empty_share)}};
}

Json memory_json(const Summary::Memory& memory) {
    return {{"planned_bytes", known(memory.planned_bytes)},
            {"loader_peak_bytes", known(memory.loader_peak_bytes)},
            {"slots_bytes", known(memory.slots_bytes)},
            {"peak_bytes", known(memory.peak_bytes)},
            {"slots_replaced", known(memory.slots_replaced)},
            {"allocations_per_batch", number(memory.allocations_per_batch)},
            {"minor_faults_per_batch", number(memory.minor_faults_per_batch)}};
}

Json reading_json(const Summary::Reading& reading) {
    return {{"ahead_share", number(reading.ahead_share)},
            {"mean_s", number(reading.mean_s)},
            {"mean_in_flight", number(reading.mean_in_flight)},
            {"retries", reading.retries}};
}

Json cache_json(const Summary::Cache& cache) {
    return {{"hits", cache.hits},       {"misses", cache.misses}, {"hit_share", number(cache.hit_share())},
            {"samples", cache.samples}, {"bytes", cache.bytes},   {"budget_bytes", cache.budget_bytes},
            {"origin", cache.origin}};
}

Json recording_json(const Summary::Recording& recording) {
    return {{"file", text_or_null(recording.file)},
            {"bytes", known(recording.bytes)},
            {"events", known(recording.events)},
            {"dropped", recording.dropped},
            {"thinned_to", recording.thinned_to},
            {"ns_per_event", number(recording.ns_per_event)},
            {"share_of_cpu", number(recording.share_of_cpu)},
            {"error", known(recording.error)},
            {"percentile_error_share", number(recording.percentile_error_share)}};
}

Json trust_json(const TrustSummary& trust) {
    return {{"trusted", trust.trusted},
            {"interference_share", number(trust.interference_share)},
            {"steal_share", number(trust.steal_share)},
            {"reasons", trust.reasons}};
}

Json error_json(const ErrorSummary& error) {
    return {{"index", error.index},
            {"path", text_or_null(error.path)},
            {"stage", error.stage},
            {"message", error.message},
            {"handling", text_or_null(error.handling)}};
}

}   // namespace

Json json_document(std::string_view schema, const JsonHead& head, const Machine& machine) {
    Json libraries = Json::object();
    for (const auto& [name, version] : machine.libraries)
        libraries[name] = version;
    return {{"schema", schema},
            {"version", head.version},
            {"command", head.command},
            {"machine",
             {{"cpu", text_or_null(machine.cpu)},
              {"cores_usable", known(machine.cores_usable)},
              {"kernel", text_or_null(machine.kernel)},
              {"compiler", text_or_null(machine.compiler)},
              {"libraries", libraries}}}};
}

Json to_json(const Summary& summary, const JsonHead& head) {
    Json document = json_document("drawpoint.report/1", head, summary.machine);
    document["run"] = run_json(summary.run);
    document["rows"] = array_of(summary.rows, row_json);
    document["draw"] = draw_json(summary);
    document["draws"] = summary.draws ? draws_json(*summary.draws) : Json(nullptr);
    document["device"] = summary.device ? device_json(*summary.device) : Json(nullptr);
    document["stages"] = array_of(summary.stages, stage_json);
    document["workers"] = array_of(summary.workers, worker_json);
    document["queue"] = queue_json(summary.queue);
    document["memory"] = memory_json(summary.memory);
    document["reading"] = summary.reading ? reading_json(*summary.reading) : Json(nullptr);
    document["cache"] = summary.cache ? cache_json(*summary.cache) : Json(nullptr);
    document["conservation"] = {{"steps", summary.conservation.steps},
                                {"max_residual_ns", summary.conservation.max_residual_ns},
                                {"untiled_ns", summary.conservation.untiled_ns},
                                {"unmarked_ns", summary.conservation.unmarked_ns},
                                {"clamped_ns", summary.conservation.clamped_ns},
                                {"ahead_ns", summary.conservation.ahead_ns},
                                {"other_share_of_batch", number(summary.conservation.other_share_of_batch)}};
    document["headroom"] = {
        {"throughput_gain_if_draw_were_zero", number(summary.headroom.throughput_gain_if_draw_were_zero)}};
    document["recording"] = recording_json(summary.recording);
    document["trust"] = summary.trust ? trust_json(*summary.trust) : Json(nullptr);
    document["model"] = {{"loss_first", number(summary.model.loss_first)},
                         {"loss_last", number(summary.model.loss_last)},
                         {"accuracy", number(summary.model.accuracy)}};
    document["errors"] = array_of(summary.errors, error_json);
    return document;
}

std::string json_text(const Json& document) {
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}   // namespace drawpoint
