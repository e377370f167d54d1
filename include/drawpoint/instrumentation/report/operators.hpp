#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// One call of an operator, region, Python function or kernel, or an allocation outside all of them, with what it cost alone
/// and together with what it called. Times are nanoseconds; those of the host and of the device are kept apart.
struct OperatorEvent {
    std::uint32_t row = nothing;      ///< of `Ledger::operators`; `nothing`: an allocation outside every call
    std::uint32_t parent = nothing;   ///< of the list it stands in: who called it, on the same thread
    std::uint32_t stack = nothing;    ///< of `Ledger::stacks`; of a backward function: its forward operator's
    std::int32_t device = -1;         ///< where it ran; -1: the host
    std::int64_t begin_ns = 0;
    std::int64_t cpu_ns = 0, self_cpu_ns = 0;
    std::int64_t device_ns = 0, self_device_ns = 0;   ///< of the kernels it launched
    std::int64_t cpu_bytes = 0, self_cpu_bytes = 0, device_bytes = 0, self_device_bytes = 0;   ///< allocated - released
    bool operator==(const OperatorEvent&) const = default;
};

/// Every call, by time, as torch.profiler's `events()`: profiling helpers ("profiler::_record_function_enter", …) are left
/// out, and so is the inner one of two calls of one name of which the outer calls nothing else. O(n log n). Any thread.
[[nodiscard]] std::vector<OperatorEvent> events(const Ledger&);

struct KeyAveragesOptions {
    bool group_by_input_shape = false;
    std::size_t group_by_stack_n = 0;   ///< rows differ in their innermost so many callers too
};
static_assert(std::is_trivially_destructible_v<KeyAveragesOptions>);

/// All calls of one operator. Times are nanoseconds.
struct OperatorAverage {
    std::string key;                  ///< the name; all steps are "ProfilerStep*"
    std::string shapes;               ///< "[[16, 3], [8], []]"; empty unless grouped by it
    std::vector<std::string> stack;   ///< callers, innermost first; empty unless grouped by it
    std::uint64_t count = 0;
    std::int64_t cpu_ns = 0, self_cpu_ns = 0, device_ns = 0, self_device_ns = 0;
    /// The host's two as torch.profiler adds them, doubles of microseconds since the ledger's start: `table` shows these, so that
    /// its last digits are the original's too.
    double cpu_us = 0, self_cpu_us = 0;
    std::int64_t cpu_bytes = 0, self_cpu_bytes = 0, device_bytes = 0, self_device_bytes = 0;
    std::uint64_t flops = 0;
    std::int32_t device = -1;       ///< where it ran, of its first call
    bool user_annotation = false;   ///< a region, not an operator
    bool top_level = true;          ///< nobody called its first call
    bool operator==(const OperatorAverage&) const = default;
};

/// torch.profiler's `key_averages`: one row per name, place (host or device) and kind, and per shapes and callers where asked
/// for, in the order in which they first appear. `cpu_ns` counts a recursive call once at each level. Any thread.
[[nodiscard]] std::vector<OperatorAverage> key_averages(const Ledger&, const KeyAveragesOptions& = {});

/// The keys that `table` sorts by: torch.profiler's; "cuda" in a key may stand for "device". Static storage.
[[nodiscard]] std::span<const std::string_view> sort_keys() noexcept;

/// The value `table` sorts by: microseconds, bytes, calls or operations. Throws std::invalid_argument naming the key and those
/// there are.
[[nodiscard]] double sort_value(const OperatorAverage&, std::string_view sort_by);

/// One unit for all times of a table; `automatic`: each time's own.
enum class TimeUnit : std::uint8_t { automatic, us, ms, s };

struct TableOptions {
    std::string_view sort_by;       ///< descending; empty: in the order given
    std::int64_t row_limit = 100;   ///< -1: all
    std::optional<std::size_t> max_src_column_width = 75, max_name_column_width = 55, max_shapes_column_width = 80;
    std::optional<std::string_view> header;
    bool top_level_events_only = false;
    TimeUnit time_unit = TimeUnit::automatic;
    std::optional<bool> profile_memory;   ///< memory columns; absent: where there is a figure to show
};
static_assert(std::is_trivially_destructible_v<TableOptions>);

/// torch.profiler's table, byte for byte; of no rows an empty text. Times of under 1 ms are in us, of under 1 s in ms. Columns
/// of the device, memory, operations, shapes and callers stand there when there is something to show. Names are `printable`.
/// Throws as `sort_value`.
[[nodiscard]] std::string table(std::span<const OperatorAverage>, const TableOptions& = {});

/// Sets one of the options a table's user may give by name, as Lightning's `table_kwargs`: header, max_src_column_width,
/// max_name_column_width, max_shapes_column_width ("None": no limit), top_level_events_only ("True" or "False"). `value` must
/// outlive the options. Throws std::invalid_argument naming the key, or the value.
void set_table_option(TableOptions&, std::string_view key, std::string_view value);

/// Folded call stacks for flame graphs, a line for each call that took at least 1 us by itself and whose callers are known:
/// outermost first, joined by ';', then whole microseconds. `metric`: self_cpu_time_total or self_device_time_total (cuda, xpu
/// and privateuse1 stand for device). Throws std::invalid_argument for another metric or when no call has a stack.
[[nodiscard]] std::string export_stacks(const Ledger&, std::string_view metric = "self_cpu_time_total");

struct OperatorReportOptions {
    KeyAveragesOptions group;
    TableOptions table;   ///< `sort_by` empty: the device's total time if there is any, else the host's
};
static_assert(std::is_trivially_destructible_v<OperatorReportOptions>);

/// The table of all operators of a ledger, longest first; a line saying so where there are none.
[[nodiscard]] std::string to_op_report(const Ledger&, const OperatorReportOptions& = {});

}   // namespace drawpoint
