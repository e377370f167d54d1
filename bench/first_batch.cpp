// Measures the time to the first batch: makes the recorder, the runtime, the source, the sampler and the loader, and
// draws a batch. Each measurement runs in a process of its own; the files are in the page cache.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "contenders/photo_settings.hpp"
#include "machine.hpp"
#include "photos.hpp"
#include "program.hpp"
#include "spread.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::string data;
    std::vector<std::string> jpeg_decoders{"library", "own"};
    std::size_t rounds = 9, batch_size = 64, num_workers = 2, prefetch_depth = 4;
    bool json = false;
    std::string measure;   // set in a child process: the decoder to measure
};

constexpr std::array steps{"recorder", "runtime", "source", "sampler", "loader", "first batch"};
using Times = std::array<double, steps.size() + 1>;   // ms of each step; last: CPU time of all of them

Awaitable<void> draw_one(DataLoader& loader, std::chrono::steady_clock::time_point& drawn, double& processor_seconds) {
    auto pass = loader.epoch(0);
    auto batch = co_await pass.next();
    drawn = std::chrono::steady_clock::now();
    processor_seconds = process_cpu_seconds();
    if (!batch)
        throw std::runtime_error{"no picture"};
}

Times measure(const Options& options, const Workload& settings) {
    using Clock = std::chrono::steady_clock;
    std::array<Clock::time_point, steps.size() + 1> stamps{Clock::now()};
    std::size_t at = 0;
    const auto stamp = [&] { stamps[++at] = Clock::now(); };
    const double processor_before = process_cpu_seconds();
    double processor_after = 0;
    Recorder recorder;
    stamp();
    Runtime runtime{{.max_threads = options.num_workers}, recorder};
    stamp();
    const auto source = ImageFolder{options.data} | DecodeJpeg{jpeg_backend(settings)} |
                        RandomResizedCrop{.height = 224, .width = 224} | RandomHorizontalFlip{} | Normalize::imagenet();
    stamp();
    const RandomSampler sampler{source.size(), 7};
    stamp();
    DataLoader loader{runtime,
                      source,
                      sampler,
                      {.batch_size = options.batch_size,
                       .num_workers = options.num_workers,
                       .prefetch_depth = options.prefetch_depth,
                       .seed = 7}};
    stamp();
    run(runtime, draw_one(loader, stamps.back(), processor_after));
    Times times;
    for (std::size_t i = 0; i < steps.size(); ++i)
        times[i] = std::chrono::duration<double, std::milli>(stamps[i + 1] - stamps[i]).count();
    times.back() = 1e3 * (processor_after - processor_before);
    return times;
}

/// The child process: measures twice, the second time in a warm process, and prints one line of numbers for each.
int serve(const Options& options) {
    const Workload settings{.jpeg_decoder = options.measure};
    for (int time = 0; time < 2; ++time)
        fmt::print("{}\n", fmt::join(measure(options, settings), " "));
    return 0;
}

/// The two lines of a child process.
std::array<Times, 2> ask_child(const Options& options, const std::string& decoder) {
    const std::string self = std::to_string(getpid());
    setenv("DRAWPOINT_BENCH_DATA", options.data.c_str(),
           1);   // an environment variable, since the folder's name would need quoting on a command line
    const std::string command =
        fmt::format("/proc/{}/exe --measure {} --batch-size {} --num-workers {} --prefetch-depth {}", self, decoder,
                    options.batch_size, options.num_workers, options.prefetch_depth);
    std::FILE* child = popen(command.c_str(), "re");
    if (child == nullptr)
        throw std::runtime_error{"cannot start a process for a measurement"};
    std::array<Times, 2> both{};
    bool complete = true;
    for (Times& times : both)
        for (double& time : times)
            complete &= std::fscanf(child, "%lf", &time) == 1;
    if (pclose(child) != 0 || !complete)
        throw std::runtime_error{"a measurement ended early"};
    return both;
}

struct Row {
    const char* process;   // "fresh" or "warm"
    std::string decoder;
    std::vector<Times> times;

    [[nodiscard]] Spread spread(std::size_t of) const {
        std::vector<double> values;
        for (const Times& one : times)
            values.push_back(one[of]);
        return spread_of(values);
    }
    [[nodiscard]] Spread all() const {
        std::vector<double> values;
        for (const Times& one : times)
            values.push_back(std::accumulate(one.begin(), one.end() - 1, 0.0));
        return spread_of(values);
    }
};

void print_table(const std::vector<Row>& rows, const Options& options) {
    fmt::print("first batch of {}, {} workers, depth {}; ms, median of {} processes each\n{:<10}{:<9}{:>8}{:>15}",
               options.batch_size, options.num_workers, options.prefetch_depth, options.rounds, "process", "decoder",
               "all", "range");
    for (const char* step : steps)
        fmt::print("{:>13}", step);
    fmt::print("{:>10}", "cpu");
    for (const Row& row : rows) {
        const Spread all = row.all();
        fmt::print("\n{:<10}{:<9}{:>8.1f}{:>15}", row.process, row.decoder, all.median,
                   fmt::format("{:.1f} - {:.1f}", all.low, all.high));
        for (std::size_t i = 0; i < steps.size(); ++i)
            fmt::print("{:>13.2f}", row.spread(i).median);
        fmt::print("{:>10.1f}", row.spread(steps.size()).median);
    }
    fmt::print(
        "\nfresh: a process that has done nothing before; warm: one that has made, used and destroyed it all once.\n"
        "Page cache warm in both.\n");
}

void print_json(const std::vector<Row>& rows, const Options& options, const std::string& command) {
    nlohmann::ordered_json document =
        json_document("drawpoint.first_batch/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
        const Spread all = row.all();
        nlohmann::ordered_json json{{"process", row.process},
                                    {"jpeg_decoder", row.decoder},
                                    {"batch_size", options.batch_size},
                                    {"num_workers", options.num_workers},
                                    {"prefetch_depth", options.prefetch_depth},
                                    {"rounds", row.times.size()},
                                    {"ms_median", all.median},
                                    {"ms_low", all.low},
                                    {"ms_high", all.high},
                                    {"cpu_ms_median", row.spread(steps.size()).median}};
        for (std::size_t i = 0; i < steps.size(); ++i)
            json["step_ms_median"][steps[i]] = row.spread(i).median;
        document["rows"].push_back(json);
    }
    fmt::print("{}", json_text(document));
}

int run_all(Options options, const std::string& command) {
    std::optional<TemporaryPhotos> generated;
    if (options.data.empty())
        options.data = generated.emplace(640).folder();
    std::vector<Row> rows;
    for (const std::string& decoder : options.jpeg_decoders)
        for (const char* process : {"fresh", "warm"})
            rows.push_back({process, decoder, {}});
    for (std::size_t round = 0; round <= options.rounds; ++round)   // the first round warms the page cache up
        for (std::size_t i = 0; i < rows.size(); i += 2) {
            const auto both = ask_child(options, rows[i].decoder);
            for (std::size_t time = 0; time < 2 && round != 0; ++time)
                rows[i + time].times.push_back(both[time]);
        }
    options.json ? print_json(rows, options, command) : print_table(rows, options);
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Time from nothing to the first batch of JPEG photographs, each measurement in a process of its own",
                 "drawpoint bench first-batch"};
    add_data_option(app, options.data);
    app.add_option("--rounds", options.rounds, "processes a decoder [9]")->check(CLI::Range(1, 1000));
    app.add_option("--batch-size", options.batch_size, "samples a batch [64]")->check(CLI::Range(1, 4096));
    app.add_option("--num-workers", options.num_workers, "workers [2]")->check(CLI::Range(1, 64));
    app.add_option("--prefetch-depth", options.prefetch_depth, "batches ahead [4]")->check(CLI::Range(1, 55));
    app.add_option("--jpeg-decoder", options.jpeg_decoders, "library, own or auto, by commas [library,own]")
        ->delimiter(',')
        ->check(CLI::IsMember({"auto", "library", "own"}));
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    app.add_option("--measure", options.measure)->group("");   // hidden: runs the child process
    return run_program(app, "first-batch", argc, argv, [&](const std::string& command) {
        return options.measure.empty() ? run_all(options, command) : serve(options);
    });
}
