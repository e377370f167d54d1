#include <drawpoint/bench/experiment/counts.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/rows.hpp"
#include "bench/experiment/turn_json.hpp"
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> findings{"equal",
                                                   "fewer",
                                                   "more",
                                                   "no difference shown",
                                                   "too few rounds to say",
                                                   "not compared: other samples",
                                                   "not compared: turns of other lengths (--turn-ms 0 has one run)"};
constexpr const char *bytes_a_sample = "bytes read a sample", *samples_failed = "samples failed",
                     *records_lost = "records lost";
constexpr std::string_view nothing_counted = "there is nothing that both files count\n";

Interval range_of(const ResultRow& row) {
    const auto [least, most] = std::ranges::minmax(row.values);
    return {.median = statistics::quantile(row.values, 0.5), .low = least, .high = most};
}

/// log of the probability that all values of one side are above all of the other's, if nothing was changed.
double log_chance(std::size_t n, std::size_t m) {
    const auto log_factorial = [](std::size_t k) { return std::lgamma(static_cast<double>(k) + 1); };
    return log_factorial(n) + log_factorial(m) - log_factorial(n + m);
}

CountFinding find(const Interval& base, const Interval& value, bool is_enough) {
    if (base.low == base.high && base == value)
        return CountFinding::equal;
    if (!is_enough)
        return CountFinding::too_few_rounds;
    return value.low > base.high   ? CountFinding::more
           : value.high < base.low ? CountFinding::fewer
                                   : CountFinding::no_difference_shown;
}

/// Calls see(row) for the samples, or the failures, of batches that were drawn: what was prefetched beyond them depends
/// on timing.
template <class Row, class F>
void for_each_drawn(const Ledger& ledger, const std::vector<Row>& rows, F&& see) {
    using Key = std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>;
    std::set<Key> drawn;
    for (const BatchRow& batch : ledger.batches)
        if (batch.status != BatchStatus::abandoned)
            drawn.emplace(batch.pipeline, batch.epoch, batch.batch);
    for (const Row& row : rows)
        if (drawn.contains({row.pipeline, row.epoch, row.batch}))
            see(row);
}

/// The samples that were drawn: their number by index.
std::map<std::uint64_t, std::uint64_t> samples_of(const Ledger& ledger) {
    std::map<std::uint64_t, std::uint64_t> number;
    for_each_drawn(ledger, ledger.samples, [&](const SampleRow& row) { number[row.index] += row.samples; });
    return number;
}

Results counts_of(const Ledger& ledger) {
    const Summary summary = summarize(ledger);
    Results results;
    const auto add = [&](const char* name, Metric::Unit unit, auto value, bool is_exact) {
        if (const std::optional known{value})
            results.rows.push_back(
                {.name = name, .unit = unit, .values = {static_cast<double>(*known)}, .is_exact = is_exact});
    };
    using enum Metric::Unit;
    const Summary::Memory& memory = summary.memory;
    add("residual, ns", count, std::max(summary.conservation.max_residual_ns, summary.conservation.untiled_ns), true);
    add(records_lost, count, summary.recording.dropped, true);
    std::size_t failed = 0;
    for_each_drawn(ledger, ledger.failures, [&](const FailureRow&) { ++failed; });
    add(samples_failed, count, failed, true);
    double read = 0, samples = 0;
    for_each_drawn(ledger, ledger.samples, [&](const SampleRow& row) {
        read += static_cast<double>(row.bytes);
        samples += row.samples;
    });
    if (samples > 0)
        add(bytes_a_sample, bytes, read / samples, true);
    add("batch memory", bytes, memory.slots_bytes, true);
    add("memory planned", bytes, memory.planned_bytes, true);
    add("allocations a batch", count, memory.allocations_per_batch, false);
    add("page faults a batch", count, memory.minor_faults_per_batch, false);
    add("peak memory of loaders", bytes, memory.loader_peak_bytes, false);
    add("peak memory", bytes, memory.peak_bytes, false);
    return results;
}

/// "1,234", or "1,230 … 1,251" of several rounds.
std::string range_text(const Interval& range, Metric::Unit unit) {
    const std::string low = value_text(range.low, unit);
    return range.low == range.high ? low : fmt::format("{} … {}", low, value_text(range.high, unit));
}

}   // namespace

std::vector<CountComparison> compare_counts(const Results& base, const Results& candidate, double error) {
    std::vector<std::pair<const ResultRow*, const ResultRow*>> both;
    std::size_t noisy = 0;
    for (const ResultRow& row : candidate.rows) {
        const auto before = std::ranges::find(base.rows, row.name, &ResultRow::name);
        if (before == base.rows.end() || before->unit != row.unit || !is_counted(row.unit))
            continue;
        both.emplace_back(&*before, &row);
        noisy += !(before->is_exact && row.is_exact);
    }
    std::vector<CountComparison> found;
    for (const auto& [before, row] : both) {
        const Interval of_base = range_of(*before), of_new = range_of(*row);
        const bool is_exact = before->is_exact && row->is_exact;
        const bool is_enough = is_exact || log_chance(before->values.size(), row->values.size()) <=
                                               std::log(error / static_cast<double>(noisy));
        found.push_back(
            {row->name, row->unit, of_base, of_new,
             is_exact || before->runs == row->runs ? find(of_base, of_new, is_enough) : CountFinding::other_turns});
    }
    return found;
}

std::vector<CountComparison> compare_counts(const Ledger& base, const Ledger& candidate, double error) {
    std::vector<CountComparison> found = compare_counts(counts_of(base), counts_of(candidate), error);
    const bool have_other_samples = samples_of(base) != samples_of(candidate);
    for (CountComparison& one : found) {
        if (have_other_samples && (one.name == bytes_a_sample || one.name == samples_failed))
            one.finding = CountFinding::other_samples;
        if (one.name == records_lost && one.base.median != 0 && one.value.median != 0)
            one.finding = CountFinding::too_few_rounds;   // how many are lost is chance, whether any are is not
    }
    return found;
}

std::vector<std::string> counted_by_one(const Results& a, const Results& b) {
    std::vector<std::string> names;
    const auto add_those_without = [&names](const Results& these, const Results& others) {
        for (const ResultRow& row : these.rows)
            if (is_counted(row.unit) && std::ranges::find(others.rows, row.name, &ResultRow::name) == others.rows.end())
                names.push_back(row.name);
    };
    add_those_without(a, b);
    add_those_without(b, a);
    return names;
}

std::string_view to_text(CountFinding finding) noexcept { return findings[static_cast<std::size_t>(finding)]; }

std::string counts_to_text(std::span<const CountComparison> all, TextOptions options) {
    if (all.empty())
        return std::string{nothing_counted};
    TextTable table{.titles = {"", "base", "new", ""}, .align = "lrrl"};
    for (const CountComparison& one : all) {
        const TextStyle style = one.finding == CountFinding::more    ? TextStyle::red
                                : one.finding == CountFinding::fewer ? TextStyle::green
                                                                     : TextStyle::plain;
        table.rows.push_back({printable(one.name), range_text(one.base, one.unit), range_text(one.value, one.unit),
                              styled(to_text(one.finding), style, options.colour)});
    }
    return to_text(table, options);
}

std::string counts_to_markdown(std::span<const CountComparison> all) {
    if (all.empty())
        return std::string{nothing_counted};
    std::string text = "| | base | new | |\n|---|---|---|---|\n";
    for (const CountComparison& one : all)
        text += fmt::format("| {} | {} | {} | {} |\n", markdown_cell(printable(one.name)),
                            range_text(one.base, one.unit), range_text(one.value, one.unit), to_text(one.finding));
    return text;
}

Json counts_to_json(std::span<const CountComparison> all, const JsonHead& head, const Machine& machine) {
    Json document = json_document("drawpoint.count-comparison/1", head, machine);
    document["rows"] = Json::array();
    const auto range = [](const Interval& it) {
        return Json{{"least", it.low}, {"median", it.median}, {"most", it.high}};
    };
    for (const CountComparison& one : all)
        document["rows"].push_back({{"name", one.name},
                                    {"unit", unit_name(one.unit)},
                                    {"base", range(one.base)},
                                    {"new", range(one.value)},
                                    {"finding", to_text(one.finding)}});
    return document;
}

}   // namespace drawpoint::bench
