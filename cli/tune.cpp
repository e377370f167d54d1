#include <algorithm>
#include <csignal>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/data.hpp"
#include "cli/machine.hpp"
#include "cli/report_output.hpp"
#include "cli/run_logs.hpp"
#include "cli/run_page.hpp"
#include "cli/training.hpp"
#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/diagnosis/tuner/tuner.hpp>
#include <drawpoint/diagnosis/tuner/tuning_report.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/host/detail/signals.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/torch/worker_threads.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::size_t blocks_of_pass = 10;   // about one round of the race; the next round has other samples

/// The setting as a file for `profile --config`, with comments that say where it was found.
std::string to_config(const Tuning& tuning, const ProfileOptions& options, const Data& data,
                      const Invocation& invocation) {
    const Machine machine = this_machine();
    const auto in_comment = [](std::string text) {
        std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
        return text;
    };
    std::string text =
        fmt::format("# {}\n# machine: {}, {} cores\n# data: {}, {} samples, model {}\n# {}\n",
                    in_comment(invocation.line), in_comment(machine.cpu), machine.cores_usable.value_or(1),
                    in_comment(options.data.text), data.train->size(), options.model.text, in_comment(tuning.why));
    text +=
        fmt::format("num-workers = {}\nprefetch-depth = {}\norder = \"{}\"\nbatch-size = {}\nread-concurrency = {}\n",
                    tuning.chosen.num_workers, tuning.chosen.prefetch_depth, to_string(tuning.chosen.order),
                    tuning.chosen.batch_size, tuning.chosen.read_concurrency);
    if (tuning.chosen.memory_budget != 0)
        text += fmt::format("memory-budget = \"{}B\"\n", tuning.chosen.memory_budget);
    return text;
}

constexpr std::array without_effect{"--epochs",           "--steps",      "--valid",           "--profiler",
                                    "--profiler-port",    "--schedule",   "--record-shapes",   "--profile-memory",
                                    "--with-stack",       "--with-flops", "--recording-limit", "--checkpoint",
                                    "--checkpoint-every", "--resume",     "--report",          "--drop-first-batch"};

/// Leaves options of `profile` that have no effect here out of the list of options.
void hide_without_effect(CLI::App& app) {
    for (const char* const name : without_effect)
        app.get_option(name)->group("");
}

/// Throws UsageError for those.
void refuse_without_effect(CLI::App& app) {
    for (const char* const name : without_effect)
        if (app.get_option(name)->count() > 0)
            throw UsageError{fmt::format("{} has no effect on tune, which runs as many steps as it needs", name)};
}

/// Tunes the loader while it trains. nullopt: it was stopped. Throws Failure if training or tuning fails.
std::optional<Tuning> tune_training(ProfileOptions options, TuneOptions limits, const Data& data, StopRequest& stop) {
    options.epochs = std::numeric_limits<std::int32_t>::max();
    Recorder recorder{RecorderOptions{.ledger_bytes = 0, .ledger_steps = 4000}};
    recorder.set_fact(facts::machine_cores, std::to_string(this_machine().cores_usable.value_or(1)));
    CallbackList callbacks;
    callbacks.add(stop);
    std::optional<Tuning> tuning;
    std::string not_tuned;
    Outcome outcome;
    {
        Runtime runtime{{.on_worker_start = limit_torch_threads}, recorder};
        Loaders loaders{runtime, options, data};
        const StopRequest::Watch watch{stop, loaders.all()};
        LiveTarget target{loaders.train, recorder};
        callbacks.add(target);
        limits.start = loaders.train.options().setting();
        try {
            tuning = tune_live(target, limits, [&] {
                outcome = train_model(options, data.classes, runtime, loaders, callbacks, stop);
            });
        } catch (const std::exception& error) {
            not_tuned = error.what();
        }
        callbacks.remove(target);
    }
    recorder.finish();
    if (stop.asked())
        return std::nullopt;
    if (!outcome.error.empty())
        throw Failure{outcome.error};
    if (!tuning)
        throw Failure{fmt::format("not tuned: {}", not_tuned)};
    return tuning;
}

}   // namespace

int tune_loader(const Invocation& invocation) {
    ProfileOptions options;
    CommandLine line{invocation,
                     "Finds the smallest setting within 2 % of the best: simulates all, races the likeliest live."};
    options.output = "tuned.toml";
    options.add_to(line.app());
    hide_without_effect(line.app());
    line.app().get_option("--output")->description("the setting, as a file for `drawpoint profile --config`");
    TuneOptions limits;
    bool whole_data = false;
    add_number(line.app(), "--most-workers", limits.most_workers, 0, loader_limits::most_workers,
               "of --num-workers; 0: twice the cores and 8, or 64");
    add_number(line.app(), "--most-depth", limits.most_depth, 1, loader_limits::most_prefetch_depth,
               "of --prefetch-depth");
    add_number(line.app(), "--most-steps", limits.most_steps, 200, INT64_MAX, "training steps in all");
    line.app().add_flag("--allow-out-of-order", limits.may_leave_order, "--order out may be chosen");
    line.app().add_flag(
        "--whole-data", whole_data,
        "trains on all samples in turn, not on each block's again and again: for data that no cache holds");
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    refuse_without_effect(line.app());
    if (options.on_device())
        throw UsageError{"--device: tune runs loops on the CPU alone; for one on a device, ask diagnose and whatif"};
    options.check_together();
    if (options.loader.num_workers < 1)
        throw UsageError{"--num-workers must be at least 1 to be tuned, got 0"};
    limits.steps = std::min(limits.steps, limits.most_steps);
    const OutputOptions output = flags.read();
    check_files(output, "-o", options.output);
    check_files({.json_files = {options.output}}, "-o", "");
    check_page(options.html, "-o", options.output);
    for (const std::string& json : output.json_files)
        check_page(options.html, "--json", json);
    for (const RunLog& log : options.logs)
        if (!takes_runs(log.format))
            throw UsageError{
                fmt::format("--log {}={}: each trial of tune is a run: tensorboard, wandb and mlflow have runs",
                            log.format, log.path)};
    check_run_logs(options.logs);

    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    StopRequest stop;
    Signals signals{[&stop](int signal) { stop.ask(signal); }};
    Data data = open_data(options);
    std::unique_ptr<const Sampler> whole;   // which a RepeatedSampler refers to
    if (!whole_data) {
        whole = std::move(data.train_sampler);
        data.train_sampler =
            std::make_unique<RepeatedSampler>(*whole, limits.block_steps * options.loader.batch_size, blocks_of_pass);
    }
    const std::optional<Tuning> tuning = tune_training(options, limits, data, stop);
    if (!tuning)
        return exit_interrupted;
    FirstFailure failures;   // what cannot be written must not cost the rest, which took minutes
    std::string wrote;
    failures.run([&] {
        write_file(options.output, to_config(*tuning, options, data, invocation));
        wrote = fmt::format("wrote {0}: drawpoint profile --config {0} …\n", options.output);
    });
    if (!options.html.empty())
        failures.run(
            [&] { write_file(options.html, to_html(*tuning, fmt::format("Tuning on {}", options.data.text))); });
    for (const RunLog& log : options.logs)
        failures.run([&] { write_trials(log, *tuning); });
    print_output(to_text(*tuning, output.text_options()) + wrote,
                 to_json(*tuning, {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine()), output);
    failures.rethrow();
    return exit_ok;
}

}   // namespace drawpoint::cli
