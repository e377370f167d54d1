#include "bench/suite/turn.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bench/experiment/process_metrics.hpp"

namespace drawpoint::bench {

namespace {

/// The most memory that this process has held, in bytes. Not getrusage()'s, which counts what its parent held.
std::optional<double> peak_memory() {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;)
        if (std::uint64_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes)
            return static_cast<double>(kilobytes) * 1024;
    return std::nullopt;
}

}   // namespace

RowTurn take_turn(const Suite::Row& row, const std::function<std::size_t()>& next, bool with_digest) {
    RowTurn it{.row = row.name};
    const auto add = [&](const Metric& metric, double value, std::vector<float> items = {}) {
        if (std::ranges::find(it.metrics, metric.name, &Metric::name) != it.metrics.end())
            throw std::invalid_argument{fmt::format("two metrics are named {}", metric.name)};
        it.metrics.push_back(metric);
        it.turn.values.push_back(value);
        it.turn.by_item.push_back(std::move(items));
    };
    const std::unique_ptr<Task> task = row.make();
    if (with_digest)
        if (const auto digest = task->digest())
            it.digest = fmt::format("{:016x}", *digest);
    task->run(0);
    const std::optional<double> memory = peak_memory();   // so that it does not depend on the number of runs
    ProcessMeter meter;
    std::size_t runs = 0;
    for (std::size_t more = 0; (more = next()) != 0;) {
        meter.start();
        for (const std::size_t all = runs + more; runs < all;)
            task->run(++runs);
        meter.stop();
    }
    if (runs == 0)
        throw std::runtime_error{"nobody asked for a run"};
    const std::vector<double> of_process = meter.values(runs);
    for (std::size_t i = 0; i < of_process.size(); ++i)
        add(process_metrics()[i], of_process[i]);
    if (memory)
        add({.name = "peak memory", .unit = Metric::Unit::bytes}, *memory);
    if (const std::uint64_t items = task->items(); items != 0)
        add({.name = "items/s", .unit = Metric::Unit::number}, static_cast<double>(items) / of_process.front());
    Turn own = task->results();
    const std::vector<Metric> metrics = task->metrics();
    own.values.resize(metrics.size(), std::numeric_limits<double>::quiet_NaN());
    own.by_item.resize(metrics.size());
    for (std::size_t i = 0; i < metrics.size(); ++i)
        add(metrics[i], own.values[i], std::move(own.by_item[i]));
    return it;
}

}   // namespace drawpoint::bench
