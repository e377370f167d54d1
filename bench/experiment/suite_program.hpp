#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>

#include "bench/experiment/process.hpp"

namespace drawpoint::bench {

/// What a row of a suite says of itself when it is asked for the first time.
struct RowFacts {
    std::string row;
    std::optional<std::string> digest;   ///< of its output
    bool optimised = true;               ///< how the program was compiled
};

/// A program with bench::main() as a contender: all its rows, or one of them. A turn runs each row in a process of its
/// own, `PROGRAM --once=ROW --runs RUNS`, which measures itself and prints a document of schema
/// `drawpoint.turn/1`, described in docs/formats.md. So neither starting the process nor warming up is in the values.
class SuiteProgram final : public Contender {
public:
    /// `file`: the program; `words`: its name and arguments. `row`: one row; empty: all, with their metrics named
    /// "ROW: METRIC".
    SuiteProgram(std::string name, std::string description, std::string file, std::vector<std::string> words,
                 std::optional<std::string> row = std::nullopt);
    /// All rows of the program that a command line starts. Throws NotRun if the line is empty.
    SuiteProgram(std::string name, std::string line);

    const std::string& name() const noexcept override { return process_.name(); }
    const std::string& description() const noexcept override { return process_.line(); }
    void prepare() override;
    std::string flaw() const override;
    std::span<const Metric> metrics() const noexcept override { return metrics_; }
    Turn take_turn(std::size_t runs) override;
    void cancel() noexcept override { process_.cancel(); }

    [[nodiscard]] const std::vector<RowFacts>& rows() const noexcept { return rows_; }   ///< after prepare()

private:
    Process process_;
    std::optional<std::string> row_;
    std::vector<RowFacts> rows_;
    std::vector<Metric> metrics_;
};

}   // namespace drawpoint::bench
