// Measures how drawpoint's loader scales: JPEG photographs with 1 … N workers and several depths, in rounds
// interleaved with one worker.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>

#include "comparison/driver.hpp"
#include "comparison/output.hpp"
#include "comparison/plan.hpp"
#include "contenders/serve.hpp"
#include "photos.hpp"
#include "program.hpp"
#include "spread.hpp"
#include "temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

constexpr std::int64_t worker_limit = 64;

struct Options {
    std::string data;
    std::size_t most_workers = 2;
    std::vector<std::size_t> depths{1, 2, 4, 8};
    ComparisonOptions comparison{.asks_first_batch = false};
    std::string jpeg_decoder = "auto";
    bool json = false;
};

/// Adds the rate with each number of workers over that with one, at each depth.
void add_speed_ups(nlohmann::ordered_json& document, const LoaderComparison& result, const Options& options) {
    document["speed_ups"] = nlohmann::ordered_json::array();
    const std::size_t depths = options.depths.size();
    for (std::size_t i = depths; i < result.rows.size(); ++i) {
        const Row &one = result.rows[i % depths], &many = result.rows[i];
        std::vector<double> ratios;
        for (std::size_t round = 0; round < std::min(one.rounds.size(), many.rounds.size()); ++round)
            ratios.push_back(many.rounds[round].items_per_s() / one.rounds[round].items_per_s());
        if (ratios.empty())
            continue;
        const Spread spread = spread_of(ratios);
        document["speed_ups"].push_back({{"num_workers", many.entry.workload.num_workers},
                                         {"prefetch_depth", many.entry.workload.prefetch_depth},
                                         {"median", spread.median},
                                         {"low", spread.low},
                                         {"high", spread.high}});
    }
}

int run_all(const Options& options, const std::string& command) {
    std::optional<TemporaryPhotos> generated;
    const auto plan = TemporaryFolder::in_memory();
    Workload workload{.plan = plan.path(), .jpeg_decoder = options.jpeg_decoder};
    workload.data = options.data.empty() ? generated.emplace(640).folder() : std::filesystem::path{options.data};
    write_plan(workload, 1);
    std::vector<Entry> entries;
    for (std::size_t workers = 1; workers <= options.most_workers; ++workers)
        for (const std::size_t depth : options.depths) {
            Entry entry{.workload = workload};
            entry.workload.num_workers = workers;
            entry.workload.prefetch_depth = depth;
            entry.workload.variant = fmt::format("workers_{}_depth_{}", workers, depth);
            entries.push_back(entry);
        }
    const LoaderComparison result = run_comparison(entries, options.comparison);
    if (result.measured.rounds.empty() && result.interrupted)
        return 130;
    nlohmann::ordered_json document =
        json_document("drawpoint.comparison/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["data"] = generated ? "generated pictures" : options.data;
    const bool passed = add_to(document, result, workload, options.comparison);
    const int status = result.interrupted ? 130 : passed ? 0 : 1;
    add_speed_ups(document, result, options);
    if (options.json) {
        fmt::print("{}", json_text(document));
        return status;
    }
    print_table(document);
    fmt::print("\nhere the ratio is to {}: 0.5 is twice as fast\n", entries.front().workload.variant);
    for (const auto& row : document["speed_ups"])
        fmt::print("1 -> {} workers at depth {}: x {:.2f} ({:.2f} - {:.2f})\n", row["num_workers"].get<std::size_t>(),
                   row["prefetch_depth"].get<std::size_t>(), row["median"].get<double>(), row["low"].get<double>(),
                   row["high"].get<double>());
    return status;
}

}   // namespace

int main(int argc, char** argv) {
    if (is_child(argc, argv))
        return serve(argc, argv);
    Options options;
    options.most_workers =
        static_cast<std::size_t>(std::clamp<std::int64_t>(this_machine().cores_usable.value_or(2), 2, worker_limit));
    CLI::App app{"drawpoint's loader by workers and depth, in interleaved rounds", "drawpoint bench scaling"};
    add_data_option(app, options.data);
    app.add_option("--num-workers", options.most_workers, "the most workers [usable cores, at least 2]")
        ->check(CLI::Range(std::int64_t{1}, worker_limit));
    app.add_option("--prefetch-depth", options.depths, "depths, by commas [1,2,4,8]")
        ->delimiter(',')
        ->check(CLI::Range(1, 55));
    app.add_option("--rounds", options.comparison.rounds, "rounds that count [15]")->check(CLI::Range(1, 1000));
    app.add_option("--passes", options.comparison.passes, "passes over the data a round [1]")
        ->check(CLI::Range(1, 1000));
    app.add_option("--jpeg-decoder", options.jpeg_decoder, "auto, library or own [auto]")
        ->check(CLI::IsMember({"auto", "library", "own"}));
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    return run_program(app, "scaling", argc, argv,
                       [&](const std::string& command) { return run_all(options, command); });
}
