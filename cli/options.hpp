#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/program.hpp"   // UsageError, which all readers of options throw
#include <drawpoint/instrumentation/schedule.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/loader/loader_setting.hpp>

namespace drawpoint::cli {

/// Which form stdout takes, and files beside it.
struct OutputOptions {
    enum class Form : std::uint8_t { text, json, csv, markdown } form = Form::text;
    std::vector<std::string> json_files;
    std::string colour = "auto";

    [[nodiscard]] bool colour_on_stdout() const;
    [[nodiscard]] bool colour_on_stderr() const;
};

/// Adds --json[=FILE], --color and, if `tables`, --csv and --markdown. The result is filled in by `read_output`.
class OutputFlags {
public:
    OutputFlags(CLI::App& app, bool tables);
    /// After parsing. Throws UsageError for two forms at once.
    [[nodiscard]] OutputOptions read() const;

private:
    CLI::Option* json_;
    bool csv_ = false, markdown_ = false;
    std::string colour_ = "auto";
};

/// What `profile` was asked to do, checked.
struct ProfileOptions {
    std::string data, format = "auto", targets, record, model = "small_cnn", optimizer = "adam", valid = "none",
                      device = "cpu";
    std::optional<double> learning_rate;
    double compute_ms = 0;
    std::int64_t epochs = 1, steps = 0, batch_size = 64, num_workers = 0, prefetch_depth = 4, read_concurrency = 64;
    std::int64_t seed = 0, image_size = 224;
    bool drop_last = false, drop_first_batch = true;
    bool record_shapes = false, profile_memory = false, with_stack = false, with_flops = false;
    std::string memory_budget, cache, order = "in", resize_filter = "antialias", allow_inexact = "none",
                                      jpeg_decoder = "auto";
    std::string on_error = "raise", profiler = "simple", schedule, recording_limit = "256MiB", resume, checkpoint,
                output = "run.pftrace";
    std::string report = "drawpoint";
    std::vector<std::string> inject;

    /// Adds every option to `app`, bound to this.
    void add_to(CLI::App& app);
    /// Throws UsageError naming the first option whose value is wrong or not delivered yet.
    void check() const;

    [[nodiscard]] std::uint64_t recording_limit_bytes() const;
    [[nodiscard]] std::uint64_t memory_budget_bytes() const;   ///< 0: none
    [[nodiscard]] std::uint64_t cache_bytes() const;           ///< 0: none
    [[nodiscard]] JpegBackend jpeg_backend() const;
    [[nodiscard]] OrderRule batch_order() const;   ///< `--order`
    /// Of `--schedule`, if it is given.
    [[nodiscard]] std::optional<ScheduleOptions> profiler_schedule() const;
    /// Throws UsageError where the recording would take the place of a checkpoint.
    void check_separate_files() const;
    /// The share of `--valid`, if it is one: 0 < share < 1.
    [[nodiscard]] std::optional<double> valid_share() const;
    /// COUNT of `--data synthetic[:COUNT]`, if that is asked for.
    [[nodiscard]] std::optional<std::uint64_t> synthetic() const;
};

/// The reports there are.
inline constexpr std::array<std::string_view, 10> report_styles{
    "drawpoint",          "throughput", "simple", "simple-old", "lightning",
    "lightning-extended", "hannah",     "op",     "advanced",   "tree"};

/// A size as 64MiB, in bytes. Throws UsageError naming the option, which is given without its dashes.
[[nodiscard]] std::uint64_t bytes_in(std::string_view option, std::string_view text);

/// Throws UsageError if `style` is none of them.
void check_report_style(std::string_view option, std::string_view style);

}   // namespace drawpoint::cli
