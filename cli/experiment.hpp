#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/program.hpp"
#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/detail/interruptible_experiment.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>

namespace drawpoint::cli {

/// The options of every experiment: how long a turn is, how sure its bounds are, and the files it is written to.
class ExperimentFlags {
public:
    /// Must outlive the parsing of the command line.
    explicit ExperimentFlags(CLI::App& app);
    /// After parsing. Throws UsageError naming a wrong value, and Failure naming a file that cannot be written.
    void read();

    [[nodiscard]] bench::ExperimentOptions options() const;
    [[nodiscard]] bench::Reports reports() const noexcept { return reports_; }
    [[nodiscard]] double error() const noexcept { return error_percent_ / 100; }
    [[nodiscard]] OutputOptions::Form form() const noexcept { return output_.form; }
    /// Throws UsageError if a file that is read is written, too.
    void check_not_written(const std::string& file) const;
    /// For what is no experiment. Throws UsageError if --to or --csv was given, which only experiments have.
    [[nodiscard]] const OutputOptions& output_without_exports() const;

    /// What print() takes. `conclusion` is for the caller: what text and Markdown end with.
    struct Report {
        std::vector<bench::Comparison> comparisons;
        std::string text, conclusion;
        nlohmann::ordered_json document;
    };
    /// `error`: the probability that any of the bounds is wrong.
    [[nodiscard]] Report report(const bench::Measurements&, double error, const Invocation&) const;
    /// Prints it on stdout in the form asked for, and writes the files asked for. Returns false if one of --to could
    /// not be written, which is said on stderr. Throws Failure naming another file.
    [[nodiscard]] bool print(const Report&, const bench::Measurements&) const;
    /// Writes the files of --to that tell of errors, where there are no rounds.
    void write_failure(const bench::Measurements&) const;

private:
    OutputFlags output_flags_;
    OutputOptions output_;
    bench::Reports reports_{};
    std::vector<std::string> to_;
    std::string html_;
    std::vector<bench::ExportFile> exports_;
    double turn_ms_ = 200, error_percent_ = 1;
    std::uint64_t seed_ = 0;
};

/// Runs an experiment, and says on stderr how far it is. Returns whether it was interrupted. If a
/// contender fails, the rounds before stay, with `Measurements::failure`; throws Failure if there are none.
[[nodiscard]] bool run(bench::InterruptibleExperiment&, const std::function<void(const bench::Measurements&)>& prepared,
                       const std::function<bool(const bench::Measurements&)>& enough);

}   // namespace drawpoint::cli
