// Measures how fast a PyTorch trace is read and how much memory that takes: repeats a given trace, with times and step
// numbers shifted, until it has the requested size.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/traces/trace_split.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/report/json.hpp>

#include "instrumentation/import/chrome_event.hpp"

#include "machine.hpp"
#include "program.hpp"
#include "spread.hpp"
#include "temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::string trace = DRAWPOINT_BENCH_TRACE;
    std::size_t megabytes = 1000, rounds = 3;
    bool gzip = false, operators = false, json = false;
};

std::string whole_text(const std::string& path) {
    gzFile file = gzopen(path.c_str(), "rb");   // also reads uncompressed files
    if (file == nullptr)
        throw std::runtime_error{path + ": cannot be opened"};
    std::string text;
    std::vector<char> block(1u << 20);
    int count = 0;
    while ((count = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0)
        text.append(block.data(), static_cast<std::size_t>(count));
    gzclose(file);
    if (count < 0 || text.empty())
        throw std::runtime_error{path + ": cannot be read"};
    return text;
}

/// The text of a trace's events, split at each time and step number.
class Events {
public:
    explicit Events(std::string_view events) {
        for (std::size_t at = 0; at < events.size();) {
            const std::size_t time = events.find(time_key, at), step = events.find(step_key, at);
            if (time == step) {   // neither was found
                parts_.push_back({std::string{events.substr(at)}, Kind::nothing, 0});
                break;
            }
            const bool is_time = time < step;
            const std::size_t begin = is_time ? time + time_key.size() : step + step_key.size();
            const std::size_t end = events.find_first_not_of("0123456789.", begin);
            const std::string_view number = events.substr(begin, end - begin);
            std::int64_t value = 0;
            if (is_time) {
                value = nanoseconds_of(number).value_or(0);
                first_ns_ = std::min(first_ns_, value);
                last_ns_ = std::max(last_ns_, value);
            } else {
                std::from_chars(number.data(), number.data() + number.size(), value);
                first_step_ = std::min(first_step_, value);
                last_step_ = std::max(last_step_, value);
            }
            parts_.push_back({std::string{events.substr(at, begin - at)}, is_time ? Kind::time : Kind::step, value});
            at = end;
        }
    }

    /// Appends the n-th repetition.
    void append_to(std::string& text, std::int64_t n) const {
        const std::int64_t shift_ns = n * (last_ns_ - first_ns_ + 1'000'000),
                           steps = n * (last_step_ - first_step_ + 1);
        for (const Part& part : parts_) {
            text += part.text;
            if (part.kind == Kind::time) {
                const std::int64_t ns = part.value + shift_ns;
                fmt::format_to(std::back_inserter(text), "{}.{:03}", ns / 1000, ns % 1000);
            } else if (part.kind == Kind::step) {
                fmt::format_to(std::back_inserter(text), "{}", part.value + steps);
            }
        }
    }

private:
    static constexpr std::string_view time_key = "\"ts\": ", step_key = "\"ProfilerStep#";
    enum class Kind { nothing, time, step };
    struct Part {
        std::string text;   // that precedes the number
        Kind kind;
        std::int64_t value;
    };

    std::vector<Part> parts_;
    std::int64_t first_ns_ = INT64_MAX, last_ns_ = 0, first_step_ = INT64_MAX, last_step_ = 0;
};

struct Written {
    std::uint64_t bytes = 0;   // uncompressed
    std::int64_t repetitions = 0;
};

Written write_repeated(const Options& options, const std::filesystem::path& to) {
    const std::string text = whole_text(options.trace);
    const std::size_t key = text.find("\"traceEvents\""), begin = text.find('[', key) + 1, end = text.rfind(']');
    if (key == std::string::npos || begin == 0 || end == std::string::npos || end < begin)
        throw std::runtime_error{options.trace + ": no traceEvents"};
    const Events events{std::string_view{text}.substr(begin, end - begin)};
    gzFile file = gzopen(to.c_str(), options.gzip ? "wb1" : "wbT");   // T: uncompressed
    if (file == nullptr)
        throw std::runtime_error{to.string() + ": cannot be written"};
    Written written;
    const auto put = [&](const std::string& part) {
        if (gzwrite(file, part.data(), static_cast<unsigned>(part.size())) != static_cast<int>(part.size()))
            throw std::runtime_error{to.string() + ": cannot be written"};
        written.bytes += part.size();
    };
    put(text.substr(0, begin));
    std::string part;
    for (; written.bytes < options.megabytes * 1'000'000; ++written.repetitions) {
        part = written.repetitions == 0 ? "" : ",";
        events.append_to(part, written.repetitions);
        put(part);
    }
    put(text.substr(end));
    if (gzclose(file) != Z_OK)
        throw std::runtime_error{to.string() + ": cannot be written"};
    return written;
}

/// Sums that grow in proportion to the number of repetitions.
struct Sums {
    std::int64_t steps = 0, draw_ns = 0, compute_ns = 0;
    explicit Sums(const TraceSplit& split) : steps{std::ssize(split.steps)} {
        for (const TraceStep& step : split.steps) {
            draw_ns += step.draw_ns;
            compute_ns += step.compute_ns;
        }
    }
    bool operator==(const Sums&) const = default;
};

/// Peak resident memory of this process, in bytes.
std::uint64_t peak_bytes() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:"))
            return 1024 * std::strtoull(line.c_str() + 6, nullptr, 10);
    return 0;
}

int measure(const Options& options) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "trace.json";
    const auto [bytes, repetitions] = write_repeated(options, file);
    Sums expected{split_trace(import_chrome_trace(options.trace, {.operators = false}).ledger)};
    for (std::int64_t* sum : {&expected.steps, &expected.draw_ns, &expected.compute_ns})
        *sum *= repetitions;
    std::vector<double> wall, cpu;
    TraceSplit split;
    std::uint64_t events = 0;
    for (std::size_t round = 0; round < options.rounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const double cpu_begin = process_cpu_seconds();
        const ImportedTrace trace = import_chrome_trace(file, {.operators = options.operators});
        split = split_trace(trace.ledger);
        cpu.push_back(static_cast<double>(bytes) / 1e6 / (process_cpu_seconds() - cpu_begin));
        wall.push_back(static_cast<double>(bytes) / 1e6 /
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        events = trace.events;
        if (trace.bytes != bytes || trace.truncated || Sums{split} != expected)
            throw std::runtime_error{"the split of the repeated trace is not that of the trace, repeated"};
    }
    const Spread by_wall = spread_of(wall), by_cpu = spread_of(cpu);
    if (options.json) {
        const auto spread = [](const Spread& of) {
            return nlohmann::ordered_json{{"median", of.median}, {"low", of.low}, {"high", of.high}};
        };
        fmt::print("{}\n", nlohmann::ordered_json{{"suite", "import"},
                                                  {"bytes", bytes},
                                                  {"gzip", options.gzip},
                                                  {"operators", options.operators},
                                                  {"events", events},
                                                  {"steps", split.steps.size()},
                                                  {"draw_share", split.draw_share},
                                                  {"mb_per_s", spread(by_wall)},
                                                  {"mb_per_cpu_s", spread(by_cpu)},
                                                  {"peak_bytes", peak_bytes()}}
                               .dump(2));
        return 0;
    }
    fmt::print("{} MB of JSON{}, {} events, {} steps{}; draw share {:.4f}\n", bytes / 1'000'000,
               options.gzip ? " in gzip" : "", events, split.steps.size(), options.operators ? ", with operators" : "",
               split.draw_share);
    fmt::print("MB/s            {:8.0f}  ({:.0f} … {:.0f} in {} rounds)\n", by_wall.median, by_wall.low, by_wall.high,
               options.rounds);
    fmt::print("MB/s of CPU     {:8.0f}  ({:.0f} … {:.0f})\n", by_cpu.median, by_cpu.low, by_cpu.high);
    fmt::print("peak memory, MB {:8.1f}\n", static_cast<double>(peak_bytes()) / 1e6);
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"How fast a PyTorch trace is read, and in how much memory."};
    app.add_option("--trace", options.trace, "the trace that is repeated (.json, .json.gz)")->capture_default_str();
    app.add_option("--mb", options.megabytes, "of JSON, uncompressed")->capture_default_str();
    app.add_option("--rounds", options.rounds)->capture_default_str()->check(CLI::PositiveNumber);
    app.add_flag("--gzip", options.gzip, "the file is compressed");
    app.add_flag("--operators", options.operators, "all events are kept, not only those of steps");
    app.add_flag("--json", options.json);
    return run_program(app, "import", argc, argv, [&](const std::string&) { return measure(options); });
}
