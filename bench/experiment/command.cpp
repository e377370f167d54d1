#include <drawpoint/bench/experiment/command.hpp>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/process.hpp"
#include "bench/experiment/process_metrics.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

class Command : public Contender {
public:
    Command(std::string name, std::string line) : process_{std::move(name), std::move(line)} {}

    const std::string& name() const noexcept override { return process_.name(); }
    const std::string& description() const noexcept override { return process_.line(); }
    std::span<const Metric> metrics() const noexcept override { return process_metrics(); }

    std::vector<double> take_turn(std::size_t runs) override {
        std::vector<double> means(metrics().size());
        for (std::size_t i = 0; i < runs; ++i)
            std::ranges::transform(means, run(), means.begin(), std::plus{});
        for (double& mean : means)
            mean /= static_cast<double>(runs);
        return means;
    }

    void cancel() noexcept override { process_.cancel(); }

protected:
    virtual std::vector<double> run() {
        const Process::Ended ended = process_.run(false);
        const rusage& usage = ended.usage;
        // At least one tick of the clock, so that ratios exist.
        return {ended.wall.count(), std::max(cpu_seconds(usage), 1e-6),
                static_cast<double>(usage.ru_minflt + usage.ru_majflt),
                static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw)};
    }

    Process process_;
};

using Reported = std::vector<std::pair<std::string, double>>;

/// The numbers of the last line, which must be a JSON object.
Reported numbers_in(std::string_view output) {
    const std::size_t end = output.find_last_not_of("\r\n \t");
    output = output.substr(0, end == output.npos ? 0 : end + 1);
    const auto object = nlohmann::ordered_json::parse(output.substr(output.find_last_of('\n') + 1), nullptr, false);
    Reported found;
    if (object.is_object())
        for (const auto& [key, value] : object.items())
            if (value.is_number())
                found.emplace_back(key, value.get<double>());
    return found;
}

/// Real and CPU time of each benchmark in seconds: the mean of its repetitions. Throws nlohmann::json::exception if it
/// is not what Google Benchmark writes.
Reported google_times_in(const std::string& output) {
    const auto document = nlohmann::ordered_json::parse(output);
    Reported found;
    std::vector<double> repetitions;
    for (const auto& row : document.at("benchmarks")) {
        if (row.value("run_type", "iteration") != "iteration" || row.value("error_occurred", false))
            continue;
        const std::string unit = row.value("time_unit", "ns"), name = row.value("run_name", row.value("name", ""));
        const double factor = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
        for (const char* time : {"real_time", "cpu_time"}) {
            const std::string key = fmt::format("{} {}", name, time);
            auto at = std::ranges::find(found, key, &Reported::value_type::first);
            if (at == found.end()) {
                found.emplace_back(key, 0);
                repetitions.push_back(0);
                at = std::prev(found.end());
            }
            at->second += factor * row.value(time, 0.0);
            ++repetitions[static_cast<std::size_t>(at - found.begin())];
        }
    }
    for (std::size_t i = 0; i < found.size(); ++i)
        found[i].second /= repetitions[i];
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
            found = reports_ == Reports::google_benchmark ? google_times_in(output) : numbers_in(output);
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

    std::vector<double> run() override {
        const Reported found = report();
        if (!std::ranges::equal(found, metrics_, {}, &Reported::value_type::first, &Metric::name))
            throw NotRun{fmt::format("{}: {} reports other numbers than before", name(), printable(description()))};
        std::vector<double> values(found.size());
        std::ranges::transform(found, values.begin(), &Reported::value_type::second);
        return values;
    }

    Reports reports_;
    std::vector<Metric> metrics_;
};

}   // namespace

std::unique_ptr<Contender> make_command(std::string name, std::string line, Reports reports) {
    if (reports == Reports::nothing)
        return std::make_unique<Command>(std::move(name), std::move(line));
    return std::make_unique<ReportingCommand>(std::move(name), std::move(line), reports);
}

}   // namespace drawpoint::bench
