#include "bench/experiment/suite_program.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/turn_json.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

/// The document in the last line of what a suite's program prints: others may be of the user's own code. Throws
/// nlohmann::json::exception if there is none.
nlohmann::json last_document(std::string_view output) { return nlohmann::json::parse(last_line(output)); }

[[noreturn]] void throw_no_suite(const Process& process, std::string_view what) {
    throw NotRun{
        fmt::format("{}: {} {}: is it a program with bench::main()?", process.name(), printable(process.line()), what)};
}

std::vector<std::string> listed_rows(Process& process) {
    std::vector<std::string> rows;
    try {
        rows = last_document(process.run(true, {"--list"}).output).at("rows").get<std::vector<std::string>>();
    } catch (const nlohmann::json::exception&) {   // there are none
    }
    if (rows.empty())
        throw_no_suite(process, "lists no rows");
    return rows;
}

RowTurn row_turn(Process& process, const std::string& row, std::size_t runs, bool first) {
    std::vector<std::string> words{"--once=" + row, "--runs", std::to_string(runs)};
    if (first)
        words.emplace_back("--digest");
    const std::string output = process.run(true, words).output;
    try {
        return turn_from_json(last_document(output));
    } catch (const nlohmann::json::exception&) {
        throw_no_suite(process, fmt::format("did not measure row '{}'", printable(row)));
    }
}

}   // namespace

SuiteProgram::SuiteProgram(std::string name, std::string description, std::string file, std::vector<std::string> words,
                           std::optional<std::string> row)
    : process_{std::move(name), std::move(description), std::move(file), std::move(words)}, row_{std::move(row)} {}

SuiteProgram::SuiteProgram(std::string name, std::string line) : process_{std::move(name), std::move(line)} {}

void SuiteProgram::prepare() {
    for (const std::string& row : row_ ? std::vector{*row_} : listed_rows(process_)) {
        RowTurn turn = row_turn(process_, row, 1, true);
        rows_.push_back({.row = row, .digest = std::move(turn.digest), .optimised = turn.optimised});
        for (Metric& metric : turn.metrics) {
            if (!row_)
                metric.name = fmt::format("{}: {}", row, metric.name);
            metrics_.push_back(std::move(metric));
        }
    }
}

std::string SuiteProgram::flaw() const {
    const bool optimised = std::ranges::all_of(rows_, &RowFacts::optimised);
    return optimised ? "" : fmt::format("{} was compiled without optimisation", printable(name()));
}

Turn SuiteProgram::take_turn(std::size_t runs) {
    Turn all;
    std::size_t all_metrics = 0;   // seen so far
    for (const RowFacts& facts : rows_) {
        RowTurn turn = row_turn(process_, facts.row, runs, false);
        for (const Metric& metric : turn.metrics) {
            const std::string name = row_ ? metric.name : fmt::format("{}: {}", facts.row, metric.name);
            if (all_metrics == metrics_.size() || metrics_[all_metrics++].name != name)
                throw NotRun{
                    fmt::format("{}: row {} measures other things than before", process_.name(), printable(facts.row))};
        }
        all.seconds += static_cast<double>(runs) * turn.turn.values.front();   // wall time
        std::ranges::move(turn.turn.values, std::back_inserter(all.values));
        std::ranges::move(turn.turn.by_item, std::back_inserter(all.by_item));
    }
    return all;
}

}   // namespace drawpoint::bench
