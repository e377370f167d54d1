#include "bench/experiment/suite_program.hpp"

#include <algorithm>
#include <numeric>
#include <span>
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
    std::vector<std::string> rows;   // each once, whatever a program in another language says
    try {
        for (std::string row :
             last_document(process.run(true, {"--list"}).output).at("rows").get<std::vector<std::string>>())
            if (std::ranges::find(rows, row) == rows.end())
                rows.push_back(std::move(row));
    } catch (const nlohmann::json::exception&) {   // there are none
    }
    if (rows.empty())
        throw_no_suite(process, "lists no rows");
    return rows;
}

RowTurn turn_in(const Process& process, const std::string& row, const std::string& output) {
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

SuiteProgram::SuiteProgram(std::string name, std::string line, bool has_one_row)
    : process_{std::move(name), std::move(line)}, has_one_row_{has_one_row} {}

void SuiteProgram::prepare() {
    const std::vector<std::string> rows = row_ ? std::vector{*row_} : listed_rows(process_);
    if (has_one_row_ && rows.size() != 1)
        throw NotRun{fmt::format("{}: {} has {} rows: choose one with --row", process_.name(),
                                 printable(process_.line()), rows.size())};
    if (has_one_row_)
        row_ = rows.front();
    for (const std::string& row : rows) {
        Part& part = parts_.emplace_back(Part{.name = row_ ? "" : row});
        try {
            RowTurn turn = turn_in(process_, row, process_.run(true, {"--once=" + row, "--digest"}).output);
            running_.push_back(row);
            sections_.push_back(part.name);
            places_.push_back(metrics_.size());
            part.digest = std::move(turn.digest);
            optimised_ = optimised_ && turn.optimised;
            for (Metric& metric : turn.metrics) {
                if (!row_)
                    metric.name = fmt::format("{}: {}", row, metric.name);
                metrics_.push_back(std::move(metric));
            }
        } catch (const NotRun& reason) {
            part.not_run = reason.what();
        }
    }
    if (metrics_.empty())
        throw NotRun{parts_.front().not_run};
}

std::string SuiteProgram::flaw() const {
    return optimised_ ? "" : fmt::format("{} was compiled without optimisation", printable(name()));
}

void SuiteProgram::begin(std::size_t section) {
    section_ = section;
    runs_ = 0;
    process_.give_up();   // a turn that did not end
    steps_.emplace();
    process_.start(true, {"--once=" + running_[section], "--steps"}, steps_->for_child());
    steps_->close_childs_end();
    wait();
}

void SuiteProgram::run(std::size_t runs) {
    runs_ += runs;
    steps_->run(runs);
    wait();
}

/// Until the process is ready for the next step.
void SuiteProgram::wait() {
    if (steps_->wait(process_.running()))
        return;
    (void)process_.finish();   // throws, with the reason, if it failed
    throw_no_suite(process_, fmt::format("ended before row '{}' had run", printable(running_[section_])));
}

void SuiteProgram::end() {
    steps_->close();
    const std::string& row = running_[section_];
    RowTurn turn = turn_in(process_, row, process_.finish().output);
    turn_.values.resize(metrics_.size());
    turn_.by_item.resize(metrics_.size());
    seconds_.resize(running_.size());
    const std::size_t first = places_[section_];
    const std::size_t end = section_ + 1 < places_.size() ? places_[section_ + 1] : metrics_.size();
    const auto is_same = [&](const Metric& metric, const Metric& before) {
        return before.name == (row_ ? metric.name : fmt::format("{}: {}", row, metric.name));
    };
    if (!std::ranges::equal(turn.metrics, std::span{metrics_}.subspan(first, end - first), is_same))
        throw NotRun{fmt::format("{}: row {} measures other things than before", process_.name(), printable(row))};
    std::ranges::move(turn.turn.values, turn_.values.begin() + static_cast<std::ptrdiff_t>(first));
    std::ranges::move(turn.turn.by_item, turn_.by_item.begin() + static_cast<std::ptrdiff_t>(first));
    seconds_[section_] = static_cast<double>(runs_) * turn.turn.values.front();   // wall time
}

Turn SuiteProgram::results() {
    turn_.seconds = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
    return std::exchange(turn_, {});
}

}   // namespace drawpoint::bench
