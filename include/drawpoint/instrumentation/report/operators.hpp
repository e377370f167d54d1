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

/// One call of an operator, region, Python function or kernel, or an allocation outside all of them, with its total
/// cost and its own cost (`self_`, without its callees). Costs in time are wall clock durations in nanoseconds,
/// separate for host (`cpu_`, in torch.profiler's terms) and device.
struct OperatorEvent {
    std::uint32_t row = nothing;      ///< position in `Ledger::operators`; `nothing`: an allocation outside every call
    std::uint32_t parent = nothing;   ///< position of its caller in what `events` returns; always on the same thread
    std::uint32_t stack = nothing;    ///< position in `Ledger::stacks`; a backward function has its forward operator's
    std::int32_t device = -1;         ///< device that it ran on; -1: the host
    std::int64_t begin_ns = 0;        ///< when it began, on the ledger's clock
    std::int64_t cpu_ns = 0, self_cpu_ns = 0;
    /// On the host: time of the kernels that it and its callees launched, or only it. Of a kernel: its own duration.
    std::int64_t device_ns = 0, self_device_ns = 0;
    std::int64_t cpu_bytes = 0, self_cpu_bytes = 0, device_bytes = 0, self_device_bytes = 0;   ///< allocated - released
    bool operator==(const OperatorEvent&) const = default;
};

/// All calls of a sorted ledger in order of time, like torch.profiler's `events()`. Omits profiling helpers
/// ("profiler::_record_function_enter", …), and a call that has its caller's name and is that caller's only callee.
/// Their callees become the caller's; the rest of their time is part of its own cost. O(n log n). Any thread.
[[nodiscard]] std::vector<OperatorEvent> events(const Ledger&);

struct KeyAveragesOptions {
    bool group_by_input_shape = false;
    std::size_t group_by_stack_n = 0;   ///< also group by this number of innermost callers; 0: by none
};
static_assert(std::is_trivially_destructible_v<KeyAveragesOptions>);

/// All calls of one operator. Times are sums of wall clock durations in nanoseconds, as in `OperatorEvent`.
struct OperatorAverage {
    std::string key;                  ///< the name; all steps are "ProfilerStep*"
    std::string shapes;               ///< "[[16, 3], [8], []]"; empty unless grouped by shapes
    std::vector<std::string> stack;   ///< callers, innermost first; empty unless grouped by callers
    std::uint64_t count = 0;
    std::int64_t cpu_ns = 0, self_cpu_ns = 0, device_ns = 0, self_device_ns = 0;
    /// `cpu_ns` and `self_cpu_ns` in microseconds, summed as torch.profiler does, from doubles that count from the
    /// ledger's start. `table` shows these, so that even its last digits equal the original's.
    double cpu_us = 0, self_cpu_us = 0;
    std::int64_t cpu_bytes = 0, self_cpu_bytes = 0, device_bytes = 0, self_device_bytes = 0;
    std::uint64_t flops = 0;
    std::int32_t device = -1;       ///< device of its first call; -1: the host
    bool user_annotation = false;   ///< a region, not an operator
    bool top_level = true;          ///< its first call has no caller
    bool operator==(const OperatorAverage&) const = default;
};

/// torch.profiler's `key_averages`: one row per name, place (host, or all devices together) and kind (region or not),
/// and per shapes and callers if the options say so, in order of first appearance. `cpu_ns` counts a recursive call
/// once at each level. Any thread.
[[nodiscard]] std::vector<OperatorAverage> key_averages(const Ledger&, const KeyAveragesOptions& = {});

/// torch.profiler's keys that `table` can sort by; "cuda" in a key means "device". Static storage.
[[nodiscard]] std::span<const std::string_view> sort_keys() noexcept;

/// The value that `table` sorts by: microseconds, bytes, calls or operations. Throws std::invalid_argument naming an
/// unknown key and listing the known ones.
[[nodiscard]] double sort_value(const OperatorAverage&, std::string_view sort_by);

/// One unit for all times of a table; `automatic`: chosen for each time.
enum class TimeUnit : std::uint8_t { automatic, us, ms, s };

/// Holds no copies: the texts of `sort_by` and `header` must outlive the options.
struct TableOptions {
    std::string_view sort_by;       ///< one of `sort_keys()`, descending; empty: in the order given
    std::int64_t row_limit = 100;   ///< negative: all
    /// In characters; absent: no limit.
    std::optional<std::size_t> max_src_column_width = 75, max_name_column_width = 55, max_shapes_column_width = 80;
    std::optional<std::string_view> header;
    bool top_level_events_only = false;
    TimeUnit time_unit = TimeUnit::automatic;
    std::optional<bool> profile_memory;   ///< whether to show memory columns; absent: if any value is not 0
};
static_assert(std::is_trivially_destructible_v<TableOptions>);

/// torch.profiler's table, byte for byte as in PyTorch 2.13; empty without rows. By default times under 1 ms are in us,
/// under 1 s in ms. Columns for the device, memory, operations, shapes and callers appear only if a row has a value for
/// them. Names are made `printable`. Throws like `sort_value`.
[[nodiscard]] std::string table(std::span<const OperatorAverage>, const TableOptions& = {});

/// Sets an option by name, as Lightning's `table_kwargs` does: header, max_src_column_width, max_name_column_width,
/// max_shapes_column_width ("None": no limit), top_level_events_only ("True" or "False"). `value` must outlive the
/// options. Throws std::invalid_argument naming an unknown key or an invalid value.
void set_table_option(TableOptions&, std::string_view key, std::string_view value);

/// Call stacks as input for flame graphs: a line for each call with a known stack and a self time of at least 1 us,
/// with its frames, outermost first, joined by ';', and the time in whole microseconds. `metric`: self_cpu_time_total
/// or self_device_time_total (cuda, xpu and privateuse1 mean device). Throws std::invalid_argument for another metric
/// or if the ledger has no stacks.
[[nodiscard]] std::string export_stacks(const Ledger&, std::string_view metric = "self_cpu_time_total");

struct OperatorReportOptions {
    KeyAveragesOptions group;
    TableOptions table;   ///< empty `sort_by`: by the device's total time if there is any, else by the host's
};
static_assert(std::is_trivially_destructible_v<OperatorReportOptions>);

/// The table of all operators of a ledger, sorted as the options say, by default longest first; without operators a
/// line that says so. Throws like `table`.
[[nodiscard]] std::string to_op_report(const Ledger&, const OperatorReportOptions& = {});

}   // namespace drawpoint
