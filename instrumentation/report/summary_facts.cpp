#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/order_rule.hpp>

#include "instrumentation/report/durations.hpp"
#include "instrumentation/report/summary_parts.hpp"

namespace drawpoint {
namespace {

std::optional<std::string> text_of(const Ledger& ledger, std::string_view key) {
    const auto value = ledger.fact(key);
    return value ? std::optional<std::string>{*value} : std::nullopt;
}

template <class Number>
std::optional<Number> number_of(const Ledger& ledger, std::string_view key) {
    const auto text = ledger.fact(key);
    Number value{};
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
        return std::nullopt;
    return value;
}

std::optional<Summary::Reading> reading_of(const Ledger& ledger) {
    const std::int64_t retries = number_of<std::int64_t>(ledger, facts::read_retries).value_or(0);
    std::uint64_t samples = 0, ahead = 0;
    double total_ns = 0;
    std::int64_t from_ns = std::numeric_limits<std::int64_t>::max(), to_ns = 0;
    const auto length_ns = [](std::int64_t from, std::int64_t to) {   // of a damaged recording too
        return static_cast<double>(static_cast<std::int64_t>(wrapping_difference(to, from)));
    };
    for (const SampleRow& sample : ledger.samples) {
        samples += sample.samples;
        if (sample.read_begin_ns == no_stamp || sample.read_end_ns == no_stamp)
            continue;
        ++ahead;
        total_ns += length_ns(sample.read_begin_ns, sample.read_end_ns);
        from_ns = std::min(from_ns, sample.read_begin_ns);
        to_ns = std::max(to_ns, sample.read_end_ns);
    }
    if (ahead == 0 && retries == 0)
        return std::nullopt;
    Summary::Reading reading{.ahead_share = ratio(static_cast<double>(ahead), static_cast<double>(samples)),
                             .mean_s = 0,
                             .mean_in_flight = std::nullopt,
                             .retries = retries};
    if (ahead != 0) {
        reading.mean_s = total_ns / static_cast<double>(ahead) / 1e9;
        reading.mean_in_flight = ratio(total_ns, length_ns(from_ns, to_ns));
    }
    return reading;
}

/// Name (without the prefix) and value of every fact whose key begins with `prefix`.
std::vector<Fact> facts_under(const Ledger& ledger, std::string_view prefix) {
    std::vector<Fact> found;
    for (const auto& [key, value] : ledger.facts)
        if (key.starts_with(prefix))
            found.emplace_back(key.substr(prefix.size()), value);
    return found;
}

void add_errors(Summary& summary, const Ledger& ledger) {
    for (const FailureRow& failure : ledger.failures) {
        ErrorSummary& error =
            summary.errors.emplace_back(failure.index, failure.path, failure.stage, failure.message, "");
        if (failure.pipeline >= ledger.pipelines.size())
            continue;
        const auto batch = std::tuple{failure.pipeline, failure.epoch, failure.batch};
        const auto rows = std::ranges::equal_range(   // one that was given up may have been made again
            ledger.batches, batch, {}, [](const BatchRow& r) { return std::tuple{r.pipeline, r.epoch, r.batch}; });
        if (rows.empty() || std::ranges::find(rows, BatchStatus::taken, &BatchRow::status) != rows.end())
            error.handling =
                text_of(ledger, std::string{facts::on_error_prefix} + ledger.pipelines[failure.pipeline].name)
                    .value_or("");
    }
}

}   // namespace

void add_facts(Summary& summary, const Ledger& ledger) {
    Summary::Run& run = summary.run;
    run.stopped = text_of(ledger, facts::stopped);
    run.digest = text_of(ledger, facts::digest);
    run.version = text_of(ledger, facts::version);
    run.clock = text_of(ledger, facts::clock);
    run.options = facts_under(ledger, facts::option_prefix);
    if (const auto order = ledger.fact(std::string{facts::option_prefix} + "order"))
        run.order = *order;
    else if (!ledger.pipelines.empty())
        run.order = to_string(ledger.pipelines.front().order);
    if (!ledger.pipelines.empty()) {
        const PipelineRow& pipeline = ledger.pipelines.front();
        run.batch_size = pipeline.batch_size;
        run.num_workers = pipeline.num_workers;
        run.prefetch_depth = pipeline.prefetch_depth;
    }
    for (const PassRow& pass : ledger.passes) {
        run.epochs += pass.kind == PassKind::epoch ? 1 : 0;
        run.ended &= pass.ended;
    }

    Summary::Memory& memory = summary.memory;
    summary.reading = reading_of(ledger);
    if (const auto hits = number_of<std::int64_t>(ledger, facts::cache_hits))
        summary.cache =
            Summary::Cache{.hits = *hits,
                           .misses = number_of<std::int64_t>(ledger, facts::cache_misses).value_or(0),
                           .samples = number_of<std::int64_t>(ledger, facts::cache_samples).value_or(0),
                           .bytes = number_of<std::int64_t>(ledger, facts::cache_bytes).value_or(0),
                           .budget_bytes = number_of<std::int64_t>(ledger, facts::cache_budget_bytes).value_or(0),
                           .origin = text_of(ledger, facts::cache_origin).value_or("")};
    memory.planned_bytes = number_of<std::int64_t>(ledger, facts::planned_bytes);
    memory.loader_peak_bytes = number_of<std::int64_t>(ledger, facts::loader_peak_bytes);
    memory.slots_bytes = number_of<std::int64_t>(ledger, facts::slots_bytes);
    memory.peak_bytes = number_of<std::int64_t>(ledger, facts::peak_bytes);
    memory.slots_replaced = number_of<std::int64_t>(ledger, facts::slots_replaced);
    memory.allocations_per_batch = number_of<double>(ledger, facts::allocations_per_batch);
    memory.minor_faults_per_batch = number_of<double>(ledger, facts::minor_faults_per_batch);

    Summary::Recording& recording = summary.recording;
    recording.events = number_of<std::int64_t>(ledger, facts::recording_events);
    recording.ns_per_event = number_of<double>(ledger, facts::ns_per_event);
    recording.share_of_cpu = number_of<double>(ledger, facts::share_of_cpu);
    recording.dropped = ledger.dropped_records();
    recording.thinned_to = ledger.thinned_to();
    if (ledger.folded.until_ns != no_stamp)
        recording.percentile_error_share = DurationHistogram::quantile_error_share;

    summary.model.accuracy = number_of<double>(ledger, facts::accuracy);
    summary.machine = {.cpu = text_of(ledger, facts::machine_cpu).value_or(""),
                       .kernel = text_of(ledger, facts::machine_kernel).value_or(""),
                       .compiler = text_of(ledger, facts::machine_compiler).value_or(""),
                       .cores_usable = number_of<std::int64_t>(ledger, facts::machine_cores),
                       .libraries = facts_under(ledger, facts::machine_library_prefix)};
    add_errors(summary, ledger);
}

}   // namespace drawpoint
