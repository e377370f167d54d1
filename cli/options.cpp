#include "cli/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/machine.hpp"
#include "cli/number_in.hpp"
#include "cli/program.hpp"

namespace drawpoint::cli {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view value) {
    throw UsageError{fmt::format("--{} {} is not delivered yet", option, value)};
}

[[noreturn]] void unknown_value(std::string_view option, std::string_view value, std::string_view known) {
    throw UsageError{fmt::format("--{} must be one of {}, got '{}'", option, known, value)};
}

struct Choice {
    std::string_view option, value;
    std::initializer_list<std::string_view> delivered, promised;
};

void check_choice(const Choice& choice) {
    if (std::ranges::find(choice.delivered, choice.value) != choice.delivered.end())
        return;
    if (std::ranges::find(choice.promised, choice.value) != choice.promised.end())
        refuse(choice.option, choice.value);
    unknown_value(choice.option, choice.value, fmt::format("{}", fmt::join(choice.delivered, ", ")));
}

void check_range(std::string_view option, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
        throw UsageError{value < low && high > 1'000'000
                             ? fmt::format("--{} must be at least {}, got {}", option, low, value)
                             : fmt::format("--{} must be between {} and {}, got {}", option, low, high, value)};
}

bool colour_on(const std::string& wish, int file) {
    const char* no_color = std::getenv("NO_COLOR");
    return wish == "always" || (wish == "auto" && !(no_color && *no_color) && isatty(file) != 0);
}

}   // namespace

std::uint64_t bytes_in(std::string_view option, std::string_view text) {
    struct Unit {
        std::string_view name;
        double bytes;
    };
    constexpr std::array units{Unit{"KiB", 1 << 10}, Unit{"MiB", 1 << 20}, Unit{"GiB", 1 << 30}, Unit{"kB", 1e3},
                               Unit{"KB", 1e3},      Unit{"MB", 1e6},      Unit{"GB", 1e9},      Unit{"B", 1}};
    std::string_view digits = text;
    double factor = 1;
    for (const Unit& unit : units)
        if (digits.ends_with(unit.name)) {
            digits.remove_suffix(unit.name.size());
            factor = unit.bytes;
            break;
        }
    const auto value = number_in<double>(digits);
    if (!value || !(*value >= 0 && *value * factor < 1e18))
        throw UsageError{fmt::format("--{} must be a number of bytes like 64MiB, got '{}'", option, text)};
    return static_cast<std::uint64_t>(*value * factor);
}

bool OutputOptions::colour_on_stdout() const { return colour_on(colour, STDOUT_FILENO); }
bool OutputOptions::colour_on_stderr() const { return colour_on(colour, STDERR_FILENO); }

OutputFlags::OutputFlags(CLI::App& app, bool tables) {
    json_ = app.add_flag("--json")->configurable(false);
    json_->description("prints JSON instead of text; --json=FILE writes it beside");
    if (tables) {
        app.add_flag("--csv", csv_, "prints the rows as CSV instead of text")->configurable(false);
        app.add_flag("--markdown", markdown_, "prints Markdown instead of text")->configurable(false);
    }
    app.add_option("--color", colour_, "auto, always or never")->configurable(false);
}

OutputOptions OutputFlags::read() const {
    OutputOptions options{.colour = colour_};
    if (colour_ != "auto" && colour_ != "always" && colour_ != "never")
        unknown_value("color", colour_, "auto, always, never");
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

void ProfileOptions::add_to(CLI::App& app) {
    num_workers = std::min<std::int64_t>(whole_usable_cores(), loader_limits::most_workers);
    app.add_option(
        "--data", data,
        "an image folder (one folder a class), tar shards, MNIST or CIFAR as torchvision lays them out, a .npy "
        "file, or synthetic[:COUNT]");
    app.add_option("--format", format, "auto, folder, tar, idx, cifar, npy or raw");
    app.add_option("--targets", targets, "classes of a .npy or idx file: a file of the same format");
    app.add_option("--record", record, "with --format raw: a record's fields, e.g. label:uint8+uint8:3x32x32");
    app.add_option("--model", model, "small_cnn, mlp, resnet18, or none: a loop that only waits --compute-ms");
    app.add_option("--compute-ms", compute_ms, "with --model none: milliseconds a step takes");
    app.add_option("--optimizer", optimizer, "sgd or adam");
    app.add_option("--learning-rate", learning_rate, "of the optimizer [adam: 0.001, sgd: 0.01]");
    app.add_option("--epochs", epochs, "passes over the data");
    app.add_option("--steps", steps, "stops after so many training steps; 0: no such limit");
    app.add_option("--batch-size", batch_size, "samples a batch");
    app.add_flag("--drop-last", drop_last, "leaves a short last batch out");
    app.add_option("--num-workers", num_workers, "threads that load; 0: the loop's own thread does")->type_name("N");
    app.add_option("--prefetch-depth", prefetch_depth, "batches loaded ahead");
    app.add_option("--read-concurrency", read_concurrency,
                   "reads in flight, whatever --num-workers is; 0: workers read for themselves");
    app.add_option("--memory-budget", memory_budget,
                   "most bytes of batches, samples in flight and cache, e.g. 1GiB [none]");
    app.add_option("--cache", cache, "keeps decoded samples, up to so many bytes, e.g. 2GiB [none]");
    app.add_option(
        "--order", order,
        "in: batches come in the sampler's order; out: as they are ready; K: none is overtaken by more than K");
    app.add_option("--seed", seed, "of everything random");
    app.add_option("--image-size", image_size, "pixels a side");
    app.add_option("--resize-filter", resize_filter, "antialias (as PIL) or bilinear");
    app.add_option("--allow-inexact", allow_inexact, "none");
    app.add_option("--jpeg-decoder", jpeg_decoder, "auto, library (libjpeg-turbo) or own; the pixels are the same");
    app.add_option("--on-error", on_error, "raise: a sample that can't be loaded ends the run");
    app.add_option("--valid", valid, "validation data: an image folder, or the share of --data to hold out");
    app.add_option("--device", device, "cpu");
    app.add_option(
        "--profiler", profiler,
        "simple, throughput (rows of steps, draws and batches alone), advanced (samples every thread's functions), "
        "pytorch (LibTorch's operators), or none (no file)");
    app.add_option(
        "--schedule", schedule,
        "with --profiler pytorch: whose steps' operators to record, e.g. wait=1,warmup=1,active=3,repeat=2 [all]");
    app.add_flag("--record-shapes", record_shapes, "with --profiler pytorch: the sizes of operators' inputs");
    app.add_flag("--profile-memory", profile_memory, "with --profiler pytorch: allocations of tensor memory");
    app.add_flag("--with-stack", with_stack, "with --profiler pytorch: who called each operator");
    app.add_flag("--with-flops", with_flops, "with --profiler pytorch: operations of products and convolutions");
    app.add_flag("--drop-first-batch,!--no-drop-first-batch", drop_first_batch,
                 "leaves the first batch of each phase out of the rows (on)");
    app.add_option("--recording-limit", recording_limit, "most bytes of samples recorded, e.g. 64MiB");
    app.add_option("--checkpoint", checkpoint, "writes model, optimizer and position to this file at each epoch's end");
    app.add_option("--resume", resume, "a checkpoint to go on from; --epochs counts those it has");
    app.add_option("-o,--output", output, "the recording");
    app.add_option("--report", report, fmt::format("{}", fmt::join(report_styles, ", ")));
    app.add_option("--inject", inject, "a fault for experiments, e.g. read-latency=5ms or decode=x3; repeatable")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void ProfileOptions::check() const {
    if (data.empty())
        throw UsageError{"--data is missing: a folder of images, or synthetic[:COUNT]"};
    check_choice({"format", format, {"auto", "folder", "tar", "idx", "cifar", "npy", "raw"}, {}});
    check_choice({"model", model, {"small_cnn", "mlp", "resnet18", "none"}, {}});
    check_choice({"optimizer", optimizer, {"sgd", "adam"}, {}});
    check_choice({"device", device, {"cpu"}, {"cuda"}});
    check_choice({"resize-filter", resize_filter, {"antialias", "bilinear"}, {}});
    check_choice({"allow-inexact",
                  allow_inexact,
                  {"none"},
                  {"dct-scale", "fast-dct", "dct-scale,fast-dct", "fast-dct,dct-scale"}});
    check_choice({"jpeg-decoder", jpeg_decoder, {"auto", "library", "own"}, {}});
    check_choice({"on-error", on_error, {"raise"}, {"skip", "substitute"}});
    check_choice({"profiler", profiler, {"simple", "throughput", "advanced", "pytorch", "none"}, {}});
    check_report_style("report", report);
    (void)batch_order();
    (void)memory_budget_bytes();
    (void)cache_bytes();
    if (profiler != "pytorch") {
        for (const auto& [name, given] : {std::pair{"schedule", !schedule.empty()},
                                          {"record-shapes", record_shapes},
                                          {"profile-memory", profile_memory},
                                          {"with-stack", with_stack},
                                          {"with-flops", with_flops}})
            if (given)
                throw UsageError{fmt::format("--{} needs --profiler pytorch, got --profiler {}", name, profiler)};
    }
    (void)profiler_schedule();
    for (const auto& [style, needed] : {std::pair{"op", "pytorch"}, {"advanced", "advanced"}})
        if (report == style && profiler != needed)
            throw UsageError{
                fmt::format("--report {} needs --profiler {}, got --profiler {}", style, needed, profiler)};
    check_separate_files();
    if (model == "none")
        for (const auto& [name, file] : {std::pair{"checkpoint", &checkpoint}, {"resume", &resume}})
            if (!file->empty())
                throw UsageError{fmt::format("--{} {} needs a model, got --model none", name, *file)};
    if (output.empty())
        throw UsageError{"-o must name a file (--profiler none writes none)"};
    check_range("read-concurrency", read_concurrency, 0, loader_limits::most_read_concurrency);
    check_range("epochs", epochs, 1, UINT32_MAX);
    check_range("steps", steps, 0, UINT32_MAX);
    check_range("batch-size", batch_size, 1, loader_limits::most_batch_size);
    check_range("num-workers", num_workers, 0, loader_limits::most_workers);
    check_range("prefetch-depth", prefetch_depth, 1, loader_limits::most_prefetch_depth);
    check_range("seed", seed, 0, INT64_MAX);
    check_range("image-size", image_size, 1, 65'500);
    if (image_size < 32 && (model == "small_cnn" || model == "resnet18"))
        throw UsageError{fmt::format("--image-size must be at least 32 for --model {}, got {}", model, image_size)};
    if (!(compute_ms >= 0 && compute_ms <= 1e9))
        throw UsageError{fmt::format("--compute-ms must be at least 0, got {}", compute_ms)};
    if (compute_ms > 0 && model != "none")
        throw UsageError{
            fmt::format("--compute-ms {} needs --model none (--inject compute={}ms makes a model's steps longer)",
                        compute_ms, compute_ms)};
    if (learning_rate && !(*learning_rate > 0 && *learning_rate <= 1e6))
        throw UsageError{fmt::format("--learning-rate must be above 0, got {}", *learning_rate)};
    (void)recording_limit_bytes();
    (void)valid_share();
    (void)synthetic();
}

void ProfileOptions::check_separate_files() const {
    namespace fs = std::filesystem;
    const auto same = [](const std::string& a, const std::string& b) {
        std::error_code unknown;
        return !a.empty() && !b.empty() &&
               (fs::weakly_canonical(fs::absolute(a, unknown), unknown) ==
                    fs::weakly_canonical(fs::absolute(b, unknown), unknown) ||
                fs::equivalent(a, b, unknown));
    };
    const std::string recording = profiler == "none" ? "" : output;
    for (const auto& [option, file] : {std::pair{"--checkpoint", &checkpoint}, {"--resume", &resume}})
        if (same(*file, recording))
            throw UsageError{fmt::format("{} {} and -o {} name the same file", option, *file, output)};
}

std::uint64_t ProfileOptions::recording_limit_bytes() const { return bytes_in("recording-limit", recording_limit); }
std::uint64_t ProfileOptions::memory_budget_bytes() const {
    return memory_budget.empty() ? 0 : bytes_in("memory-budget", memory_budget);
}
std::uint64_t ProfileOptions::cache_bytes() const { return cache.empty() ? 0 : bytes_in("cache", cache); }

JpegBackend ProfileOptions::jpeg_backend() const {
    return jpeg_decoder == "own"       ? JpegBackend::own
           : jpeg_decoder == "library" ? JpegBackend::library
                                       : JpegBackend::automatic;
}

OrderRule ProfileOptions::batch_order() const {
    const auto rule = OrderRule::parse(order);
    if (!rule)
        throw UsageError{fmt::format("--order must be in, out or a number of batches above 0, got '{}'", order)};
    return *rule;
}

std::optional<double> ProfileOptions::valid_share() const {
    const auto share = number_in<double>(valid);
    if (share && !(*share > 0 && *share <= 0.5))
        throw UsageError{fmt::format("--valid must be a folder, or a share above 0 and at most 0.5, got {}", valid)};
    return share;
}

std::optional<std::uint64_t> ProfileOptions::synthetic() const {
    if (data != "synthetic" && !data.starts_with("synthetic:"))
        return std::nullopt;
    if (data == "synthetic")
        return 1024;
    const auto count = number_in<std::uint64_t>(std::string_view{data}.substr(std::string_view{"synthetic:"}.size()));
    if (!count || *count == 0 || *count > UINT32_MAX)
        throw UsageError{
            fmt::format("--data synthetic:COUNT needs a count between 1 and {}, got '{}'", UINT32_MAX, data)};
    return count;
}

std::optional<ScheduleOptions> ProfileOptions::profiler_schedule() const {
    if (schedule.empty())
        return std::nullopt;
    try {
        return parse_schedule(schedule);
    } catch (const std::invalid_argument& error) {
        throw UsageError{fmt::format("--schedule {}: {}", schedule, error.what())};
    }
}

void check_report_style(std::string_view option, std::string_view style) {
    if (std::ranges::find(report_styles, style) == report_styles.end())
        unknown_value(option, style, fmt::format("{}", fmt::join(report_styles, ", ")));
}

}   // namespace drawpoint::cli
