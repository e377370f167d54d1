#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/log_targets.hpp"
#include "cli/option_values.hpp"
#include "cli/program.hpp"   // UsageError, which all readers of options throw
#include <drawpoint/instrumentation/schedule.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/image/resize.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>
#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>

namespace drawpoint::cli {

/// The form of what goes to stdout, and the JSON files written as well.
struct OutputOptions {
    enum class Form : std::uint8_t { text, json, csv, markdown } form = Form::text;
    enum class Colour : std::uint8_t { automatic, always, never } colour = Colour::automatic;
    std::vector<std::string> json_files;

    [[nodiscard]] bool colour_on_stdout() const;
    [[nodiscard]] bool colour_on_stderr() const;
    /// Of text on stdout.
    [[nodiscard]] TextOptions text_options() const;
};

/// Adds --color, bound to `colour`.
void add_colour(CLI::App& app, OutputOptions::Colour& colour);

/// Adds --json[=FILE], --color and, if `tables`, --csv and --markdown.
class OutputFlags {
public:
    /// Both outlive the parsing of the command line.
    OutputFlags(CLI::App& app, bool tables);
    /// What was asked for, after parsing. Throws UsageError if it is two forms at once.
    [[nodiscard]] OutputOptions read() const;

private:
    CLI::Option* json_;
    bool csv_ = false, markdown_ = false;
    OutputOptions::Colour colour_{};
};

enum class DataFormat : std::uint8_t { automatic, folder, tar, idx, cifar, npy, raw, synthetic };
/// "auto", "folder", …
[[nodiscard]] std::string_view name_of(DataFormat) noexcept;

enum class ModelKind : std::uint8_t { small_cnn, mlp, resnet18, resnet50, none };
enum class Precision : std::uint8_t { float32, bf16_mixed };
enum class OptimizerKind : std::uint8_t { sgd, adam };
enum class ProfilerKind : std::uint8_t { simple, throughput, advanced, pytorch, xla, none };

/// What `profile` was asked to do. `add_to` sets the defaults that are not set here.
struct ProfileOptions {
    Given<std::optional<std::uint64_t>> data;   ///< value: number of synthetic samples; absent: `text` is a path
    Given<DataFormat> format{"auto"};
    std::string targets;
    Given<std::optional<RawRecords>> record;      ///< without paths
    Given<std::optional<double>> valid{"none"};   ///< value: the share of `data` to hold out, above 0, at most 0.5
    Given<ModelKind> model{"small_cnn"};
    Given<OptimizerKind> optimizer{"adam"};
    std::optional<double> learning_rate;
    Given<Precision> precision{"32"};
    double compute_ms = 0;
    std::size_t epochs = 1, steps = 0;
    std::string html;   ///< page; empty: none
    std::vector<RunLog> logs;
    LoaderSetting loader{.prefetch_depth = 4, .batch_size = 64, .read_concurrency = 64};
    std::string memory_budget;    ///< as given; `loader` has its bytes
    Given<std::uint64_t> cache;   ///< bytes; 0: none
    std::uint64_t seed = 0;
    std::uint32_t image_size = 224;
    Given<ResizeFilter> resize_filter{"antialias"};
    JpegBackend jpeg_decoder{};
    Given<OnError> on_error{"raise"};
    std::optional<std::size_t> max_errors;
    std::size_t stall_timeout = 60;   ///< seconds; 0: none
    std::string device;               ///< "cpu", or as `DeviceOptions::device`
    std::optional<std::size_t> device_prefetch;
    Given<std::uint64_t> device_memory_budget;   ///< bytes; 0: none
    bool drop_last = false, drop_first_batch = true;
    Given<ProfilerKind> profiler{"simple"};
    std::uint16_t profiler_port = 0;   ///< 0: none
    Given<std::optional<ScheduleOptions>> schedule;
    bool record_shapes = false, profile_memory = false, with_stack = false, with_flops = false;
    std::uint64_t recording_limit = 0;   ///< bytes
    std::size_t checkpoint_every = 0;    ///< steps
    std::string resume, checkpoint, output = "run.pftrace", report = "drawpoint";
    std::vector<Injection> inject;

    /// Adds every option to `app`, bound to this, which must stay where it is until `app` has parsed.
    void add_to(CLI::App& app);
    /// After parsing: throws UsageError if --data is missing or options do not go together.
    void check_together() const;

    /// Whether --valid names other data.
    [[nodiscard]] bool validates_elsewhere() const;
    /// Whether --device names an accelerator.
    [[nodiscard]] bool on_device() const noexcept { return device != "cpu"; }
    /// Whether the model takes images of three channels, and nothing else.
    [[nodiscard]] bool needs_images() const;

private:
    void add_data(CLI::App& app);
    void add_loading(CLI::App& app);
    void add_training(CLI::App& app);
    void add_recording(CLI::App& app);
};

/// Adds an option that takes the name of a style of report.
CLI::Option* add_report_style(CLI::App&, const std::string& option, std::string& style);

/// Adds --full.
void add_full(CLI::App&, bool& full);

}   // namespace drawpoint::cli
