// JPEG folder to normalised batches: drawpoint against the other loaders this build has, in interleaved rounds of equal work.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/pipeline/image/resize.hpp>

#include "contenders/child.hpp"
#include "machine.hpp"
#include "photos.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

constexpr Entry entries[] = {
    {"drawpoint", "as_shipped"}, {"torch-data", "as_shipped"}, {"torch-data", "tuned"}, {"torch-data", "same_kernel"}};

constexpr double tolerance_levels = 2;    // of 255: two decoders and two resizes, each right to one level
constexpr double most_steal = 0.02;       // a round above is done again …
constexpr std::size_t most_repeats = 7;   // … but not for ever

struct Options {
    std::string data;
    std::size_t rounds = 7, passes = 2, batch_size = 64, num_workers = 2;
    bool json = false;
};

/// How far a contender's pixels are from drawpoint's, in levels of 255 before normalising.
struct Difference {
    double max_levels = 0, share_above_one = 0;
    bool same_targets = true;
};

struct Row {
    Child child;
    std::vector<Round> rounds;
    Difference difference;
};

std::size_t count_values(const Workload& w) { return std::size_t{w.side} * w.side; }

/// Compares some batches of one epoch: the first, one in the middle, the last (which is short).
Difference compare(Child& ours, Child& theirs, const Workload& workload, std::size_t batches) {
    const auto deviation = ChannelNormalization::imagenet().standard_deviation;
    const std::size_t plane = count_values(workload);
    Difference difference;
    std::size_t above_one = 0, values = 0;
    for (const std::size_t number : {std::size_t{0}, batches / 2, batches - 1}) {
        const BatchCopy a = ours.batch(1000, number), b = theirs.batch(1000, number);
        if (a.targets != b.targets || a.data.size() != b.data.size())
            return {.max_levels = INFINITY, .share_above_one = 1, .same_targets = false};
        for (std::size_t i = 0; i < a.data.size(); ++i) {
            const double levels = std::abs(static_cast<double>(a.data[i]) - static_cast<double>(b.data[i])) *
                                  static_cast<double>(deviation[i / plane % 3]) * 255;
            difference.max_levels = std::max(difference.max_levels, levels);
            above_one += levels > 1.01;
        }
        values += a.data.size();
    }
    difference.share_above_one = static_cast<double>(above_one) / static_cast<double>(values);
    return difference;
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

template <class F>
double median_of(const Row& row, F value) {
    std::vector<double> values;
    for (const Round& round : row.rounds)
        values.push_back(value(round));
    return statistics::quantile(values, 0.5);
}

double items_per_s(const Row& row) {
    return median_of(row, [](const Round& r) { return static_cast<double>(r.items) / seconds(r.wall_ns); });
}

struct Result {
    std::vector<Row> rows;
    std::size_t repeated = 0;   // rounds thrown away because others took the processors
    double steal = 0;           // the largest of a round that counts
    double load_before = 0, load_after = 0;
};

Result measure(const Options& options, const Workload& workload) {
    Result result;
    for (const Entry& entry : entries) {
#ifndef DRAWPOINT_BENCH_TORCH
        if (std::string_view{entry.contender} != "drawpoint")
            continue;
#endif
        result.rows.push_back({Child{entry, workload}, {}, {}});
    }
    const std::uint64_t items = result.rows.front().child.round(999, 1).items;   // everybody's first pass is a warm-up
    const std::size_t batches = (items + workload.batch_size - 1) / workload.batch_size;
    for (Row& row : result.rows) {
        if (row.child.round(998, 1).items != items)
            throw std::runtime_error{
                fmt::format("{} delivered another number of samples", row.child.entry().contender)};
        row.difference = compare(result.rows.front().child, row.child, workload, batches);
    }
    result.load_before = load_average();
    for (std::size_t done = 0; done < options.rounds;) {
        const ProcessorTime before = processor_time();
        std::vector<Round> rounds;
        for (Row& row : result.rows)
            rounds.push_back(row.child.round(done * options.passes, options.passes));
        const double steal = steal_share(before, processor_time());
        if (steal > most_steal && result.repeated < most_repeats) {
            ++result.repeated;
            continue;
        }
        result.steal = std::max(result.steal, steal);
        for (std::size_t i = 0; i < rounds.size(); ++i) {
            if (rounds[i].target_digest != rounds.front().target_digest)
                throw std::runtime_error{
                    fmt::format("{} delivered other samples", result.rows[i].child.entry().contender)};
            result.rows[i].rounds.push_back(rounds[i]);
        }
        fmt::print(stderr, "round {} of {}\n", ++done, options.rounds);
    }
    result.load_after = load_average();
    return result;
}

nlohmann::ordered_json row_json(const Row& row, const Row& ours) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < row.rounds.size(); ++i)
        ratios.push_back(static_cast<double>(row.rounds[i].wall_ns) / static_cast<double>(ours.rounds[i].wall_ns));
    const auto cpu = [](const Round& r) { return seconds(r.cpu_ns) * 1e3 / static_cast<double>(r.items); };
    const auto first = [](const Round& r) { return seconds(r.first_batch_ns) * 1e3; };
    return {{"workload", "jpeg"},
            {"contender", row.child.entry().contender},
            {"variant", row.child.entry().variant},
            {"rounds", row.rounds.size()},
            {"ratio_median", statistics::quantile(ratios, 0.5)},
            {"ratio_low", *std::min_element(ratios.begin(), ratios.end())},
            {"ratio_high", *std::max_element(ratios.begin(), ratios.end())},
            {"ours", items_per_s(ours)},
            {"theirs", items_per_s(row)},
            {"cpu_ms_per_item", median_of(row, cpu)},
            {"first_batch_ms", median_of(row, first)},
            {"output_checked", row.difference.same_targets && row.difference.max_levels <= tolerance_levels},
            {"max_difference_levels", row.difference.max_levels},
            {"share_above_one_level", row.difference.share_above_one},
            {"settings", row.child.description()},
            {"not_run", nullptr}};
}

/// A row for what this build could not run.
nlohmann::ordered_json missing_json(const Entry& entry) {
    nlohmann::ordered_json row{
        {"workload", "jpeg"}, {"contender", entry.contender}, {"variant", entry.variant}, {"rounds", 0}};
    for (const char* key :
         {"ratio_median", "ratio_low", "ratio_high", "ours", "theirs", "cpu_ms_per_item", "first_batch_ms"})
        row[key] = nullptr;
    row["output_checked"] = false;
    row["not_run"] = "built without LibTorch";
    return row;
}

void print_table(const nlohmann::ordered_json& document) {
    fmt::print("{:<12}{:<13}{:>7}{:>16}{:>10}{:>13}{:>16}{:>11}\n", "contender", "variant", "ratio", "range", "items/s",
               "cpu ms/item", "first batch ms", "max levels");
    for (const auto& row : document["rows"]) {
        const auto text = [&row](const char* key) { return row[key].get<std::string>(); };
        const auto number = [&row](const char* key) { return row[key].get<double>(); };
        if (row["not_run"].is_string()) {
            fmt::print("{:<12}{:<13}not run: {}\n", text("contender"), text("variant"), text("not_run"));
            continue;
        }
        fmt::print("{:<12}{:<13}{:>7.2f}{:>16}{:>10.0f}{:>13.3f}{:>16.1f}{:>11.2f}{}\n", text("contender"),
                   text("variant"), number("ratio_median"),
                   fmt::format("{:.2f} - {:.2f}", number("ratio_low"), number("ratio_high")), number("theirs"),
                   number("cpu_ms_per_item"), number("first_batch_ms"), number("max_difference_levels"),
                   row["output_checked"].get<bool>() ? "" : "  OUTPUT DIFFERS");
    }
    fmt::print(
        "ratio: their time / drawpoint's, median over rounds; load {:.1f} - {:.1f}; steal at most {:.1f} %, {} rounds "
        "repeated\n",
        document["load_average_before"].get<double>(), document["load_average_after"].get<double>(),
        100 * document["max_steal_share"].get<double>(), document["rounds_repeated"].get<std::size_t>());
}

int run_all(const Options& options, const std::string& command) {
    const std::optional<TemporaryPhotos> generated =
        options.data.empty() ? std::make_optional<TemporaryPhotos>(640) : std::nullopt;
    const Workload workload{.data = generated ? generated->folder() : std::filesystem::path{options.data},
                            .batch_size = options.batch_size,
                            .num_workers = options.num_workers};
    const Result result = measure(options, workload);
    nlohmann::ordered_json document =
        json_document("drawpoint.comparison/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["data"] = generated ? "generated pictures" : options.data;
    document["items_per_round"] = result.rows.front().rounds.front().items;
    document["batch_size"] = options.batch_size;
    document["num_workers"] = options.num_workers;
    document["tolerance_levels"] = tolerance_levels;
    document["load_average_before"] = result.load_before;
    document["load_average_after"] = result.load_after;
    document["max_steal_share"] = result.steal;
    document["rounds_repeated"] = result.repeated;
    bool checked = true;
    for (const Row& row : result.rows) {
        document["rows"].push_back(row_json(row, result.rows.front()));
        checked &= document["rows"].back()["output_checked"].get<bool>();
    }
    for (std::size_t i = result.rows.size(); i < std::size(entries); ++i)
        document["rows"].push_back(missing_json(entries[i]));
    if (options.json)
        fmt::print("{}", json_text(document));
    else
        print_table(document);
    return checked ? 0 : 1;
}

}   // namespace

int main(int argc, char** argv) {
    if (is_child(argc, argv))
        return serve(argc, argv);
    Options options;
    std::string format;
    CLI::App app{"Loading JPEG photographs: drawpoint against LibTorch's torch::data"};
    app.add_option("--data", options.data, "folder of class folders of JPEG files [generated pictures]")
        ->envname("DRAWPOINT_BENCH_DATA");
    app.add_option("--rounds", options.rounds, "interleaved rounds that count [7]")->check(CLI::Range(1, 1000));
    app.add_option("--passes", options.passes, "passes over the data a round [2]")->check(CLI::Range(1, 1000));
    app.add_option("--batch-size", options.batch_size, "samples a batch [64]")->check(CLI::Range(1, 4096));
    app.add_option("--num-workers", options.num_workers, "threads of each loader [2]")->check(CLI::Range(1, 64));
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    app.add_option("--benchmark_format", format, "json: the same, as Google Benchmark's programs take it");
    CLI11_PARSE(app, argc, argv);
    options.json |= format == "json";
    std::string command = "bench_loader";
    for (int i = 1; i < argc; ++i)
        command += std::string{" "} + argv[i];
    try {
        return run_all(options, command);
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_loader: {}\n", error.what());
        return 1;
    }
}
