#include "cli/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/array_data.hpp"
#include "cli/machine.hpp"
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {
namespace {

using Colour = OutputOptions::Colour;

constexpr std::array<std::string_view, 8> format_names{"auto",  "folder", "tar", "idx",
                                                       "cifar", "npy",    "raw", "synthetic"};

constexpr std::array<std::string_view, 10> report_styles{
    "drawpoint",          "throughput", "simple", "simple-old", "lightning",
    "lightning-extended", "hannah",     "op",     "advanced",   "tree"};

bool is_set(const char* variable) {
    const char* const value = std::getenv(variable);
    return value && *value;
}

/// As no-color.org and bixense.com/clicolors have it.
bool colour_on(Colour wish, int file) {
    if (wish != Colour::automatic)
        return wish == Colour::always;
    if (is_set("NO_COLOR"))
        return false;
    const char* const force = std::getenv("CLICOLOR_FORCE");
    if (is_set("CLICOLOR_FORCE") && std::string_view{force} != "0")
        return true;
    const char* const terminal = std::getenv("TERM");
    return isatty(file) != 0 && !(terminal && std::string_view{terminal} == "dumb");
}

/// Adds an option that has one value so far; those in `promised` are refused as not delivered yet.
void add_only(CLI::App& app, const std::string& option, std::string_view only, std::vector<std::string_view> promised,
              const std::string& description) {
    const auto take = [=](const std::string& text) {
        if (std::ranges::find(promised, text) != promised.end())
            throw UsageError{fmt::format("{} {} is not delivered yet", option, text)};
        (void)position_in({&only, 1}, option, text);
    };
    app.add_option_function<std::string>(option, take, description)
        ->default_str(std::string{only})
        ->type_name(std::string{only});
}

std::uint64_t bytes_or_none(std::string_view option, std::string_view text) {
    return text.empty() ? 0 : bytes_in(option, text);
}

OrderRule order_in(std::string_view option, std::string_view text) {
    const auto rule = OrderRule::parse(text);
    if (!rule)
        throw UsageError{fmt::format("{} must be in, out or a number of batches above 0, got '{}'", option, text)};
    return *rule;
}

/// The number of samples of "synthetic[:COUNT]".
std::optional<std::uint64_t> synthetic_in(std::string_view option, std::string_view text) {
    constexpr std::string_view name = "synthetic";
    if (text == name)
        return 1024;
    if (!text.starts_with(name) || text[name.size()] != ':')
        return std::nullopt;
    const auto count = number_in<std::uint64_t>(text.substr(name.size() + 1));
    if (!count || *count == 0 || *count > UINT32_MAX)
        throw UsageError{
            fmt::format("{} synthetic:COUNT needs a count between 1 and {}, got '{}'", option, UINT32_MAX, text)};
    return count;
}

std::optional<double> share_in(std::string_view option, std::string_view text) {
    const auto share = number_in<double>(text);
    if (share && !(*share > 0 && *share <= 0.5))
        throw UsageError{fmt::format("{} must be a folder, or a share above 0 and at most 0.5, got {}", option, text)};
    return share;
}

std::optional<ScheduleOptions> schedule_in(std::string_view option, std::string_view text) {
    if (text.empty())
        return std::nullopt;
    try {
        return parse_schedule(text);
    } catch (const std::invalid_argument& error) {
        throw UsageError{fmt::format("{} {}: {}", option, text, error.what())};
    }
}

std::vector<Injection> injections_in(const std::vector<std::string>& texts) {
    std::vector<Injection> injections;
    for (const std::string& text : texts) {
        try {
            injections.push_back(parse_injection(text));
        } catch (const std::invalid_argument& error) {
            throw UsageError{error.what()};
        }
        const InjectionKind kind = injections.back().kind;
        if (std::ranges::count(injections, kind, &Injection::kind) > 1)
            throw UsageError{fmt::format("--inject {}: {} is given twice", text, to_string(kind))};
    }
    return injections;
}

/// cpu, or a kind of accelerator and maybe its number.
std::string device_in(std::string_view option, const std::string& text) {
    const std::string_view kind = std::string_view{text}.substr(0, text.find(':'));
    const bool has_number = kind.size() != text.size();
    const bool is_known = kind == "cuda" || kind == "xpu" || kind == "mps" || (kind == "cpu" && !has_number);
    if (!is_known || (has_number && !number_in<std::uint8_t>(std::string_view{text}.substr(kind.size() + 1))))
        throw UsageError{
            fmt::format("{} must be cpu, cuda, xpu, mps, or one with a number such as cuda:1, got '{}'", option, text)};
    return text;
}

}   // namespace

bool OutputOptions::colour_on_stdout() const { return colour_on(colour, STDOUT_FILENO); }
TextOptions OutputOptions::text_options() const {
    constexpr std::size_t widest = 120;   // longer lines are hard to read
    return {.colour = colour_on_stdout(), .width = std::min(width_of_stdout().value_or(widest), widest)};
}
bool OutputOptions::colour_on_stderr() const { return colour_on(colour, STDERR_FILENO); }

void add_colour(CLI::App& app, Colour& colour) {
    add_read(app, "--color", colour, "auto", one_of<Colour>({"auto", "always", "never"}), "auto, always or never")
        ->configurable(false);
}

OutputFlags::OutputFlags(CLI::App& app, bool tables) {
    app.option_defaults()->group("Output");
    json_ = app.add_flag("--json")->configurable(false);
    json_->description("prints JSON instead of text; --json=FILE writes it beside");
    if (tables) {
        app.add_flag("--csv", csv_, "prints the rows as CSV instead of text")->configurable(false);
        app.add_flag("--markdown", markdown_, "prints Markdown instead of text")->configurable(false);
    }
    add_colour(app, colour_);
    app.option_defaults()->group(group_of_others);
}

OutputOptions OutputFlags::read() const {
    OutputOptions options{.colour = colour_};
    bool json = false;
    for (const std::string& value : json_->results())
        if (value == "true")
            json = true;
        else
            options.json_files.push_back(value);
    if (int{json} + int{csv_} + int{markdown_} > 1)
        throw UsageError{
            "--json, --csv and --markdown choose the form of one output: give one of them (--json=FILE writes beside)"};
    using Form = OutputOptions::Form;
    options.form = json ? Form::json : csv_ ? Form::csv : markdown_ ? Form::markdown : Form::text;
    return options;
}

std::string_view name_of(DataFormat format) noexcept { return format_names[static_cast<std::size_t>(format)]; }

void ProfileOptions::add_to(CLI::App& app) {
    add_data(app);
    add_loading(app);
    add_training(app);
    add_recording(app);
    app.option_defaults()->group(group_of_others);
}

void ProfileOptions::add_data(CLI::App& app) {
    app.option_defaults()->group("Data");
    add_read(app, "--data", data, synthetic_in,
             "an image folder (one folder a class), tar shards, MNIST as torchvision lays it out, CIFAR's binary "
             "files, a .npy file, or synthetic[:COUNT]")
        ->type_name("FOLDER|FILE|synthetic[:COUNT]");
    add_read(app, "--format", format, one_of<DataFormat>({format_names.begin(), format_names.end() - 1}),
             "auto, folder, tar, idx, cifar, npy or raw");
    app.add_option("--targets", targets, "classes of a .npy or idx file: a file of the same format")->type_name("FILE");
    add_read(app, "--record", record, record_in, "with --format raw: a record's fields, e.g. label:uint8+uint8:3x32x32")
        ->type_name("FIELDS");
    add_number(app, "--image-size", image_size, 1, 65'500, "pixels a side");
    add_read(app, "--resize-filter", resize_filter, one_of<ResizeFilter>({"antialias", "bilinear"}),
             "antialias (as PIL) or bilinear");
    add_only(app, "--allow-inexact", "none", {"dct-scale", "fast-dct", "dct-scale,fast-dct", "fast-dct,dct-scale"},
             "none");
    add_read(app, "--jpeg-decoder", jpeg_decoder, "auto", one_of<JpegBackend>({"auto", "library", "own"}),
             "auto, library (libjpeg-turbo) or own; the pixels are the same");
    add_read(
        app, "--on-error", on_error, one_of<OnError>({"raise", "skip", "substitute"}),
        "raise: a sample that can't be loaded ends the run; skip: batches come without it; substitute: with a copy "
        "of another one");
    app.add_option("--max-errors", max_errors,
                   "most samples an epoch that --on-error skips or substitutes [0.1 %, at least 10]")
        ->type_name("N");
    add_read(app, "--valid", valid, share_in, "validation data: an image folder, or the share of --data to hold out")
        ->type_name("none|FOLDER|SHARE");
    app.add_flag("--drop-last", drop_last, "leaves a short last batch out");
    add_number(app, "--seed", seed, 0, INT64_MAX, "of everything random");
}

void ProfileOptions::add_loading(CLI::App& app) {
    namespace limits = loader_limits;
    app.option_defaults()->group("Loading");
    loader.num_workers = std::min(static_cast<std::size_t>(whole_usable_cores()), limits::most_workers);
    add_number(app, "--batch-size", loader.batch_size, 1, limits::most_batch_size, "samples a batch");
    add_number(app, "--num-workers", loader.num_workers, 0, limits::most_workers,
               "threads that load; 0: the loop's own thread does [the usable cores]");
    add_number(app, "--prefetch-depth", loader.prefetch_depth, 1, limits::most_prefetch_depth, "batches loaded ahead");
    add_number(app, "--read-concurrency", loader.read_concurrency, 0, limits::most_read_concurrency,
               "reads in flight, whatever --num-workers is; 0: workers read for themselves");
    const auto read_budget = [this](std::string_view option, std::string_view text) {
        return bytes_or_none(option, memory_budget = text);
    };
    add_read(app, "--memory-budget", loader.memory_budget, memory_budget, read_budget,
             "most bytes of batches, samples in flight and cache, e.g. 1GiB [none]")
        ->type_name("SIZE");
    add_read(app, "--cache", cache, bytes_or_none, "keeps decoded samples, up to so many bytes, e.g. 2GiB [none]")
        ->type_name("SIZE");
    add_read(app, "--order", loader.order, to_string(loader.order), order_in,
             "in: batches come in the sampler's order; out: as they are ready; K: none is overtaken by more than K")
        ->type_name("in|out|K");
    add_number(app, "--stall-timeout", stall_timeout, 0, 86'400,
               "tells on stderr what the workers do once the loop has waited so many seconds for a batch; 0: never");
}

void ProfileOptions::add_training(CLI::App& app) {
    namespace limits = loader_limits;
    app.option_defaults()->group("Training");
    add_read(app, "--model", model, one_of<ModelKind>({"small_cnn", "mlp", "resnet18", "resnet50", "none"}),
             "small_cnn, mlp, resnet18, resnet50, or none: a loop that only waits --compute-ms");
    add_number(app, "--compute-ms", compute_ms, 0, 1e9, "with --model none: milliseconds a step takes");
    add_read(app, "--optimizer", optimizer, one_of<OptimizerKind>({"sgd", "adam"}), "sgd or adam");
    const auto take_rate = [this](const std::optional<double>& rate) {
        if (rate && !(*rate > 0 && *rate <= 1e6))
            throw UsageError{fmt::format("--learning-rate must be above 0 and at most 1e6, got {}", *rate)};
        learning_rate = rate;
    };
    app.add_option_function<std::optional<double>>("--learning-rate", take_rate,
                                                   "of the optimizer [adam: 0.001, sgd: 0.01]")
        ->type_name("X");
    add_read(app, "--precision", precision, one_of<Precision>({"32", "bf16-mixed"}),
             "of the model: 32, or bf16-mixed (autocast to bfloat16)");
    add_number(app, "--epochs", epochs, 1, UINT32_MAX, "passes over the data");
    add_number(app, "--steps", steps, 0, UINT32_MAX, "stops after so many training steps; 0: no such limit");
    add_read(app, "--device", device, "cpu", device_in,
             "trains on cpu, cuda, xpu, mps, or e.g. cuda:1; a device also normalises pictures")
        ->type_name("cpu|cuda|xpu|mps|cuda:N");
    app.add_option("--device-prefetch", device_prefetch,
                   "with --device: batches copied there ahead, at most --prefetch-depth of use [2]")
        ->check(CLI::Range(std::size_t{0}, limits::most_prefetch_depth).description(""))
        ->type_name("N");
    add_read(app, "--device-memory-budget", device_memory_budget, bytes_or_none,
             "with --device: most bytes of its memory for batches [none]")
        ->type_name("SIZE");
    app.add_option("--checkpoint", checkpoint, "writes model, optimizer and position to this file at each epoch's end")
        ->type_name("FILE");
    add_number(app, "--checkpoint-every", checkpoint_every, 0, UINT32_MAX,
               "also writes the checkpoint after so many steps; 0: only at epochs' ends");
    app.add_option("--resume", resume, "a checkpoint to go on from; --epochs counts those it has")
        ->type_name("CHECKPOINT");
}

void ProfileOptions::add_recording(CLI::App& app) {
    app.option_defaults()->group("Recording");
    add_read(
        app, "--profiler", profiler,
        one_of<ProfilerKind>({"simple", "throughput", "advanced", "pytorch", "xla", "none"}),
        "simple, throughput (rows of steps, draws and batches alone), advanced (samples every thread's functions), "
        "pytorch (LibTorch's operators), xla (hooks as regions), or none (no file)");
    add_number(app, "--profiler-port", profiler_port, 0, UINT16_MAX,
               "with --profiler xla: answers TensorBoard's \"Capture profile\" on this port of 127.0.0.1; 0: does not");
    add_read(app, "--schedule", schedule, schedule_in,
             "with --profiler pytorch: whose steps' operators to record, e.g. wait=1,warmup=1,active=3,repeat=2 [all]")
        ->type_name("PARTS");
    app.add_flag("--record-shapes", record_shapes, "with --profiler pytorch: the sizes of operators' inputs");
    app.add_flag("--profile-memory", profile_memory, "with --profiler pytorch: allocations of tensor memory");
    app.add_flag("--with-stack", with_stack, "with --profiler pytorch: who called each operator");
    app.add_flag("--with-flops", with_flops, "with --profiler pytorch: operations of products and convolutions");
    add_read(app, "--recording-limit", recording_limit, "256MiB", bytes_in,
             "most bytes of the recording; beyond them, older steps are kept as totals")
        ->type_name("SIZE");
    app.add_option("-o,--output", output, "the recording")->type_name("FILE");
    app.option_defaults()->group("Report");
    app.add_flag("--drop-first-batch,!--no-drop-first-batch", drop_first_batch,
                 "leaves the first batch of each phase out of the rows (on)");
    add_report_style(app, "--report", report);
    app.add_option("--html", html, "also writes the run as a page of HTML with pictures to this file")
        ->type_name("FILE");
    add_logs(app, logs, "also logs the run while it trains");
    app.option_defaults()->group("Experiments");
    app.add_option_function<std::vector<std::string>>(
           "--inject", [this](const std::vector<std::string>& texts) { inject = injections_in(texts); },
           "a fault for experiments, e.g. read-latency=5ms or decode=x3; repeatable")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->default_str("[]")
        ->type_name("KIND=VALUE");
}

void ProfileOptions::check_together() const {
    if (data.text.empty())
        throw UsageError{"--data is missing: a folder of images, or synthetic[:COUNT]"};
    for (const auto& [option, given] : {std::pair{"schedule", schedule.value.has_value()},
                                        {"record-shapes", record_shapes},
                                        {"profile-memory", profile_memory},
                                        {"with-stack", with_stack},
                                        {"with-flops", with_flops}})
        if (given && profiler.value != ProfilerKind::pytorch)
            throw UsageError{fmt::format("--{} needs --profiler pytorch, got --profiler {}", option, profiler.text)};
    if (profiler_port != 0 && profiler.value != ProfilerKind::xla)
        throw UsageError{
            fmt::format("--profiler-port {} needs --profiler xla, got --profiler {}", profiler_port, profiler.text)};
    for (const auto& [style, needed] : {std::pair{"op", "pytorch"}, {"advanced", "advanced"}})
        if (report == style && profiler.text != needed)
            throw UsageError{
                fmt::format("--report {} needs --profiler {}, got --profiler {}", style, needed, profiler.text)};
    if (checkpoint_every != 0 && checkpoint.empty())
        throw UsageError{fmt::format("--checkpoint-every {} needs --checkpoint", checkpoint_every)};
    if (max_errors && on_error.value == OnError::raise)
        throw UsageError{"--max-errors needs --on-error skip or substitute, got --on-error raise"};
    if (output.empty())
        throw UsageError{"-o must name a file (--profiler none writes none)"};
    for (const auto& [option, file] : {std::pair{"checkpoint", &checkpoint}, {"resume", &resume}}) {
        if (profiler.value != ProfilerKind::none && same_file(*file, output))
            throw UsageError{fmt::format("--{} {} and -o {} name the same file", option, *file, output)};
        if (model.value == ModelKind::none && !file->empty())
            throw UsageError{fmt::format("--{} {} needs a model, got --model none", option, *file)};
    }
    if (image_size < 32 && needs_images())
        throw UsageError{
            fmt::format("--image-size must be at least 32 for --model {}, got {}", model.text, image_size)};
    for (const auto& [option, given] : {std::pair{"device-prefetch", device_prefetch.has_value()},
                                        {"device-memory-budget", device_memory_budget.value != 0}})
        if (given && !on_device())
            throw UsageError{fmt::format("--{} needs --device cuda, xpu or mps, got --device cpu", option)};
    if (on_device() && model.value == ModelKind::none)
        throw UsageError{fmt::format("--device {} needs a model, got --model none", device)};
    if (precision.value != Precision::float32 && model.value == ModelKind::none)
        throw UsageError{fmt::format("--precision {} needs a model, got --model none", precision.text)};
    if (compute_ms > 0 && model.value != ModelKind::none)
        throw UsageError{
            fmt::format("--compute-ms {} needs --model none (--inject compute={}ms makes a model's steps longer)",
                        compute_ms, compute_ms)};
    const auto injects = [this](InjectionKind kind) {
        return std::ranges::find(inject, kind, &Injection::kind) != inject.end();
    };
    if (injects(InjectionKind::compute_jitter) && !injects(InjectionKind::compute) && compute_ms == 0)
        throw UsageError{"--inject compute-jitter needs --inject compute, or --model none with --compute-ms"};
}

bool ProfileOptions::validates_elsewhere() const { return !valid.value && valid.text != "none" && !valid.text.empty(); }

bool ProfileOptions::needs_images() const { return model.value != ModelKind::mlp && model.value != ModelKind::none; }

CLI::Option* add_report_style(CLI::App& app, const std::string& option, std::string& style) {
    const auto read = [](std::string_view name, const std::string& text) {
        (void)position_in(report_styles, name, text);
        return text;
    };
    return add_read(app, option, style, style, read, fmt::format("{}", fmt::join(report_styles, ", ")))
        ->type_name(fmt::format("{}", fmt::join(report_styles, "|")));
}

void add_full(CLI::App& app, bool& full) {
    app.add_flag("--full", full, "prints all of drawpoint's own report, not what fits on one screen")
        ->configurable(false)
        ->group("Output");
}

}   // namespace drawpoint::cli
