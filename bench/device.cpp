// Measures a device as batches use it: what its calls cost, how fast copies are and how far they overlap with steps,
// and the loader and a model on it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>

#include "bench/device/loader_measures.hpp"
#include "photos.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::string data, device;
    DeviceMeasureOptions stage;
    DeviceLoaderOptions loader;
    bool json = false;
};

void print(const DeviceFigure& figure) {
    fmt::print("{:<66} {:>10.4g} {:<9}", figure.name, figure.median, figure.unit);
    if (figure.count > 1)
        fmt::print(" ({:.4g} to {:.4g}, {} times)", figure.low, figure.high, figure.count);
    fmt::print("\n");
    std::fflush(stdout);
}

int measure(Options options, const std::string& command) {
    const std::string device = find_device(options.device);
    std::optional<TemporaryPhotos> generated;
    options.loader.photos =
        options.data.empty() ? generated.emplace(4096).folder() : std::filesystem::path{options.data};
    std::function<void(const DeviceFigure&)> tell;
    if (!options.json) {
        tell = print;
        fmt::print("{}: medians, in brackets from the 10th to the 90th percentile\n", device);
    }
    options.stage.tell = tell;
    std::vector<DeviceFigure> figures = measure_device(c10::Device{device}, options.stage);
    std::ranges::copy(measure_device_loader(device, options.loader, tell), std::back_inserter(figures));
    if (!options.json)
        return 0;
    nlohmann::ordered_json document = json_document("drawpoint.device/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["device"] = device;
    document["data"] = generated ? "generated pictures" : options.data;
    document["num_workers"] = options.loader.num_workers;
    document["figures"] = nlohmann::ordered_json::array();
    for (const DeviceFigure& figure : figures)
        document["figures"].push_back({{"name", figure.name},
                                       {"unit", figure.unit},
                                       {"median", figure.median},
                                       {"low", figure.low},
                                       {"high", figure.high},
                                       {"count", figure.count}});
    fmt::print("{}", json_text(document));
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    options.loader.num_workers = std::clamp(std::thread::hardware_concurrency(), 2u, 65u) - 1;
    CLI::App app{"What calls of the device cost, how fast copies to it are, and how far they overlap with steps; then "
                 "the loader alone and to the device, and ResNet-50 on it",
                 "drawpoint bench device"};
    add_data_option(app, options.data);
    app.add_option("--device", options.device, "as of drawpoint profile [the one that LibTorch has]");
    app.add_option("--rounds", options.loader.rounds, "rounds of the loader and of training [5]")
        ->check(CLI::Range(1, 1000));
    app.add_option("--batch-size", options.loader.batch_size, "samples a batch [64]")->check(CLI::Range(1, 4096));
    app.add_option("--num-workers", options.loader.num_workers, "workers [cores - 1]")->check(CLI::Range(1, 64));
    app.add_option("--repeats", options.stage.repeats, "times that a call is made [1000]")
        ->check(CLI::Range(100, 100000));
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    return run_program(app, "device", argc, argv,
                       [&](const std::string& command) { return measure(options, command); });
}
