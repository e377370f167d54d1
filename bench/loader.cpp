// drawpoint's loader against everybody else's: equal work, interleaved rounds, outputs checked.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>

#include "comparison/driver.hpp"
#include "comparison/output.hpp"
#include "comparison/plan.hpp"
#include "contenders/serve.hpp"
#include "machine.hpp"
#include "photos.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::vector<std::string> workloads{"jpeg"}, contenders;
    Workload workload;
    ComparisonOptions comparison;
    std::string data;
    std::optional<std::string> json;   // stdout's form, or beside it into the file named
};

/// One workload: its plan, its contenders, its rounds.
bool compare_workload(const Options& options, const std::string& kind, nlohmann::ordered_json& document) {
    Workload workload = options.workload;
    workload.kind = kind;
    ComparisonOptions comparison = options.comparison;
    if (kind == "straggler")
        workload.batch_size = 16;
    comparison.asks_first_batch &= workload.reads_photos();
    comparison.checks_outputs = kind != "consumer";
    const TemporaryFolder plan;
    workload.plan = plan.path();
    std::optional<TemporaryPhotos> generated;
    if (workload.reads_photos()) {
        workload.data = options.data.empty() ? generated.emplace(640).folder() : std::filesystem::path{options.data};
        document["data"] = generated ? "generated pictures" : options.data;
    }
    write_plan(workload, 2 + comparison.rounds * comparison.passes);
    const Comparison result = run_comparison(roster(workload, options.contenders), comparison);
    if (result.rows.front().not_run)
        throw std::runtime_error{"drawpoint: " + *result.rows.front().not_run};
    return add_to(document, result, workload, comparison);
}

int run_all(const Options& options, const std::string& command) {
    nlohmann::ordered_json document =
        json_document("drawpoint.comparison/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["data"] = nullptr;
    document["rows"] = document["circumstances"] = nlohmann::ordered_json::array();
    bool passed = true;
    for (const std::string& kind : options.workloads)
        passed &= compare_workload(options, kind, document);
    if (options.json && !options.json->empty()) {
        std::FILE* file = std::fopen(options.json->c_str(), "w");
        if (!file)
            throw std::runtime_error{"cannot write " + *options.json};
        fmt::print(file, "{}", json_text(document));
        std::fclose(file);
    }
    if (options.json && options.json->empty())
        fmt::print("{}", json_text(document));
    else
        print_table(document);
    return passed ? 0 : 1;
}

/// The words of a list separated by commas, each of which must be known.
std::vector<std::string> words_of(const std::string& list, const std::vector<std::string>& known, const char* option) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        const std::string word = list.substr(at, comma - at);
        if (std::ranges::find(known, word) == known.end())
            throw CLI::ValidationError{option,
                                       fmt::format("unknown '{}'; there are: {}", word, fmt::join(known, ", "))};
        words.push_back(word);
        at = comma + 1;
    }
    return words;
}

}   // namespace

int main(int argc, char** argv) {
    if (is_child(argc, argv))
        return serve(argc, argv);
    Options options;
    Workload& workload = options.workload;
    workload.jpeg_decoder.clear();
    std::string kinds, contenders, format, json;
    CLI::App app{"drawpoint's loader against others, in interleaved rounds of equal work", "drawpoint bench loader"};
    app.add_option("--workload", kinds,
                   "jpeg, tiny, tensor, straggler, latency, consumer: one or some, by commas [jpeg]");
    app.add_option("--contender", contenders, "who takes part beside drawpoint, by commas [all]");
    app.add_option("--data", options.data, "folder of class folders of JPEG files [generated pictures]")
        ->envname("DRAWPOINT_BENCH_DATA");
    app.add_option("--rounds", options.comparison.rounds, "interleaved rounds that count [7]")
        ->check(CLI::Range(1, 1000));
    app.add_option("--passes", options.comparison.passes, "passes over the photographs a round [2]")
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
    app.add_option("--benchmark_format", format, "json: as --json, as Google Benchmark's programs take it");
    std::vector<std::string> words(argv + 1, argv + argc);
    std::string command = "bench loader";
    for (const std::string& word : words)
        command += " " + word;
    for (std::string& word : words)   // a word after --json is never its file
        if (word == "--json")
            word = "--json=";
    std::ranges::reverse(words);
    try {
        app.parse(words);
        if (!kinds.empty())
            options.workloads = words_of(kinds, workload_kinds(), "--workload");
        if (!contenders.empty())
            options.contenders = words_of(contenders, contender_names(), "--contender");
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "drawpoint: bench loader: {}\n", error.what());
        return 2;
    }
    if (json_option->count() > 0 || format == "json")
        options.json = json;
    try {
        return run_all(options, command);
    } catch (const std::exception& error) {
        fmt::print(stderr, "drawpoint: bench loader: {}\n", error.what());
        return 1;
    }
}
