#include <drawpoint/instrumentation/report/operators.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/printable.hpp>

#include "instrumentation/report/larger_first.hpp"

namespace drawpoint {
namespace {

constexpr std::string_view device_name = "CUDA";
constexpr std::size_t column_width = 12, spacing = 2;

bool continues(char byte) noexcept { return (byte & 0xC0) == 0x80; }   // a UTF-8 continuation byte

/// Number of code points, which is Python's len().
std::size_t length(std::string_view text) noexcept {
    return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues));
}

std::string_view first(std::string_view text, std::size_t count) noexcept {
    std::size_t bytes = 0;
    for (; bytes < text.size() && (count > 0 || continues(text[bytes])); ++bytes)
        count -= continues(text[bytes]) ? 0 : 1;
    return text.substr(0, bytes);
}

std::string_view last(std::string_view text, std::size_t count) noexcept {
    const std::size_t all = length(text);
    return all <= count ? text : text.substr(first(text, all - count).size());
}

std::string padded(std::string_view text, std::size_t width, bool left) {
    const std::string blanks(width - std::min(width, length(text)), ' ');
    return left ? std::string{text} + blanks : blanks + std::string{text};
}

std::string time_text(double us, TimeUnit unit) {
    if (unit == TimeUnit::s || (unit == TimeUnit::automatic && us >= 1e6))
        return fmt::format("{:.3f}s", us / 1e6);
    if (unit == TimeUnit::ms || (unit == TimeUnit::automatic && us >= 1e3))
        return fmt::format("{:.3f}ms", us / 1e3);
    return fmt::format("{:.3f}us", us);
}

double us(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e3; }

std::string share(double us, double total_us) {
    return total_us == 0 ? "NaN" : fmt::format("{:.2f}%", us * 100.0 / total_us);
}

std::string memory_text(std::int64_t bytes) {
    constexpr double kb = 1024, mb = 1024 * kb, gb = 1024 * mb;
    const auto value = static_cast<double>(bytes);
    if (std::abs(value) >= gb)
        return fmt::format("{:.2f} GB", value / gb);
    if (std::abs(value) >= mb)
        return fmt::format("{:.2f} MB", value / mb);
    if (std::abs(value) >= kb)
        return fmt::format("{:.2f} KB", value / kb);
    return fmt::format("{} B", bytes);
}

/// A unit for operation counts: the largest in which the table's smallest count is still at least 1.
struct FlopsUnit {
    std::string_view name;
    double per_flop;
};

FlopsUnit flops_unit(std::uint64_t fewest) {
    static constexpr std::array<std::string_view, 6> names{"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
    const double thousands = std::clamp(std::log10(static_cast<double>(fewest)) / 3, 0.0, 5.0);
    return {names[static_cast<std::size_t>(thousands)], std::pow(10, std::floor(thousands) * -3.0)};
}

struct Column {
    std::string title;
    std::size_t width = column_width;
    bool left = false;
};

std::string line_of(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i)
        line += padded(cells[i], columns[i].width, columns[i].left) + std::string(spacing, ' ');
    return line + '\n';
}

/// Shortens a place in the code to its end, which is more informative than its beginning.
std::string source(std::string_view text, std::size_t width) {
    if (length(text) <= width)
        return std::string{text};
    const std::string_view end = last(text, width);
    return width > 3 ? "..." + std::string{last(end, width - 3)} : std::string{end};
}

using Average = OperatorAverage;
std::string in_braces(auto&& names) {
    std::string text = "{";
    for (const std::string_view name : names)
        ((text += text.size() == 1 ? "'" : ", '") += name) += '\'';
    return text + "}";
}

constexpr std::array<std::string_view, 17> keys{"cpu_time",
                                                "cuda_time",
                                                "device_time",
                                                "cpu_time_total",
                                                "cuda_time_total",
                                                "device_time_total",
                                                "cpu_memory_usage",
                                                "cuda_memory_usage",
                                                "device_memory_usage",
                                                "self_cpu_memory_usage",
                                                "self_cuda_memory_usage",
                                                "self_device_memory_usage",
                                                "self_cpu_time_total",
                                                "self_cuda_time_total",
                                                "self_device_time_total",
                                                "count",
                                                "flops"};

double per_call(double us, std::uint64_t count) noexcept { return count == 0 ? 0.0 : us / static_cast<double>(count); }

}   // namespace

std::span<const std::string_view> sort_keys() noexcept { return keys; }

double sort_value(const OperatorAverage& average, std::string_view sort_by) {
    std::string key{sort_by};
    for (const std::string_view device : {"cuda", "xpu", "privateuse1"})
        if (const std::size_t at = key.find(device); at != std::string::npos)
            key.replace(at, device.size(), "device");
    const auto as_double = [](auto value) { return static_cast<double>(value); };
    if (key == "cpu_time")
        return per_call(average.cpu_us, average.count);
    if (key == "device_time")
        return per_call(us(average.device_ns), average.count);
    if (key == "cpu_time_total")
        return average.cpu_us;
    if (key == "device_time_total")
        return us(average.device_ns);
    if (key == "self_cpu_time_total")
        return average.self_cpu_us;
    if (key == "self_device_time_total")
        return us(average.self_device_ns);
    if (key == "cpu_memory_usage")
        return as_double(average.cpu_bytes);
    if (key == "device_memory_usage")
        return as_double(average.device_bytes);
    if (key == "self_cpu_memory_usage")
        return as_double(average.self_cpu_bytes);
    if (key == "self_device_memory_usage")
        return as_double(average.self_device_bytes);
    if (key == "count")
        return as_double(average.count);
    if (key == "flops")
        return as_double(average.flops);
    throw std::invalid_argument{
        fmt::format("Found sort_by_key: {}. Should be within {}.", printable(sort_by), in_braces(keys))};
}

namespace {

/// The rows in descending order of `sort_by`. Equal ones, and all without `sort_by`, stay in the given order.
std::vector<const Average*> in_order(std::span<const Average> averages, std::string_view sort_by) {
    std::vector<std::pair<double, const Average*>> valued;
    for (const Average& average : averages)
        valued.emplace_back(sort_by.empty() ? 0.0 : sort_value(average, sort_by), &average);
    std::ranges::stable_sort(valued, larger_first, [](const auto& one) { return one.first; });
    std::vector<const Average*> rows(valued.size());
    std::ranges::transform(valued, rows.begin(), [](const auto& one) { return one.second; });
    return rows;
}

/// Properties of the whole table: which columns have a value to show, their widths, and sums.
struct Layout {
    std::size_t name_width = 0, shapes_width = 0;
    std::optional<std::size_t> stack_width;   // absent: no row has callers
    double self_cpu_us = 0;
    std::int64_t self_device_ns = 0;
    bool device_time = false, device_memory = false, memory = false, shapes = false;
    std::optional<FlopsUnit> flops;
};

Layout layout_of(const std::vector<const Average*>& rows, const TableOptions& options) {
    Layout layout;
    std::size_t source_width = 0;
    std::uint64_t fewest_flops = 0;
    for (const Average* row : rows) {
        layout.name_width = std::max(layout.name_width, length(printable(row->key)) + 4);
        layout.shapes_width = std::max(layout.shapes_width, length(row->shapes) + 4);
        for (const std::string& frame : row->stack)
            source_width = std::max(source_width, length(printable(frame)) + 4);
        layout.self_cpu_us += row->self_cpu_us;
        if (row->device >= 0 && !row->user_annotation)
            layout.self_device_ns += row->self_device_ns;
        if (row->flops > 0)
            fewest_flops = fewest_flops == 0 ? row->flops : std::min(fewest_flops, row->flops);
        layout.device_time |= row->self_device_ns > 0;
        layout.device_memory |= row->self_device_bytes > 0;
        layout.memory |= row->cpu_bytes != 0 || row->device_bytes != 0;
        layout.shapes |= !row->shapes.empty() && row->shapes != "[]";
    }
    const auto at_most = [](std::size_t width, std::optional<std::size_t> most) {
        return most ? std::min(width, *most) : width;
    };
    layout.name_width = at_most(layout.name_width, options.max_name_column_width);
    layout.shapes_width = at_most(layout.shapes_width, options.max_shapes_column_width);
    if (source_width > 0)
        layout.stack_width = at_most(source_width, options.max_src_column_width);
    layout.memory = options.profile_memory.value_or(layout.memory);
    if (fewest_flops > 0)
        layout.flops = flops_unit(fewest_flops);
    return layout;
}

std::vector<Column> columns_of(const Layout& layout) {
    std::vector<Column> columns{{"Name", layout.name_width}};
    const auto add = [&](std::string title) { columns.push_back({std::move(title)}); };
    for (const char* title : {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
        add(title);
    if (layout.device_time) {
        add(fmt::format("Self {}", device_name));
        add(fmt::format("Self {} %", device_name));
        add(fmt::format("{} total", device_name));
        add(fmt::format("{} time avg", device_name));
    }
    if (layout.memory) {
        add("CPU Mem");
        add("Self CPU Mem");
        if (layout.device_memory) {
            add(fmt::format("{} Mem", device_name));
            add(fmt::format("Self {} Mem", device_name));
        }
    }
    add("# of Calls");
    if (layout.shapes)
        columns.push_back({"Input Shapes", layout.shapes_width});
    if (layout.flops)
        add(fmt::format("Total {}", layout.flops->name));
    if (layout.stack_width)   // the last column, since its further lines follow below it
        columns.push_back({"Source Location", *layout.stack_width, true});
    return columns;
}

std::string dashes_of(const std::vector<Column>& columns) {
    std::vector<std::string> dashes;
    for (const Column& column : columns)
        dashes.emplace_back(column.width, '-');
    return line_of(columns, dashes);
}

std::string head_of(const std::vector<Column>& columns, const TableOptions& options) {
    std::vector<std::string> titles;
    std::size_t line_width = 0;
    for (const Column& column : columns) {
        titles.push_back(column.title);
        line_width += column.width + spacing;
    }
    const std::string double_line = std::string(line_width - spacing, '=') + '\n', dashes = dashes_of(columns);
    std::string text;
    if (options.header)
        ((text += double_line) += *options.header) += '\n';
    if (options.top_level_events_only)
        (text += double_line) += "This report only display top-level ops statistics\n";
    return text + dashes + line_of(columns, titles) + dashes;
}

std::string shortened_name(const Average& row, const TableOptions& options) {
    std::string name = printable(row.key);
    if (const auto most = options.max_name_column_width; most && length(name) + 3 >= *most)
        name = std::string{first(name, *most < 3 ? 0 : *most - 3)} + "...";
    return name;
}

/// The cells of a row except the callers.
std::vector<std::string> cells_of(const Average& row, const Layout& layout, const TableOptions& options) {
    const auto time = [&](double value_us) { return time_text(value_us, options.time_unit); };
    std::vector<std::string> cells{shortened_name(row, options),
                                   share(row.self_cpu_us, layout.self_cpu_us),
                                   time(row.self_cpu_us),
                                   share(row.cpu_us, layout.self_cpu_us),
                                   time(row.cpu_us),
                                   time(per_call(row.cpu_us, row.count))};
    if (layout.device_time) {
        const double self_us = us(row.self_device_ns), all_us = us(row.device_ns);
        cells.insert(cells.end(), {time(self_us), share(self_us, us(layout.self_device_ns)), time(all_us),
                                   time(per_call(all_us, row.count))});
    }
    if (layout.memory) {
        cells.insert(cells.end(), {memory_text(row.cpu_bytes), memory_text(row.self_cpu_bytes)});
        if (layout.device_memory)
            cells.insert(cells.end(), {memory_text(row.device_bytes), memory_text(row.self_device_bytes)});
    }
    cells.push_back(fmt::format("{}", row.count));
    if (layout.shapes)
        cells.emplace_back(first(row.shapes, layout.shapes_width));
    if (layout.flops)
        cells.push_back(
            row.flops == 0 ? "--" : fmt::format("{:8.3f}", static_cast<double>(row.flops) * layout.flops->per_flop));
    return cells;
}

/// A row's lines: if the table shows callers, one per caller and an empty one.
std::string lines_of(const Average& row, const std::vector<Column>& columns, const Layout& layout,
                     const TableOptions& options) {
    std::vector<std::string> cells = cells_of(row, layout, options);
    if (!layout.stack_width)
        return line_of(columns, cells);
    const auto frame = [&](std::size_t i) { return source(printable(row.stack[i]), *layout.stack_width); };
    cells.push_back(row.stack.empty() ? "" : frame(0));
    std::string text = line_of(columns, cells);
    std::vector<std::string> more(columns.size());
    for (std::size_t i = 1; i < row.stack.size(); ++i) {
        more.back() = frame(i);
        text += line_of(columns, more);
    }
    more.back().clear();
    return text + line_of(columns, more);
}

}   // namespace

std::string table(std::span<const OperatorAverage> averages, const TableOptions& options) {
    if (!options.sort_by.empty())
        (void)sort_value({}, options.sort_by);   // an unknown key is an error even if there is nothing to sort
    if (averages.empty())
        return {};
    const std::vector<const Average*> rows = in_order(averages, options.sort_by);
    const Layout layout = layout_of(rows, options);
    const std::vector<Column> columns = columns_of(layout);
    std::string text = head_of(columns, options);
    std::int64_t shown = 0;
    for (const Average* row : rows) {
        if (shown == options.row_limit)
            break;
        if (options.top_level_events_only && !row->top_level)
            continue;
        ++shown;
        text += lines_of(*row, columns, layout, options);
    }
    text += dashes_of(columns);
    text += fmt::format("Self CPU time total: {}\n", time_text(layout.self_cpu_us, options.time_unit));
    if (layout.device_time)
        text += fmt::format("Self {} time total: {}\n", device_name,
                            time_text(us(layout.self_device_ns), options.time_unit));
    return text;
}

void set_table_option(TableOptions& options, std::string_view key, std::string_view value) {
    static constexpr std::array<std::string_view, 5> names{"header", "max_src_column_width", "max_name_column_width",
                                                           "max_shapes_column_width", "top_level_events_only"};
    const auto refuse = [&](std::string_view need) {
        throw std::invalid_argument{fmt::format("table option {}: '{}' is not {}", key, printable(value), need)};
    };
    if (key == "sort_by" || key == "row_limit")
        throw std::invalid_argument{fmt::format("Found invalid table option: {}. It has an option of its own.", key)};
    if (key == "header") {
        options.header = value;
    } else if (key == "top_level_events_only") {
        if (value != "True" && value != "true" && value != "False" && value != "false")
            refuse("True or False");
        options.top_level_events_only = value == "True" || value == "true";
    } else if (std::ranges::find(names, key) != names.end()) {
        std::optional<std::size_t> width;
        if (value != "None") {
            std::size_t number = 0;
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
            if (error != std::errc{} || end != value.data() + value.size() || number > 1'000'000)
                refuse("None or a width from 0 to 1000000");
            width = number;
        }
        (key == names[1]   ? options.max_src_column_width
         : key == names[2] ? options.max_name_column_width
                           : options.max_shapes_column_width) = width;
    } else {
        throw std::invalid_argument{
            fmt::format("Found invalid table option: {}. Should be within {}.", printable(key), in_braces(names))};
    }
}

std::string to_op_report(const Ledger& ledger, const OperatorReportOptions& options) {
    const std::vector<OperatorAverage> averages = key_averages(ledger, options.group);
    if (averages.empty())
        return "No operator was recorded.\n";
    TableOptions how = options.table;
    if (how.sort_by.empty())
        how.sort_by = std::ranges::any_of(averages, [](const Average& row) { return row.device_ns > 0; })
                          ? "device_time_total"
                          : "cpu_time_total";
    return table(averages, how);
}

}   // namespace drawpoint
