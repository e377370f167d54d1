#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>

#include "bench/experiment/process.hpp"
#include "bench/experiment/steps.hpp"

namespace drawpoint::bench {

/// A program with bench::main() as a contender: all its rows, or one of them. In a turn each row is a section, a
/// process of its own, `PROGRAM --once=ROW --steps`, which is told through a channel when to run, measures itself and
/// prints a document of schema `drawpoint.turn/1`, described in docs/formats.md. So neither starting the process nor
/// warming up is in the values.
class SuiteProgram final : public PausingContender {
public:
    /// `file`: the program; `words`: its name and arguments. `row`: one row; empty: all, with their metrics named
    /// "ROW: METRIC".
    SuiteProgram(std::string name, std::string description, std::string file, std::vector<std::string> words,
                 std::optional<std::string> row = std::nullopt);
    /// All rows of the program that a command line starts, or the only one. Throws NotRun if the line is empty.
    SuiteProgram(std::string name, std::string line, bool has_one_row = false);

    const std::string& name() const noexcept override { return process_.name(); }
    const std::string& description() const noexcept override { return process_.line(); }
    void prepare() override;
    std::string flaw() const override;
    std::span<const Metric> metrics() const noexcept override { return metrics_; }
    /// The rows. Those that cannot run are left out, unless none can.
    std::span<const Part> parts() const noexcept override { return parts_; }
    std::span<const std::string> sections() const noexcept override { return sections_; }
    void begin(std::size_t section) override;
    void run(std::size_t runs) override;
    void end() override;
    Turn results() override;
    void cancel() noexcept override { process_.cancel(); }

private:
    void wait();

    Process process_;
    std::optional<std::string> row_;
    bool has_one_row_ = false;   // before prepare() knows which
    std::vector<Part> parts_;
    std::vector<Metric> metrics_;
    bool optimised_ = true;               // all that was compiled
    std::vector<std::string> running_;    // the rows that are not left out
    std::vector<std::string> sections_;   // their names; one row: "", so that it is measured together with others
    std::vector<std::size_t> places_;     // of each: of its first metric
    // Of the present turn.
    std::optional<Steps> steps_;
    std::size_t section_ = 0, runs_ = 0;   // runs of the section
    Turn turn_;
    std::vector<double> seconds_;   // of each section's runs
};

}   // namespace drawpoint::bench
