#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/fastxtend_log.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

class Recorder;

/// fastxtend's options, with its names and defaults.
struct FastxtendSettings {
    bool show_report = true;      ///< print the report after the fit
    bool plain = false;           ///< plain text, as on a terminal without `markdown`
    bool markdown = false;        ///< print it as a Markdown table
    bool save_csv = false;        ///< write the raw results to `path / csv_name`
    std::filesystem::path path;   ///< folder of the CSV file, created when needed; empty: the working directory
    /// Empty: "throughput.csv", "simpleprofiler.csv" or, for `simple_old`, "simple_profile.csv".
    std::string csv_name;
    std::size_t rolling_average = 10;   ///< training batches per live value, and between two of them, ≥ 1
    bool drop_first_batch = true;       ///< leave out the first batch of each phase
    bool samples_per_second = true;     ///< `simple_old`: log rates while training
    /// For a fit that only searches for something, e.g. a learning rate: the callback shows, saves and logs nothing,
    /// and stays among the callbacks.
    bool trial_fit = false;
    Logger* logger = nullptr;      ///< receives live values and the final log; must outlive the callback
    std::ostream* out = nullptr;   ///< where the report is printed; null: standard output
};

/// fastxtend's profiler: a report of one fit from the recorder's ledger, and live throughput while it trains. Add it to
/// the fit's callbacks; it removes itself when the fit ends, however that happens. Nothing is kept from one fit to the
/// next. File errors are kept in `error()` and printed, never thrown into the loop. Recorder and logger must outlive
/// it.
class FastxtendCallback : public Callback {
public:
    FastxtendCallback(Recorder& recorder, ProfileMode mode, FastxtendSettings settings = {});

    [[nodiscard]] std::string_view name() const noexcept override;
    [[nodiscard]] EventSet events() const noexcept override;
    [[nodiscard]] int order() const noexcept override { return 50; }   // after all pieces of a step
    void on(Event event, LoopState& state) override;
    bool fit_over() noexcept override;

    /// The last fit's report as a table, formatted (`profile_report`) or raw (`profile_results`); empty before a fit's
    /// end.
    [[nodiscard]] const std::optional<FastxtendReport>& report() const noexcept { return report_; }
    [[nodiscard]] LogTable profile_report() const;
    [[nodiscard]] LogTable profile_results() const;
    /// The durations that the report summarises.
    [[nodiscard]] const FastxtendValues& values() const noexcept { return values_; }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    /// The file that `save_csv` writes.
    [[nodiscard]] std::filesystem::path csv_path() const;

private:
    void begin();
    void log_batch(const LoopState& state);
    void end(const LoopState& state);
    void log_end() const;
    void save();

    Recorder* recorder_;
    ProfileMode mode_;
    FastxtendSettings settings_;
    FastxtendLiveLog live_;
    bool in_fit_ = false;
    FastxtendValues values_;
    std::optional<FastxtendReport> report_;
    std::string error_;
};

/// Profiles draw, batch and step only.
class ThroughputCallback final : public FastxtendCallback {
public:
    explicit ThroughputCallback(Recorder& recorder, FastxtendSettings settings = {})
        : FastxtendCallback{recorder, ProfileMode::throughput, std::move(settings)} {}
};

/// Profiles every action of a step.
class SimpleProfilerCallback final : public FastxtendCallback {
public:
    explicit SimpleProfilerCallback(Recorder& recorder, FastxtendSettings settings = {})
        : FastxtendCallback{recorder, ProfileMode::simple, std::move(settings)} {}
};

/// Makes "throughput", "simple" or "simple_old"; throws std::invalid_argument naming any other.
[[nodiscard]] ProfileMode profile_mode_named(std::string_view name);

}   // namespace drawpoint
