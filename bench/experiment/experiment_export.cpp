#include <drawpoint/bench/experiment/experiment_export.hpp>

#include "bench/experiment/experiment_page.hpp"
#include "bench/experiment/rows.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

using Json = nlohmann::ordered_json;
using Comparisons = std::span<const Comparison>;

double median(const Measurements& measured, std::size_t contender, std::size_t metric) {
    return statistics::quantile(measured.values(contender, metric), 0.5);
}

/// Calls `see(contender, metric)` for every row of a table: where there are values.
template <class F>
void for_each_row(const Measurements& measured, F&& see) {
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
            if (has_value(measured, contender, metric))
                see(contender, metric);
}

double mhz_of_a_core() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("cpu MHz"))
            return std::atof(line.c_str() + line.find(':') + 1);
    return 0;
}

bool scales_frequency() {
    std::ifstream file{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"};
    std::string governor;
    return static_cast<bool>(file >> governor) && governor != "performance";
}

#ifdef NDEBUG
constexpr bool is_debug = false;
#else
constexpr bool is_debug = true;
#endif

std::tm now_utc() {
    return fmt::gmtime(std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()));
}

Json google_context() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    std::array<double, 3> load{};
    getloadavg(load.data(), 3);
    return {{"date", fmt::format("{:%FT%T+00:00}", now_utc())},
            {"host_name", host.data()},
            {"executable", "drawpoint"},
            {"num_cpus", sysconf(_SC_NPROCESSORS_ONLN)},
            {"mhz_per_cpu", std::lround(mhz_of_a_core())},
            {"cpu_scaling_enabled", scales_frequency()},
            {"caches", Json::array()},
            {"load_avg", load},
            {"library_build_type", is_debug ? "debug" : "release"}};
}

/// What has a wall time of its own: a contender, or a row of one that is a suite, whose metrics begin with its name.
struct Timed {
    std::string prefix;   ///< "ROW: ", or ""
    std::size_t wall = 0, cpu = 0;
};

std::vector<Timed> timed_in(const Measurements& measured) {
    constexpr std::string_view wall = "wall time";
    std::vector<Timed> all;
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric) {
        const std::string& name = measured.metrics[metric].name;
        if (name != wall && !name.ends_with(": wall time"))
            continue;
        const std::string prefix = name.substr(0, name.size() - wall.size());
        const auto cpu = std::ranges::find(measured.metrics, prefix + "CPU time", &Metric::name);
        all.push_back(
            {prefix, metric,
             cpu == measured.metrics.end() ? metric : static_cast<std::size_t>(cpu - measured.metrics.begin())});
    }
    return all;
}

/// A family of benchmarks for each contender, or each row of it, a repetition for each round. What is not wall or CPU
/// time is a counter.
Json google_benchmark(const Measurements& measured) {
    const std::vector<Timed> all = timed_in(measured);
    if (all.empty())
        throw std::invalid_argument{"google-benchmark needs a wall time"};
    Json benchmarks = Json::array();
    std::size_t family = 0;
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
        for (const auto& [prefix, wall, cpu] : all) {
            if (!has_value(measured, contender, wall))
                continue;
            const std::string& one = measured.contenders[contender];
            const std::string name = prefix.empty() ? one : one + "/" + prefix.substr(0, prefix.size() - 2);
            for (std::size_t r = 0; r < measured.rounds.size(); ++r) {
                const std::vector<double>& values = measured.rounds[r].values[contender];
                Json row{{"name", name},
                         {"family_index", family},
                         {"per_family_instance_index", 0},
                         {"run_name", name},
                         {"run_type", "iteration"},
                         {"repetitions", measured.rounds.size()},
                         {"repetition_index", r},
                         {"threads", 1},
                         {"iterations", measured.runs[contender]},
                         {"real_time", values[wall] * 1e9},
                         {"cpu_time", values[cpu] * 1e9},
                         {"time_unit", "ns"}};
                const auto is_anothers = [&](const std::string& metric) {   // a longer name begins with this one
                    return std::ranges::any_of(all, [&](const Timed& other) {
                        return other.prefix.size() > prefix.size() && metric.starts_with(other.prefix);
                    });
                };
                for (std::size_t metric = 0; metric < values.size(); ++metric) {
                    const std::string& of = measured.metrics[metric].name;
                    if (metric == wall || metric == cpu || std::isnan(values[metric]) || !of.starts_with(prefix) ||
                        is_anothers(of))
                        continue;
                    if (const std::string counter = of.substr(prefix.size()); !row.contains(counter))
                        row[counter] = values[metric];
                }
                benchmarks.push_back(std::move(row));
            }
            ++family;
        }
    return {{"context", google_context()}, {"benchmarks", std::move(benchmarks)}};
}

std::string_view unit_text(Metric::Unit unit) {
    constexpr std::array<std::string_view, 4> names{"s", "count", "bytes", ""};
    return names[static_cast<std::size_t>(unit)];
}

Json github_action_benchmark(const Measurements& measured, Comparisons comparisons) {
    Json rows = Json::array();
    for_each_row(measured, [&](std::size_t contender, std::size_t metric) {
        if (measured.metrics[metric].unit == Metric::Unit::number && !measured.metrics[metric].compared)
            return;   // more of it may be better
        const std::vector<double> values = measured.values(contender, metric);
        const double low = statistics::quantile(values, 0.25), high = statistics::quantile(values, 0.75);
        Json row{{"name", fmt::format("{}: {}", measured.contenders[contender], measured.metrics[metric].name)},
                 {"unit", unit_text(measured.metrics[metric].unit)},
                 {"value", statistics::quantile(values, 0.5)},
                 {"range", fmt::format("{:.4g} … {:.4g}", low, high)}};
        if (const Comparison* compared = find(comparisons, contender, metric))
            row["extra"] = to_text(*compared);
        rows.push_back(std::move(row));
    });
    return rows;
}

/// Its measure of time, "latency", is in nanoseconds. Lower and upper values are quartiles of the rounds.
Json bencher(const Measurements& measured) {
    Json document = Json::object();
    for_each_row(measured, [&](std::size_t contender, std::size_t metric) {
        const Metric& what = measured.metrics[metric];
        const double factor = what.unit == Metric::Unit::seconds ? 1e9 : 1;
        const std::vector<double> values = measured.values(contender, metric);
        document[measured.contenders[contender]][what.name == "wall time" ? "latency" : what.name] = {
            {"value", factor * statistics::quantile(values, 0.5)},
            {"lower_value", factor * statistics::quantile(values, 0.25)},
            {"upper_value", factor * statistics::quantile(values, 0.75)}};
    });
    return document;
}

/// What speaks against the figures: of which contender, and what.
std::vector<std::pair<std::string, std::string>> wrong_in(const Measurements& measured) {
    std::vector<std::pair<std::string, std::string>> wrong;
    for (std::size_t i = 0; i < measured.contenders.size(); ++i) {
        if (!measured.not_run[i].empty())
            wrong.emplace_back(measured.contenders[i], measured.not_run[i]);
        for (std::string& sentence : differing_parts(measured, i))
            wrong.emplace_back(measured.contenders[i], std::move(sentence));
    }
    if (std::string reason = unfit(measured); !reason.empty())
        wrong.emplace_back(measured.failure.empty() ? "the machine" : "the rounds", std::move(reason));
    return wrong;
}

std::string junit(const Measurements& measured, Comparisons comparisons) {
    const auto failures = std::ranges::count(comparisons, true, &Comparison::is_failure);
    const auto wrong = wrong_in(measured);   // gives no verdict
    const std::size_t errors = wrong.size();
    std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                                   "name=\"drawpoint\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n",
                                   comparisons.size() + errors, failures, errors, measured.seconds());
    for (const Comparison& one : comparisons) {
        text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\">",
                            printable_markup(measured.contenders[one.contender]),
                            printable_markup(measured.metrics[one.metric].name),
                            measured.metrics[one.metric].unit == Metric::Unit::seconds ? one.value : 0.0);
        text += one.is_failure ? fmt::format("<failure message=\"{}\"/>", printable_markup(to_text(one)))
                               : fmt::format("<system-out>{}</system-out>", printable_markup(to_text(one)));
        text += "</testcase>\n";
    }
    for (const auto& [who, what] : wrong)
        text += fmt::format("    <testcase classname=\"{}\" name=\"runs\"><error message=\"{}\"/></testcase>\n",
                            printable_markup(who), printable_markup(what));
    return text + "  </testsuite>\n</testsuites>\n";
}

std::string markdown(const Measurements& measured, Comparisons comparisons) {
    std::string text = fmt::format("| metric | contender | median | ratio to {} | |\n|---|---|---|---|---|\n",
                                   markdown_cell(printable(measured.contenders.front())));
    for_each_row(measured, [&](std::size_t contender, std::size_t metric) {
        const Comparison* compared = find(comparisons, contender, metric);
        text += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_cell(printable(measured.metrics[metric].name)),
                            markdown_cell(printable(measured.contenders[contender])),
                            value_text(median(measured, contender, metric), measured.metrics[metric].unit),
                            compared ? ratio_text(compared->ratio) : "", compared ? to_text(*compared) : "");
    });
    text += fmt::format("\n{} rounds, in an order drawn anew each round.\n", measured.rounds.size());
    for (const auto& [who, what] : wrong_in(measured))
        text += fmt::format("\nNo verdict: {}: {}.\n", printable(who), printable(what));
    return text;
}

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == text.npos)
        return text;
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
}

std::string csv(const Measurements& measured, Comparisons comparisons) {
    std::string text = "metric,contender,unit,median,ratio,ratio_low,ratio_high\n";
    for_each_row(measured, [&](std::size_t contender, std::size_t metric) {
        const Comparison* compared = find(comparisons, contender, metric);
        const Interval ratio = compared ? compared->ratio : Interval{};
        const auto cell = [](double value) {   // a bound that is not known is 0 or infinite
            return std::isfinite(value) && value > 0 ? fmt::format("{}", value) : std::string{};
        };
        text += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(measured.metrics[metric].name),
                            csv_cell(measured.contenders[contender]), unit_text(measured.metrics[metric].unit),
                            median(measured, contender, metric), cell(ratio.median), cell(ratio.low), cell(ratio.high));
    });
    return text;
}

std::string commit() {
    for (const char* name : {"DRAWPOINT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA"})
        if (const char* value = std::getenv(name); value && *value != '\0')
            return value;
    return "";
}

/// A line of columns and a line of values.
std::string otava(const Measurements& measured) {
    std::string columns = "time,commit", values = fmt::format("{:%F %T} +0000,{}", now_utc(), csv_cell(commit()));
    for_each_row(measured, [&](std::size_t contender, std::size_t metric) {
        columns +=
            "," +
            csv_cell(printable(fmt::format("{} {}", measured.contenders[contender], measured.metrics[metric].name)));
        values += fmt::format(",{}", median(measured, contender, metric));
    });
    return columns + "\n" + values + "\n";
}

constexpr std::array<std::string_view, 8> formats{
    "html", "google-benchmark", "github-action-benchmark", "bencher", "junit", "markdown", "csv", "otava"};

}   // namespace

std::span<const std::string_view> experiment_formats() noexcept { return formats; }

ExportFile export_file_in(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const ExportFile wish{.format = std::string{text.substr(0, equals)},
                          .file = std::string{text.substr(std::min(equals + 1, text.size()))}};
    if (wish.file.empty())
        throw std::invalid_argument{fmt::format("must be FORMAT=FILE, got '{}'", text)};
    if (std::ranges::find(formats, wish.format) == formats.end())
        throw std::invalid_argument{fmt::format("must be one of {}, got '{}'", fmt::join(formats, ", "), wish.format)};
    return wish;
}

std::string export_experiment(std::string_view format, const Measurements& measured, Comparisons comparisons) {
    if (format == "html")
        return experiment_page(measured, comparisons);
    if (format == "google-benchmark")
        return json_text(google_benchmark(measured));
    if (format == "github-action-benchmark")
        return json_text(github_action_benchmark(measured, comparisons));
    if (format == "bencher")
        return json_text(bencher(measured));
    if (format == "junit")
        return junit(measured, comparisons);
    if (format == "markdown")
        return markdown(measured, comparisons);
    if (format == "csv")
        return csv(measured, comparisons);
    if (format == "otava")
        return otava(measured);
    throw std::invalid_argument{fmt::format("no format {}; there are: {}", format, fmt::join(formats, ", "))};
}

void write_export(const ExportFile& wish, const Measurements& measured, Comparisons comparisons) {
    std::string text = export_experiment(wish.format, measured, comparisons);
    auto mode = std::ios::binary | std::ios::trunc;
    std::string columns;
    if (std::ifstream present{wish.file, std::ios::binary}; wish.format == "otava" && std::getline(present, columns)) {
        const std::size_t end = text.find('\n');
        if (columns != text.substr(0, end))
            throw std::runtime_error{fmt::format("{}: its columns are not those of this experiment", wish.file)};
        text.erase(0, end + 1);
        present.clear();
        present.seekg(-1, std::ios::end);
        if (present.get() != '\n')   // somebody cut it, or wrote the columns by hand
            text.insert(0, "\n");
        mode = std::ios::binary | std::ios::app;
    }
    std::ofstream file{wish.file, mode};
    file << text;
    if (!file.flush())
        throw std::runtime_error{fmt::format("{}: cannot be written", wish.file)};
}

std::vector<std::string> write_exports(std::span<const ExportFile> wishes, const Measurements& measured,
                                       Comparisons comparisons) {
    std::vector<std::string> failures;
    for (const ExportFile& wish : wishes)
        try {
            write_export(wish, measured, comparisons);
        } catch (const std::exception& error) {
            failures.push_back(fmt::format("--to {}={}: {}", wish.format, wish.file, error.what()));
        }
    return failures;
}

}   // namespace drawpoint::bench
