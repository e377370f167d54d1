#include "output.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "bench/spread.hpp"

namespace drawpoint::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double least_of_published = 0.85;   // a peer below this share of its published rate is probably misconfigured

/// One number per round that counts.
template <class F>
Spread over_rounds(const Row& row, F figure) {
    std::vector<double> values;
    for (const Passes& round : row.rounds)
        values.push_back(figure(round));
    return spread_of(values);
}

/// How much longer `theirs` takes than `base` for an item, round by round.
Spread ratios(const Row& base, const Row& theirs) {
    std::vector<double> values;
    for (std::size_t i = 0; i < std::min(base.rounds.size(), theirs.rounds.size()); ++i)
        values.push_back(base.rounds[i].items_per_s() / theirs.rounds[i].items_per_s());
    return spread_of(values);
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double ms_per(std::int64_t ns, std::uint64_t count) {
    return static_cast<double>(ns) * 1e-6 / static_cast<double>(count);
}

const Row* find_row(const LoaderComparison& comparison, std::string_view contender, std::string_view variant) {
    const auto found = std::ranges::find_if(comparison.rows, [&](const Row& row) {
        return row.entry.workload.contender == contender && row.entry.workload.variant == variant &&
               !row.rounds.empty();
    });
    return found == comparison.rows.end() ? nullptr : &*found;
}

/// drawpoint's row with this decoder, if the run has one; else null.
const Row* row_with(const LoaderComparison& comparison, std::string_view decoder) {
    const Row* row = find_row(comparison, "drawpoint", decoder);
    return row && row->entry.workload.jpeg_decoder == decoder ? row : nullptr;
}

/// What a row is compared with: the row with the same decoder if both use drawpoint's kernel, else the first row.
const Row& base_of(const Row& row, const LoaderComparison& comparison) {
    const Workload& workload = row.entry.workload;
    const bool has_choice = workload.has_our_kernel() && workload.contender != "drawpoint";
    const Row* same = has_choice ? row_with(comparison, workload.jpeg_decoder) : nullptr;
    return same ? *same : comparison.rows.front();
}

Json spread_json(const Spread& spread) {
    if (!std::isfinite(spread.median))
        return nullptr;
    return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

/// Adds the ratios to drawpoint with each decoder, the ratio of the first batch of fresh loaders, and the share of the
/// bound's rate.
void add_ratios(Json& json, const Row& row, const LoaderComparison& comparison) {
    const Workload& workload = row.entry.workload;
    for (const char* decoder : {"library", "own"}) {
        const Row* ours = row_with(comparison, decoder);
        const bool is_other = workload.has_our_kernel() && workload.contender != "drawpoint" &&
                              workload.jpeg_decoder != decoder;   // this ratio would compare decoders, not loaders
        json[fmt::format("ratio_to_{}", decoder)] = ours && !is_other ? spread_json(ratios(*ours, row)) : Json(nullptr);
    }
    std::vector<double> sooner;
    const Row& base = base_of(row, comparison);
    for (std::size_t i = 0; i < std::min(base.rounds.size(), row.rounds.size()); ++i)
        if (base.rounds[i].fresh_first_batch_ns > 0 && row.rounds[i].fresh_first_batch_ns > 0)
            sooner.push_back(static_cast<double>(row.rounds[i].fresh_first_batch_ns) /
                             static_cast<double>(base.rounds[i].fresh_first_batch_ns));
    json["fresh_first_batch_ratio"] = spread_json(spread_of(sooner));
    const auto bound =
        std::ranges::find_if(comparison.rows, [](const Row& one) { return one.entry.is_bound && !one.rounds.empty(); });
    json["share_of_bound"] = bound != comparison.rows.end() ? spread_json(ratios(row, *bound)) : Json(nullptr);
}

/// Adds the row's rate relative to PyTorch's loader in this run, and the published or earlier one.
void add_published(Json& json, const Row& row, const LoaderComparison& comparison) {
    json["ratio_to_pytorch"] = json["published_ratio_to_pytorch"] = json["misconfigured"] = nullptr;
    const Row* torch = find_row(comparison, "pytorch", "persistent");
    if (!torch || row.rounds.empty() || row.entry.is_bound)
        return;
    const double ratio = 1 / ratios(*torch, row).median, published = row.entry.published;
    json["ratio_to_pytorch"] = ratio;
    if (published <= 0)
        return;
    json["published_ratio_to_pytorch"] = published;
    // The known ratios were measured with two workers and Pillow's filter.
    if (row.entry.workload.num_workers == 2 && row.entry.workload.resize_filter == "antialias")
        json["misconfigured"] =
            ratio < least_of_published * published
                ? Json(fmt::format("{:.2f} times PyTorch's rate, where {:.2f} is known", ratio, published))
                : Json(nullptr);
}

/// The bounds of the ratio of a row's time for an item to the first row's, which hold for all rows together.
Json bounds_json(const Row& row, const LoaderComparison& comparison, std::span<const Comparison> found) {
    const auto number = static_cast<std::size_t>(&row - comparison.rows.data());
    for (const Comparison& one : found)
        if (one.contender == number && one.metric == 0 && one.ratio.low > 0 && one.ratio.low <= one.ratio.high &&
            std::isfinite(one.ratio.high))
            return {{"low", one.ratio.low}, {"high", one.ratio.high}};
    return nullptr;
}

double most_steal(const Measurements& measured) {
    double most = 0;
    for (const Round& round : measured.rounds)
        most = std::max(most, round.steal.value_or(0));
    return most;
}

Json row_json(const Row& row, const LoaderComparison& comparison, std::span<const Comparison> found) {
    const Workload& workload = row.entry.workload;
    const Row& base = base_of(row, comparison);
    const bool has_bound = !row.rounds.empty() && row.rounds.front().bound_ns > 0;
    const Spread ratio =
        has_bound
            ? over_rounds(
                  row, [](const Passes& r) { return static_cast<double>(r.wall_ns) / static_cast<double>(r.bound_ns); })
            : ratios(base, row);
    const auto rate = [](const Passes& r) { return r.items_per_s(); };
    const auto first = [](const Passes& r) { return ms_per(r.first_batch_ns, 1); };
    const auto fresh = [](const Passes& r) { return ms_per(r.fresh_first_batch_ns, 1); };
    const auto cpu = [](const Passes& r) { return ms_per(r.cpu_ns, r.items); };
    const auto batch = [](const Passes& r) { return ms_per(r.wall_ns, r.batches); };
    const auto faults = [](const Passes& r) {
        return static_cast<double>(r.minor_faults) / static_cast<double>(r.batches);
    };
    const bool asked_fresh = !row.rounds.empty() && row.rounds.front().fresh_first_batch_ns > 0;
    const bool delivers = !row.entry.is_bound;
    const bool counts_all = !has_bound;   // else a pass that is not counted measured the bound
    Json json{
        {"workload", workload.kind},
        {"contender", workload.contender},
        {"variant", workload.variant},
        {"rounds", row.rounds.size()},
        {"ratio_median", number_or_null(ratio.median)},
        {"ratio_low", number_or_null(ratio.low)},
        {"ratio_high", number_or_null(ratio.high)},
        {"bounds_to_first", bounds_json(row, comparison, found)},
        {"ratio_to", has_bound ? "the longer of compute and production" : "drawpoint " + base.entry.workload.variant},
        {"ours", number_or_null(over_rounds(base, rate).median)},
        {"theirs", number_or_null(over_rounds(row, rate).median)},
        {"ms_per_batch", number_or_null(over_rounds(row, batch).median)},
        {"cpu_ms_per_item", counts_all ? number_or_null(over_rounds(row, cpu).median) : Json(nullptr)},
        {"first_batch_ms", delivers ? number_or_null(over_rounds(row, first).median) : Json(nullptr)},
        {"fresh_first_batch_ms", asked_fresh ? number_or_null(over_rounds(row, fresh).median) : Json(nullptr)},
        {"minor_faults_per_batch", counts_all ? number_or_null(over_rounds(row, faults).median) : Json(nullptr)},
        {"output_checked", !row.check.what.empty() && row.check.passed && delivers},
        {"check", row.check.what.empty() ? Json(nullptr) : Json(row.check.what)},
        {"max_difference", row.check.max_difference},
        {"mean_difference", row.check.mean_difference}};
    add_ratios(json, row, comparison);
    add_published(json, row, comparison);
    json["num_workers"] = workload.num_workers;
    json["jpeg_decoder"] = workload.has_our_kernel() ? Json(workload.jpeg_decoder) : Json(nullptr);
    json["settings"] = row.settings.empty() ? Json(nullptr) : Json(row.settings);
    json["not_run"] = row.not_run ? Json(*row.not_run) : Json(nullptr);
    return json;
}

Json environment_json() {
    Json settings = Json::object();
    for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES",
                             "LD_PRELOAD", "THP_MEM_ALLOC_ENABLE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY"})
        if (const char* value = std::getenv(name))
            settings[name] = value;
    return settings;
}

std::string cell(const Json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

/// "1.23 (1.20 - 1.31)"
std::string range_cell(const Json& median, const Json& low, const Json& high) {
    return fmt::format("{} ({} - {})", cell(median, "{:.2f}"), cell(low, "{:.2f}"), cell(high, "{:.2f}"));
}
std::string range_cell(const Json& spread) {
    return spread.is_object() ? range_cell(spread["median"], spread["low"], spread["high"]) : "-";
}

std::string text(const Json& row, const char* key) { return row[key].is_string() ? row[key].get<std::string>() : ""; }

/// Which optional columns a workload's table has.
struct Columns {
    bool decoders = false, bound = false, fresh = false, torch = false;

    Columns(const Json& document, const std::string& workload) {
        for (const Json& row : document["rows"])
            if (text(row, "workload") == workload) {
                decoders |= row["ratio_to_own"].is_object();
                bound |= row["share_of_bound"].is_object();
                fresh |= row["fresh_first_batch_ratio"].is_object();
                torch |= row["ratio_to_pytorch"].is_number();
            }
    }

    void print_head() const {
        fmt::print("{:<18}{:<26}{:>20}", "contender", "variant", decoders ? "x library" : "ratio");
        if (decoders)
            fmt::print("{:>20}", "x own");
        if (bound)
            fmt::print("{:>20}", "of bound");
        fmt::print("{:>11}{:>10}{:>9}{:>10}", "items/s", "ms/batch", "cpu ms", "first ms");
        if (fresh)
            fmt::print("{:>10}{:>9}", "fresh ms", "x fresh");
        fmt::print("{}\n", torch ? "   x torch" : "");
    }

    void print(const Json& row) const {
        fmt::print("{:<18}{:<26}", text(row, "contender"), text(row, "variant"));
        if (row["not_run"].is_string()) {
            fmt::print("not run: {}\n", text(row, "not_run"));
            return;
        }
        if (decoders)
            fmt::print("{:>20}{:>20}", range_cell(row["ratio_to_library"]), range_cell(row["ratio_to_own"]));
        else
            fmt::print("{:>20}", range_cell(row["ratio_median"], row["ratio_low"], row["ratio_high"]));
        if (bound)
            fmt::print("{:>20}", range_cell(row["share_of_bound"]));
        std::string remark = text(row, "check");
        if (row["misconfigured"].is_string())
            remark += "; misconfigured: " + text(row, "misconfigured");
        fmt::print("{:>11}{:>10}{:>9}{:>10}", cell(row["theirs"], "{:.0f}"), cell(row["ms_per_batch"], "{:.4g}"),
                   cell(row["cpu_ms_per_item"], "{:.3g}"), cell(row["first_batch_ms"], "{:.1f}"));
        if (fresh) {
            const Json& sooner = row["fresh_first_batch_ratio"];
            fmt::print("{:>10}{:>9}", cell(row["fresh_first_batch_ms"], "{:.1f}"),
                       sooner.is_object() ? cell(sooner["median"], "{:.2f}") : "-");
        }
        if (torch)
            fmt::print("{:>10}", cell(row["ratio_to_pytorch"], "{:.2f}"));
        fmt::print("  {}\n", remark);
    }

    void print_legend(const std::string& workload) const {
        if (workload == "consumer")
            fmt::print(
                "ratio: wall time / longer of compute and production time; median (lowest - highest) over rounds\n");
        else if (decoders)
            fmt::print(
                "x library, x own: time per item / time per item of drawpoint's row `library` or `own`; median "
                "(lowest - highest) over\nrounds. torch::data with drawpoint's own kernel is compared only with the "
                "row of the same decoder\n");
        else
            fmt::print(
                "ratio: time per item / time per item of the first row; median (lowest - highest) over rounds\n");
        if (bound)
            fmt::print("of bound: rate / rate of the bound{}\n",
                       workload == "straggler" ? ", which is the number of threads / the mean time of an item" : "");
        if (fresh)
            fmt::print("x fresh: fresh ms / fresh ms of the row that this one is compared with\n");
    }
};

}   // namespace

bool add_to(Json& document, const LoaderComparison& comparison, const Workload& workload,
            const ComparisonOptions& options) {
    bool passed = true;
    const std::vector<Comparison> found = compare(comparison.measured);
    for (const Row& row : comparison.rows) {
        document["rows"].push_back(row_json(row, comparison, found));
        passed &= row.not_run || row.check.what.empty() || row.check.passed;
    }
    document["circumstances"].push_back({{"workload", workload.kind},
                                         {"items_per_pass", workload.items},
                                         {"batch_size", workload.batch_size},
                                         {"num_workers", workload.num_workers},
                                         {"resize_filter", workload.resize_filter},
                                         {"rounds", options.rounds},
                                         {"rounds_disturbed", disturbed_rounds(comparison.measured)},
                                         {"max_steal_share", most_steal(comparison.measured)},
                                         {"load_average_before", comparison.load_before},
                                         {"load_average_after", comparison.load_after},
                                         {"page_cache", "warm"},
                                         {"environment", environment_json()}});
    return passed;
}

void print_table(const Json& document) {
    for (const Json& about : document["circumstances"]) {
        const std::string workload = text(about, "workload");
        if (workload == "consumer")   // its rows differ in all of these
            fmt::print("consumer: ");
        else
            fmt::print("{}: {} items a pass, batches of {}, {} workers; ", workload,
                       about["items_per_pass"].get<std::size_t>(), about["batch_size"].get<std::size_t>(),
                       about["num_workers"].get<std::size_t>());
        fmt::print("{} rounds, {} disturbed; load {:.1f} - {:.1f}, steal at most {:.1f} %\n",
                   about["rounds"].get<std::size_t>(), about["rounds_disturbed"].get<std::size_t>(),
                   about["load_average_before"].get<double>(), about["load_average_after"].get<double>(),
                   100 * about["max_steal_share"].get<double>());
        const Columns columns{document, workload};
        columns.print_head();
        for (const Json& row : document["rows"])
            if (text(row, "workload") == workload)
                columns.print(row);
        columns.print_legend(workload);
        fmt::print("\n");
    }
    fmt::print("cpu ms: CPU time of all its processes per item; first ms: from asking for a pass to its first batch;\n"
               "fresh ms: the same, with the creation of the loader; x torch: rate / rate of pytorch persistent\n");
    for (const Json& row : document["rows"])
        if (row["settings"].is_string())
            fmt::print("{} {} {}: {}\n", text(row, "workload"), text(row, "contender"), text(row, "variant"),
                       text(row, "settings"));
    for (const auto& [name, value] : document["circumstances"].front()["environment"].items())
        fmt::print("environment: {}={}\n", name, value.get<std::string>());
}

}   // namespace drawpoint::bench
