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

/// fastxtend's options, under its names and with its defaults.
struct FastxtendSettings {
    bool show_report = true;      ///< print the report after the fit
    bool plain = false;           ///< plain text: what a terminal gets anyway, unless `markdown`
    bool markdown = false;        ///< print it as a Markdown table
    bool save_csv = false;        ///< write the raw results to `path / csv_name`
    std::filesystem::path path;   ///< folder of the CSV file, created when needed; empty: the working directory
    std::string csv_name;   ///< empty: "throughput.csv", "simpleprofiler.csv", of `simple_old` "simple_profile.csv"
    std::size_t rolling_average = 10;   ///< training batches of a live value, and between two, ≥ 1
    bool drop_first_batch = true;       ///< leave the first batch of either phase out
    bool samples_per_second = true;     ///< `simple_old`: log rates while training
    bool trial_fit =
        false;   ///< a fit that looks for something else (a learning rate): shows, saves and logs nothing, and stays
    Logger* logger = nullptr;      ///< gets live values and the final log; outlives the callback
    std::ostream* out = nullptr;   ///< where the report is printed; null: standard output
};

/// fastxtend's profiler: a report of one fit from the recorder's ledger, and live throughput while it trains. Add it to
/// the fit's callbacks; it leaves them when the fit is over, whichever way. Nothing is kept from one fit to the next.
/// What goes wrong with its files is kept in `error()` and printed, never thrown into the loop. Recorder and logger
/// outlive it.
class FastxtendCallback : public Callback {
public:
    FastxtendCallback(Recorder& recorder, ProfileMode mode, FastxtendSettings settings = {});

    [[nodiscard]] std::string_view name() const noexcept override;
    [[nodiscard]] EventSet events() const noexcept override;
    [[nodiscard]] int order() const noexcept override { return 50; }   // after every piece of a step is over
    void on(Event event, LoopState& state) override;
    bool fit_over() noexcept override;

    /// The last fit's report; nothing before its end. As a table, formatted (`profile_report`) or raw
    /// (`profile_results`).
    [[nodiscard]] const std::optional<FastxtendReport>& report() const noexcept { return report_; }
    [[nodiscard]] LogTable profile_report() const;
    [[nodiscard]] LogTable profile_results() const;
    /// The durations behind it.
    [[nodiscard]] const FastxtendValues& values() const noexcept { return values_; }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    /// Where `save_csv` writes.
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

/// Draw, batch and step alone.
class ThroughputCallback final : public FastxtendCallback {
public:
    explicit ThroughputCallback(Recorder& recorder, FastxtendSettings settings = {})
        : FastxtendCallback{recorder, ProfileMode::throughput, std::move(settings)} {}
};

/// Every action of a step.
class SimpleProfilerCallback final : public FastxtendCallback {
public:
    explicit SimpleProfilerCallback(Recorder& recorder, FastxtendSettings settings = {})
        : FastxtendCallback{recorder, ProfileMode::simple, std::move(settings)} {}
};

/// "throughput", "simple" or "simple_old"; throws std::invalid_argument naming any other.
[[nodiscard]] ProfileMode profile_mode_named(std::string_view name);

}   // namespace drawpoint
