#include <drawpoint/instrumentation/export/memory_timeline.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/export/text_stream.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

enum Action : int { preexisting = 1, create = 2, destroy = 4 };   // PyTorch's numbers

constexpr std::size_t categories = 8, unknown = 7;   // PyTorch's eight categories; we use only the last
constexpr std::int64_t before_the_recording = -1;

struct MemoryEvent {
    std::int64_t at_ns;   ///< since the run's start, or `before_the_recording`
    Action action;
    std::int64_t bytes;   ///< below 0: released
};

std::string device_name(std::int32_t device) { return device < 0 ? "cpu" : fmt::format("cuda:{}", device); }

[[noreturn]] void refuse(const Ledger& ledger, std::int32_t device) {
    if (!ledger.allocations.empty())
        throw std::invalid_argument{fmt::format("no allocation was recorded on the device {}", device_name(device))};
    std::string missing;
    for (const std::string_view option : {"record_shapes", "profile_memory", "with_stack"}) {
        const auto set = ledger.fact(fmt::format("{}{}", facts::metadata_prefix, option));
        if (!set || *set == "0" || *set == "false")
            missing += fmt::format("{}{}=True", missing.empty() ? "" : ", ", option);
    }
    throw std::invalid_argument{missing.empty() ? "no allocation was recorded"
                                                : missing + " required for memory profiling."};
}

/// The events of a device. Memory that is released without having been allocated was held before the recording began.
std::vector<MemoryEvent> events_of(const Ledger& ledger, std::int32_t device) {
    std::vector<MemoryEvent> events, before;
    std::unordered_map<std::uint64_t, std::int64_t> held;   // bytes by address
    for (const AllocationRow& row : ledger.allocations) {
        if (row.device != device)
            continue;
        const auto at_ns = static_cast<std::int64_t>(wrapping_difference(row.at_ns, ledger.start_ns));
        if (row.bytes >= 0) {
            held[row.address] = row.bytes;
            events.push_back({at_ns, create, row.bytes});
        } else {
            if (held.erase(row.address) == 0)
                before.push_back(
                    {before_the_recording, preexisting, static_cast<std::int64_t>(wrapping_difference(0, row.bytes))});
            events.push_back({at_ns, destroy, row.bytes});
        }
    }
    if (events.empty())
        refuse(ledger, device);
    before.insert(before.end(), events.begin(), events.end());
    return before;
}

/// Pairs of a time, in units of `unit_ns`, and the bytes held from then on. Memory held before the recording is a
/// separate point at the first known time.
std::vector<std::pair<std::int64_t, std::int64_t>> totals(const std::vector<MemoryEvent>& events,
                                                          std::int64_t unit_ns) {
    std::vector<std::pair<std::int64_t, std::int64_t>> result;
    std::int64_t held = 0;
    for (const MemoryEvent& event : events) {
        const std::int64_t at = event.at_ns == before_the_recording ? event.at_ns : event.at_ns / unit_ns;
        held = wrapping_sum(held, event.bytes);
        if (!result.empty() && result.back().first == at)
            result.back().second = held;
        else
            result.emplace_back(at, held);
    }
    if (result.size() > 1 && result.front().first == before_the_recording)
        result.front().first = result[1].first;
    return result;
}

void write_sizes(const std::vector<MemoryEvent>& events, TextStream& out) {
    const auto points = totals(events, 1000);
    out.put("[[");
    for (std::size_t i = 0; i < points.size(); ++i)
        out.print("{}{}", i == 0 ? "" : ", ", points[i].first);
    out.put("], [");
    for (std::size_t i = 0; i < points.size(); ++i) {
        out.print("{}[0", i == 0 ? "" : ", ");
        for (std::size_t category = 0; category < categories; ++category)
            out.print(", {}", category == unknown ? points[i].second : 0);
        out.put("]");
    }
    out.put("]]");
}

void write_raw(const std::vector<MemoryEvent>& events, TextStream& out) {
    out.put("[");
    for (std::size_t i = 0; i < events.size(); ++i)
        out.print("{}[{}, {}, {}, {}]", i == 0 ? "" : ", ", events[i].at_ns, static_cast<int>(events[i].action),
                  events[i].bytes, unknown);
    out.put("]");
}

std::string in_bytes(double bytes) {
    constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.size(); ++unit)
        bytes /= 1024;
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

/// Writes an SVG chart with at most one peak per pixel column.
void write_plot(const std::vector<MemoryEvent>& events, std::int32_t device, TextStream& out) {
    constexpr std::int64_t width = 1200, height = 400, left = 90, top = 50, bottom = 40;
    const auto points = totals(events, 1);
    const auto first_ns = static_cast<double>(points.front().first);
    const double ns = std::max(static_cast<double>(points.back().first) - first_ns, 1.0);
    std::int64_t peak = 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> columns;   // x, and the highest value in that column
    std::vector<std::int64_t> last;                               // the last value in each column
    for (const auto& [at_ns, held] : points) {
        // Clamped, since stamps from a file may have any value.
        const double share = std::clamp((static_cast<double>(at_ns) - first_ns) / ns, 0.0, 1.0);
        const auto x = static_cast<std::int64_t>(share * width);
        peak = std::max(peak, held);
        if (columns.empty() || columns.back().first != x) {
            columns.emplace_back(x, held);
            last.push_back(held);
        } else {
            columns.back().second = std::max(columns.back().second, held);
            last.back() = held;
        }
    }
    const auto y = [&](std::int64_t held) {
        return static_cast<double>(top + height) -
               static_cast<double>(held) / static_cast<double>(peak) * static_cast<double>(height);
    };
    out.print(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory of {0}</title></head>\n"
        "<body style=\"font-family: sans-serif\">\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{1}\" "
        "height=\"{2}\" font-size=\"13\">\n<text x=\"{3}\" y=\"25\" font-size=\"16\">Tensor memory of {0}: at most "
        "{4}, category unknown</text>\n",
        device_name(device), left + width + 20, top + height + bottom, left, in_bytes(static_cast<double>(peak)));
    for (int quarter = 0; quarter <= 4; ++quarter) {
        const std::int64_t at = top + height - height * quarter / 4;
        out.print("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4}\" "
                  "text-anchor=\"end\">{5}</text>\n",
                  left, left + width, at, left - 6, at + 4, in_bytes(static_cast<double>(peak) * quarter / 4));
        out.print("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:.3f} ms</text>\n", left + width * quarter / 4,
                  top + height + 20, ns * quarter / 4e6);
    }
    out.print("<path fill=\"grey\" d=\"M{} {}", left, top + height);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::int64_t x = left + columns[i].first;
        out.print(" L{0} {1:.1f} L{0} {2:.1f} L{0} {3:.1f}", x, y(before), y(columns[i].second), y(last[i]));
        before = last[i];
    }
    out.print(" L{} {:.1f} L{} {} Z\"/>\n</svg>\n</body></html>\n", left + width, y(before), left + width,
              top + height);
}

}   // namespace

void write_memory_timeline(const Ledger& ledger, std::ostream& stream, MemoryTimelineForm form, std::int32_t device) {
    const std::vector<MemoryEvent> events = events_of(ledger, device);
    TextStream out{stream};
    switch (form) {
    case MemoryTimelineForm::sizes: write_sizes(events, out); break;
    case MemoryTimelineForm::raw: write_raw(events, out); break;
    case MemoryTimelineForm::plot: write_plot(events, device, out); break;
    }
    out.flush();
}

void export_memory_timeline(const Ledger& ledger, const std::filesystem::path& file, std::int32_t device) {
    const std::string name = file.string();
    const MemoryTimelineForm form = name.ends_with(".html") ? MemoryTimelineForm::plot
                                    : name.ends_with("raw.json") || name.ends_with("raw.json.gz")
                                        ? MemoryTimelineForm::raw
                                        : MemoryTimelineForm::sizes;
    write_file_whole(file, name.ends_with(".gz"),
                     [&](std::ostream& out) { write_memory_timeline(ledger, out, form, device); });
}

}   // namespace drawpoint
