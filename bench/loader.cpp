// Compares drawpoint's loader with others: equal work, interleaved rounds, outputs checked.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/detail/output_file.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>

#include "comparison/driver.hpp"
#include "comparison/output.hpp"
#include "comparison/plan.hpp"
#include "contenders/serve.hpp"
#include "photos.hpp"
#include "program.hpp"
#include "temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::vector<std::string> workloads{"jpeg"}, contenders;
    Workload workload;
    ComparisonOptions comparison;
    std::string data;
    // empty: JSON instead of a table on stdout; else the table, and JSON in this file
    std::optional<std::string> json;
};

constexpr int interrupted = 130;   // exit code

/// Runs one workload: writes its plan, starts its contenders, runs its rounds. Returns the exit code.
int compare_workload(const Options& options, const std::string& kind, nlohmann::ordered_json& document) {
    Workload workload = options.workload;
    workload.kind = kind;
    ComparisonOptions comparison = options.comparison;
    if (kind == "straggler")
        workload.batch_size = 16;
    comparison.asks_first_batch &= workload.reads_photos();
    comparison.checks_outputs = kind != "consumer";
    const auto plan = TemporaryFolder::in_memory();
    workload.plan = plan.path();
    std::optional<TemporaryPhotos> generated;
    if (workload.reads_photos()) {
        workload.data = options.data.empty() ? generated.emplace(640).folder() : std::filesystem::path{options.data};
        document["data"] = generated ? "generated pictures" : options.data;
    }
    write_plan(workload, 2 + comparison.rounds * comparison.passes);
    const LoaderComparison result = run_comparison(roster(workload, options.contenders), comparison);
    if (result.measured.rounds.empty() && result.interrupted)
        return interrupted;
    const bool passed = add_to(document, result, workload, comparison);
    return result.interrupted ? interrupted : passed ? 0 : 1;
}

int run_all(const Options& options, const std::string& command) {
    const std::string file = options.json.value_or("");
    if (!file.empty())
        check_output_file(file);
    nlohmann::ordered_json document =
        json_document("drawpoint.comparison/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["data"] = nullptr;
    document["rows"] = document["circumstances"] = nlohmann::ordered_json::array();
    int status = 0;
    for (const std::string& kind : options.workloads) {
        status = std::max(status, compare_workload(options, kind, document));
        if (status == interrupted)
            break;
    }
    if (!file.empty())
        write_output_file(file, json_text(document));
    if (options.json && file.empty())
        fmt::print("{}", json_text(document));
    else
        print_table(document);
    return status;
}

}   // namespace

int main(int argc, char** argv) {
    if (is_child(argc, argv))
        return serve(argc, argv);
    Options options;
    Workload& workload = options.workload;
    workload.jpeg_decoder.clear();
    std::string json;
    CLI::App app{"drawpoint's loader against others, in interleaved rounds of equal work", "drawpoint bench loader"};
    app.add_option("--workload", options.workloads, "by commas [jpeg]")
        ->delimiter(',')
        ->check(CLI::IsMember(workload_kinds()));
    app.add_option("--contender", options.contenders, "who takes part beside drawpoint, by commas [all]")
        ->delimiter(',')
        ->check(CLI::IsMember(contender_names()));
    add_data_option(app, options.data);
    app.add_option("--rounds", options.comparison.rounds, "rounds that count [15]")->check(CLI::Range(1, 1000));
    app.add_option("--passes", options.comparison.passes, "passes over the photographs a round [1]")
        ->check(CLI::Range(1, 1000));
    app.add_option("--batch-size", workload.batch_size, "samples a batch [64; straggler always 16]")
        ->check(CLI::Range(1, 4096));
    app.add_option("--num-workers", workload.num_workers, "workers of each loader [2]")->check(CLI::Range(1, 64));
    app.add_option("--prefetch-depth", workload.prefetch_depth, "batches ahead, drawpoint's [2 a worker; straggler 4]")
        ->check(CLI::Range(1, 55));
    app.add_option("--jpeg-decoder", workload.jpeg_decoder,
                   "drawpoint's: auto, library or own [auto, and a row for each]")
        ->check(CLI::IsMember({"auto", "library", "own"}));
    app.add_option("--resize-filter", workload.resize_filter,
                   "bilinear or antialias, where there is a choice [antialias]")
        ->check(CLI::IsMember({"bilinear", "antialias"}));
    CLI::Option* json_option =
        app.add_option("--json", json, "JSON on stdout in place of the table; --json=FILE: beside it")->expected(0, 1);
    return run_program(app, "loader", argc, argv, [&](const std::string& command) {
        if (json_option->count() > 0)
            options.json = json;
        return run_all(options, command);
    });
}
