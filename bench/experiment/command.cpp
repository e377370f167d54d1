#include <drawpoint/bench/experiment/command.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/google_rows.hpp"
#include "bench/experiment/process.hpp"
#include "bench/experiment/process_metrics.hpp"
#include "bench/experiment/suite_program.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

class Command : public PausingContender {
public:
    Command(std::string name, std::string line) : process_{std::move(name), std::move(line)} {}

    const std::string& name() const noexcept override { return process_.name(); }
    const std::string& description() const noexcept override { return process_.line(); }
    std::span<const Metric> metrics() const noexcept override { return process_metrics(); }

    void begin(std::size_t) override {
        sums_.assign(metrics().size(), 0);
        runs_ = 0;
    }
    void run(std::size_t runs) override {
        for (std::size_t i = 0; i < runs; ++i, ++runs_)
            std::ranges::transform(sums_, values(), sums_.begin(), std::plus{});
    }
    void end() override {}
    Turn results() override {
        for (double& sum : sums_)
            sum /= static_cast<double>(runs_);
        return {.values = std::move(sums_)};
    }

    void cancel() noexcept override { process_.cancel(); }

protected:
    /// Of one run.
    virtual std::vector<double> values() {
        const Process::Ended ended = process_.run(false);
        const rusage& usage = ended.usage;
        // At least one tick of the clock, so that ratios exist.
        return {ended.wall.count(), std::max(cpu_seconds(usage), 1e-6),
                static_cast<double>(usage.ru_minflt + usage.ru_majflt),
                static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw)};
    }

    Process process_;

private:
    std::vector<double> sums_;   // of the turn's runs so far
    std::size_t runs_ = 0;
};

using Reported = std::vector<std::pair<std::string, double>>;

/// The numbers of the last line, which must be a JSON object.
Reported numbers_in(std::string_view output) {
    const auto object = nlohmann::ordered_json::parse(last_line(output), nullptr, false);
    Reported found;
    if (object.is_object())
        for (const auto& [key, value] : object.items())
            if (value.is_number())
                found.emplace_back(key, value.get<double>());
    return found;
}

/// Real and CPU time of each benchmark in seconds: the mean of its repetitions. Throws nlohmann::json::exception if it
/// is not what Google Benchmark writes, and NotRun if a benchmark failed.
Reported google_times_in(const std::string& output, const std::string& name) {
    const auto document = nlohmann::json::parse(output);
    if (const std::string failure = google_failure(document); !failure.empty())
        throw NotRun{fmt::format("{}: {}", name, printable(failure))};
    if (has_only_aggregates(document))
        throw NotRun{fmt::format("{}: {}", name, only_aggregates)};
    Reported found;
    for (const ResultRow& row : google_rows(document))
        found.emplace_back(row.name, std::accumulate(row.values.begin(), row.values.end(), 0.0) /
                                         static_cast<double>(row.values.size()));
    return found;
}

/// A command that measures itself, and writes its numbers to stdout.
class ReportingCommand final : public Command {
public:
    ReportingCommand(std::string name, std::string line, Reports reports)
        : Command{std::move(name), std::move(line)}, reports_{reports} {}

    void prepare() override {
        for (const auto& [metric, value] : report())
            metrics_.push_back({.name = metric, .unit = unit(), .compared = true});
    }
    std::span<const Metric> metrics() const noexcept override { return metrics_; }

private:
    [[nodiscard]] Metric::Unit unit() const noexcept {
        return reports_ == Reports::google_benchmark ? Metric::Unit::seconds : Metric::Unit::number;
    }

    Reported report() {
        const std::string output = process_.run(true).output;
        Reported found;
        try {
            found = reports_ == Reports::google_benchmark ? google_times_in(output, name()) : numbers_in(output);
        } catch (const nlohmann::json::exception&) {   // found is empty
        }
        if (found.empty())
            throw NotRun{fmt::format("{}: {} wrote no {}", name(), printable(description()),
                                     reports_ == Reports::google_benchmark
                                         ? "results of Google Benchmark as JSON (--benchmark_format=json)"
                                         : "JSON object of numbers as its last line")};
        for (const auto& [metric, value] : found)
            if (!(value > 0))
                throw NotRun{fmt::format("{}: {} must be above 0, got {}", name(), printable(metric), value)};
        return found;
    }

    std::vector<double> values() override {
        const Reported found = report();
        if (!std::ranges::equal(found, metrics_, {}, &Reported::value_type::first, &Metric::name))
            throw NotRun{fmt::format("{}: {} reports other numbers than before", name(), printable(description()))};
        std::vector<double> all(found.size());
        std::ranges::transform(found, all.begin(), &Reported::value_type::second);
        return all;
    }

    Reports reports_;
    std::vector<Metric> metrics_;
};

}   // namespace

std::unique_ptr<Contender> make_command(std::string name, std::string line, Reports reports) {
    if (reports == Reports::nothing)
        return std::make_unique<Command>(std::move(name), std::move(line));
    if (reports == Reports::suite || reports == Reports::row)
        return std::make_unique<SuiteProgram>(std::move(name), std::move(line), reports == Reports::row);
    return std::make_unique<ReportingCommand>(std::move(name), std::move(line), reports);
}

}   // namespace drawpoint::bench
