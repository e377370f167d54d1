// Measures what recording costs: the CPU time of one pass through the whole pipeline with and without a recorder, in
// pairs whose order alternates. Every picture is decoded in both, and the training step is empty, so it cannot hide the
// cost.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "accuracy/truth.hpp"
#include "machine.hpp"
#include "photos.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::string data;
    std::size_t pairs = 40, batch_size = 32, num_workers = 2, epochs = 2;
    bool json = false;
};

struct Idle {
    void begin_phase(bool) noexcept {}
    void forward(auto&) noexcept {}
    void loss(auto&) noexcept {}
    void backward() noexcept {}
    void opt_step() noexcept {}
    void zero_grad() noexcept {}
    [[nodiscard]] double loss_value() const noexcept { return 0; }
};

/// CPU seconds of the whole process.
double measure(const Options& options, bool record) {
    Recorder recorder;
    const double before = process_cpu_seconds();
    {
        Runtime runtime{{.max_threads = options.num_workers, .record = record}, recorder};
        const auto source = ImageFolder{options.data} | decode_image | RandomResizedCrop{.height = 224, .width = 224} |
                            RandomHorizontalFlip{} | Normalize::imagenet();
        const RandomSampler sampler{source.size(), 7};
        DataLoader loader{
            runtime,
            source,
            sampler,
            {.batch_size = options.batch_size, .num_workers = options.num_workers, .prefetch_depth = 4, .seed = 7}};
        Idle learner;
        CallbackList none;
        const FitOptions fit_options{.epochs = options.epochs, .record_loss = false};
        if (record)
            run(runtime, fit(learner, loader, fit_options, none, recorder));
        else
            run(runtime, fit(learner, loader, fit_options, none));
    }
    if (record)
        recorder.finish();
    return process_cpu_seconds() - before;
}

int run_all(Options options, const std::string& command) {
    std::optional<TemporaryPhotos> generated;
    if (options.data.empty())
        options.data = generated.emplace(512).folder().string();
    (void)measure(options, true);   // warms the page cache and the code up
    std::vector<double> more;
    for (std::size_t pair = 0; pair < options.pairs; ++pair) {
        std::array<double, 2> runs{};   // without, with
        for (const bool second : {false, true}) {
            const bool record = second == (pair % 2 == 0);
            runs[record ? 1 : 0] = measure(options, record);
        }
        more.push_back(runs[1] / runs[0] - 1);
    }
    const Interval cost = median_interval(more);
    if (options.json) {
        nlohmann::ordered_json document =
            json_document("drawpoint.recording_cost/1", {DRAWPOINT_VERSION, command}, this_machine());
        document["pairs"] = options.pairs;
        document["epochs"] = options.epochs;
        document["batch_size"] = options.batch_size;
        document["num_workers"] = options.num_workers;
        document["cpu_added"] = {{"median", cost.median}, {"low", cost.low}, {"high", cost.high}};
        fmt::print("{}", json_text(document));
        return 0;
    }
    fmt::print("{} pairs of {} epochs, batches of {}, {} workers\n", options.pairs, options.epochs, options.batch_size,
               options.num_workers);
    fmt::print("processor time with a recorder: {:+.2f} % (median; 90 % interval {:+.2f} to {:+.2f} %)\n",
               100 * cost.median, 100 * cost.low, 100 * cost.high);
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"what recording costs: processor time with a recorder and without, in pairs",
                 "drawpoint bench recording"};
    add_data_option(app, options.data);
    app.add_option("--pairs", options.pairs, "[40]")->check(CLI::Range(3, 10'000));
    app.add_option("--epochs", options.epochs, "of a run [2]")->check(CLI::Range(1, 1000));
    app.add_option("--batch-size", options.batch_size, "[32]")->check(CLI::Range(1, 1 << 20));
    app.add_option("--num-workers", options.num_workers, "[2]")->check(CLI::Range(1, 256));
    app.add_flag("--json", options.json, "JSON on stdout, not a text");
    return run_program(app, "recording", argc, argv,
                       [&](const std::string& command) { return run_all(options, command); });
}
