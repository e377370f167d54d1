#include <drawpoint/instrumentation/report/operators.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::string_view step_prefix = "ProfilerStep#", step_key = "ProfilerStep*", allocation_key = "[memory]";

/// Arithmetic modulo 2^64, since stamps and sizes from a file may have any value.
void add(std::int64_t& to, std::int64_t more) noexcept { to = wrapping_sum(to, more); }
std::int64_t difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(wrapping_difference(a, b));
}

bool is_helper(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 8> helpers{allocation_key,
                                                             "[OutOfMemory]",
                                                             "profiler::_record_function_enter",
                                                             "profiler::_record_function_enter_new",
                                                             "profiler::_record_function_exit",
                                                             "aten::is_leaf",
                                                             "aten::output_nr",
                                                             "aten::_version"};
    return std::ranges::find(helpers, name) != helpers.end();
}

/// Whether a frame belongs to a wrapper of autograd or of PyTorch's tests, which torch.profiler omits from stacks.
bool is_wrapper(std::string_view frame) noexcept {
    using Both = std::pair<std::string_view, std::string_view>;
    static constexpr std::array<Both, 6> wrappers{Both{"autograd/__init__", "_make_grads"},
                                                  {"autograd/__init__", "backward"},
                                                  {"torch/tensor", "backward"},
                                                  {"_internal/common_utils", "prof_callable"},
                                                  {"_internal/common_utils", "prof_func_call"},
                                                  {"_internal/common_utils", "prof_meth_call"}};
    const auto has = [&](std::string_view part) { return frame.find(part) != std::string_view::npos; };
    return std::ranges::any_of(wrappers, [&](const Both& both) { return has(both.first) && has(both.second); });
}

template <class T>
const T* at(const std::vector<T>& rows, std::uint32_t position) noexcept {
    return position < rows.size() ? &rows[position] : nullptr;
}

std::string_view name_at(const Ledger& ledger, std::uint32_t position) noexcept {
    const std::string* name = at(ledger.names, position);
    return name ? std::string_view{*name} : std::string_view{};
}

std::int32_t device_of(const Ledger& ledger, std::uint32_t thread) noexcept {
    const ThreadRow* row = at(ledger.threads, thread);
    return row ? row->device : -1;
}

/// Running totals of allocated minus released bytes, for the host and for devices.
class Memory {
public:
    explicit Memory(const Ledger& ledger) : rows_(ledger.allocations.begin(), ledger.allocations.end()) {
        std::ranges::stable_sort(rows_, {}, &AllocationRow::at_ns);
        host_.resize(rows_.size() + 1);
        device_.resize(rows_.size() + 1);
        covered_.resize(rows_.size() + 1);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            host_[i + 1] = wrapping_sum(host_[i], rows_[i].device < 0 ? rows_[i].bytes : 0);
            device_[i + 1] = wrapping_sum(device_[i], rows_[i].device < 0 ? 0 : rows_[i].bytes);
        }
    }
    /// Sets the bytes allocated on any thread during the call, both ends included.
    void add_to(OperatorEvent& event) {
        if (rows_.empty())
            return;
        const auto first = std::ranges::lower_bound(rows_, event.begin_ns, {}, &AllocationRow::at_ns) - rows_.begin();
        const auto last =
            std::ranges::upper_bound(rows_, wrapping_sum(event.begin_ns, event.cpu_ns), {}, &AllocationRow::at_ns) -
            rows_.begin();
        if (first >= last)
            return;
        const auto from = static_cast<std::size_t>(first), to = static_cast<std::size_t>(last);
        event.cpu_bytes = difference(host_[to], host_[from]);
        event.device_bytes = difference(device_[to], device_[from]);
        ++covered_[from];
        --covered_[to];
    }
    /// Appends the allocations outside every call, as events of length 0.
    void add_others(std::vector<std::pair<OperatorEvent, std::uint32_t>>& events) const {
        std::int64_t covered = 0;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            covered += covered_[i];
            if (covered > 0)
                continue;
            OperatorEvent event{.begin_ns = rows_[i].at_ns};
            (rows_[i].device < 0 ? event.cpu_bytes : event.device_bytes) = rows_[i].bytes;
            events.emplace_back(event, rows_[i].thread);
        }
    }

private:
    std::vector<AllocationRow> rows_;
    std::vector<std::int64_t> host_, device_, covered_;
};

/// Gives equal texts the same number.
class Texts {
public:
    std::uint32_t number_of(std::string text) {
        return numbers_.try_emplace(std::move(text), static_cast<std::uint32_t>(numbers_.size())).first->second;
    }

private:
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// Replaces each list of tensors by one input of unknown shape: "[[[3, 2], [3, 2]], [4]]" becomes "[[], [4]]".
std::string flat_shapes(std::string_view shapes) {
    std::string flat;
    std::size_t depth = 0, input = 0;   // `input`: where the text of the current input begins
    for (const char c : shapes) {
        if (c == '[' && ++depth == 2)
            input = flat.size();
        if (depth <= 2)
            flat += c;
        else if (c == '[')
            flat.resize(input + 1);   // also drops anything before the first inner list
        if (c == ']')
            --depth;
    }
    return flat.empty() ? "[]" : flat;
}

/// The key number of each name in the ledger; equal texts share one, and so do all steps.
std::vector<std::uint32_t> key_numbers(const Ledger& ledger, Texts& texts) {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(ledger.names.size());
    for (const std::string& name : ledger.names)
        numbers.push_back(texts.number_of(name.starts_with(step_prefix) ? std::string{step_key} : name));
    return numbers;
}

/// At most `most` frames of a stack, innermost first, as "file(line): function".
std::vector<std::string> frames_of(const Ledger& ledger, std::uint32_t stack, std::size_t most) {
    std::vector<std::string> frames;
    for (const StackRow* row = at(ledger.stacks, stack); row && frames.size() < most;
         row = at(ledger.stacks, row->parent)) {
        const FrameRow* frame = at(ledger.frames, row->frame);
        if (!frame)
            continue;
        std::string text{name_at(ledger, frame->function)};
        if (frame->file != nothing)
            text = std::string{name_at(ledger, frame->file)} + "(" + std::to_string(frame->line) + "): " + text;
        if (!is_wrapper(text))
            frames.push_back(std::move(text));
    }
    return frames;
}

std::int64_t end_of(const OperatorEvent& event) noexcept {
    return wrapping_sum(wrapping_sum(event.begin_ns, event.cpu_ns), event.device_ns);
}

/// Finds each call's caller on its thread: the innermost call that contains it in time.
void find_parents(std::vector<OperatorEvent>& events, const std::vector<std::uint32_t>& threads) {
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> open;
    for (std::uint32_t i = 0; i < events.size(); ++i) {
        OperatorEvent& event = events[i];
        if (event.device >= 0)
            continue;
        std::vector<std::uint32_t>& stack = open[threads[i]];
        while (!stack.empty() &&
               (event.begin_ns >= end_of(events[stack.back()]) || end_of(event) > end_of(events[stack.back()])))
            stack.pop_back();
        if (!stack.empty())
            event.parent = stack.back();
        stack.push_back(i);
    }
}

/// Adds each kernel's time to the operator that launched it: the innermost one around the runtime's launch call.
void link_kernels(const Ledger& ledger, std::vector<OperatorEvent>& events) {
    const auto row_of = [&](const OperatorEvent& event) { return at(ledger.operators, event.row); };
    std::unordered_map<std::uint64_t, std::uint32_t> launches;
    for (std::uint32_t i = 0; i < events.size(); ++i)
        if (const OperatorRow* row = row_of(events[i]); row && events[i].device < 0 && row->correlation != 0)
            launches.emplace(row->correlation, i);
    for (const OperatorEvent& event : events) {
        const OperatorRow* row = row_of(event);
        if (!row || event.device < 0 || row->correlation == 0 || row->kind == OperatorKind::user_annotation)
            continue;
        const auto launch = launches.find(row->correlation);
        if (launch == launches.end())
            continue;
        const auto is_operator = [&](std::uint32_t i) {
            const OperatorKind kind = row_of(events[i])->kind;
            return kind == OperatorKind::cpu_op || kind == OperatorKind::user_annotation;
        };
        std::uint32_t by = launch->second;
        while (by != nothing && events[by].row != nothing && !is_operator(by))
            by = events[by].parent;
        if (by != nothing)
            add(events[by].self_device_ns, event.device_ns);
    }
}

/// Gives backward functions, and calls inside them, the stack of their forward operator: the first operator with the
/// same sequence number.
void set_backward_stacks(const Ledger& ledger, std::vector<OperatorEvent>& events) {
    if (ledger.stacks.empty())
        return;
    std::vector<std::uint32_t> backward(events.size(), nothing);   // the call itself or the backward function around it
    std::unordered_map<std::int64_t, std::uint32_t> forward_stacks;
    for (std::uint32_t i = 0; i < events.size(); ++i) {
        const OperatorRow* row = at(ledger.operators, events[i].row);
        backward[i] = row && row->forward_thread != 0 ? i
                      : events[i].parent != nothing   ? backward[events[i].parent]
                                                      : nothing;
        if (row && backward[i] == nothing && row->sequence >= 0)
            forward_stacks.emplace(row->sequence, events[i].stack);
    }
    for (std::uint32_t i = 0; i < events.size(); ++i)
        if (backward[i] != nothing) {
            const auto found = forward_stacks.find(ledger.operators[events[backward[i]].row].sequence);
            events[i].stack = found == forward_stacks.end() ? nothing : found->second;
        }
}

/// Removes each call that has its caller's name and is its only callee; its own callees move up to the caller.
void remove_doubles(const Ledger& ledger, std::vector<OperatorEvent>& events) {
    Texts texts;
    const std::vector<std::uint32_t> keys = key_numbers(ledger, texts);
    const auto key = [&](std::uint32_t i) {
        const OperatorRow* row = at(ledger.operators, events[i].row);
        return row && row->name < keys.size() ? keys[row->name] : nothing;
    };
    std::vector<std::uint32_t> calls(events.size()), moved(events.size());
    for (const OperatorEvent& event : events)
        if (event.parent != nothing)
            ++calls[event.parent];
    std::vector<bool> double_of_parent(events.size());
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < events.size(); ++i) {
        std::uint32_t parent = events[i].parent;
        while (parent != nothing && double_of_parent[parent])
            parent = events[parent].parent;
        events[i].parent = parent;
        if (parent != nothing && calls[parent] == 1 && key(i) == key(parent)) {
            double_of_parent[i] = true;
            calls[parent] = calls[i];
            add(events[parent].self_device_ns, events[i].self_device_ns);
        } else {
            moved[i] = kept++;
        }
    }
    for (std::uint32_t i = 0; i < events.size(); ++i)
        if (!double_of_parent[i]) {
            if (events[i].parent != nothing)
                events[i].parent = moved[events[i].parent];
            events[moved[i]] = events[i];
        }
    events.resize(kept);
}

/// Computes each call's own cost, without its callees. Relies on callers coming before their callees.
void find_own_shares(std::vector<OperatorEvent>& events) {
    for (OperatorEvent& event : events) {
        event.self_cpu_ns = event.cpu_ns;
        event.self_cpu_bytes = event.cpu_bytes;
        event.self_device_bytes = event.device_bytes;
        if (event.device < 0)
            event.device_ns = event.self_device_ns;
        else
            event.self_device_ns = event.device_ns;
    }
    for (std::size_t i = events.size(); i-- > 0;)
        if (const OperatorEvent& event = events[i]; event.parent != nothing) {
            OperatorEvent& parent = events[event.parent];
            parent.self_cpu_ns = difference(parent.self_cpu_ns, event.cpu_ns);
            parent.self_cpu_bytes = difference(parent.self_cpu_bytes, event.cpu_bytes);
            parent.self_device_bytes = difference(parent.self_device_bytes, event.device_bytes);
            add(parent.device_ns, event.device_ns);
        }
}

}   // namespace

std::vector<OperatorEvent> events(const Ledger& ledger) {
    std::vector<std::pair<OperatorEvent, std::uint32_t>> all;   // events and their threads
    all.reserve(ledger.operators.size());
    Memory memory{ledger};
    for (std::uint32_t i = 0; i < ledger.operators.size(); ++i) {
        const OperatorRow& row = ledger.operators[i];
        if (is_helper(name_at(ledger, row.name)))
            continue;
        OperatorEvent event{
            .row = i, .stack = row.stack, .device = device_of(ledger, row.thread), .begin_ns = row.begin_ns};
        if (event.device < 0) {
            event.cpu_ns = row.ns;
            memory.add_to(event);
        } else {
            event.device_ns = row.ns;
        }
        all.emplace_back(event, row.thread);
    }
    memory.add_others(all);
    std::ranges::stable_sort(all, {},
                             [](const auto& one) { return std::pair{one.first.begin_ns, ~end_of(one.first)}; });

    std::vector<OperatorEvent> events;
    std::vector<std::uint32_t> threads;
    events.reserve(all.size());
    threads.reserve(all.size());
    for (auto& [event, thread] : all) {
        events.push_back(event);
        threads.push_back(thread);
    }
    find_parents(events, threads);
    link_kernels(ledger, events);
    remove_doubles(ledger, events);
    set_backward_stacks(ledger, events);
    find_own_shares(events);
    return events;
}

namespace {

/// Calls with equal keys are one row.
struct Key {
    std::uint32_t name, shapes, stack;
    bool on_device, annotation;
    bool operator==(const Key&) const = default;
};

struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
        std::uint64_t hash = 0x9e3779b97f4a7c15u;
        for (const std::uint64_t part : {std::uint64_t{key.name}, std::uint64_t{key.shapes}, std::uint64_t{key.stack},
                                         std::uint64_t{key.on_device} * 2 + std::uint64_t{key.annotation}})
            hash = (hash ^ part) * 0xff51afd7ed558ccdu, hash ^= hash >> 32;
        return static_cast<std::size_t>(hash);
    }
};

/// Computes the key of a call.
class Keys {
public:
    Keys(const Ledger& ledger, const KeyAveragesOptions& options) : ledger_{&ledger}, options_{options} {}

    [[nodiscard]] Key of(const OperatorEvent& event) {
        const OperatorRow* row = at(ledger_->operators, event.row);
        return {row ? row->name < names_.size() ? names_[row->name] : nothing : memory_,
                options_.group_by_input_shape ? shapes_of(row ? row->shapes : nothing) : 0,
                options_.group_by_stack_n > 0 ? stack_of(event.stack) : 0, event.device >= 0, is_annotation(row)};
    }
    /// An empty row for this call's key.
    [[nodiscard]] OperatorAverage row_of(const OperatorEvent& event) const {
        const OperatorRow* row = at(ledger_->operators, event.row);
        OperatorAverage first;
        first.key = row ? name_at(*ledger_, row->name) : allocation_key;
        if (first.key.starts_with(step_prefix))
            first.key = step_key;
        if (options_.group_by_input_shape)
            first.shapes = flat_shapes(name_at(*ledger_, row ? row->shapes : nothing));
        first.stack = frames_of(*ledger_, event.stack, options_.group_by_stack_n);
        first.device = event.device;
        first.user_annotation = is_annotation(row);
        first.top_level = event.parent == nothing;
        return first;
    }

private:
    static bool is_annotation(const OperatorRow* row) noexcept {
        return row && row->kind == OperatorKind::user_annotation;
    }
    std::uint32_t shapes_of(std::uint32_t position) {
        const auto [entry, is_new] = shapes_seen_.try_emplace(position);
        if (is_new)
            entry->second = shape_texts_.number_of(flat_shapes(name_at(*ledger_, position)));
        return entry->second;
    }
    std::uint32_t stack_of(std::uint32_t position) {
        const auto [entry, is_new] = stacks_seen_.try_emplace(position);
        if (is_new) {
            std::string joined;
            for (const std::string& frame : frames_of(*ledger_, position, options_.group_by_stack_n))
                (joined += frame) += '\n';
            entry->second = stack_texts_.number_of(std::move(joined));
        }
        return entry->second;
    }

    const Ledger* ledger_;
    KeyAveragesOptions options_;
    Texts name_texts_, shape_texts_, stack_texts_;
    std::vector<std::uint32_t> names_ = key_numbers(*ledger_, name_texts_);
    std::uint32_t memory_ = name_texts_.number_of(std::string{allocation_key});
    std::unordered_map<std::uint32_t, std::uint32_t> shapes_seen_, stacks_seen_;   // position -> number
};

/// Durations of calls on the host in microseconds, computed like torch.profiler's from doubles counted from the start.
class HostTimes {
public:
    HostTimes(const Ledger& ledger, std::span<const OperatorEvent> events)
        : start_ns_{ledger.start_ns}, called_us_(events.size()) {
        for (const OperatorEvent& event : events)
            if (event.parent != nothing)
                called_us_[event.parent] += us_of(event);
    }
    [[nodiscard]] double us_of(const OperatorEvent& event) const noexcept {
        return since_start_us(wrapping_sum(event.begin_ns, event.cpu_ns)) - since_start_us(event.begin_ns);
    }
    /// Total time of the direct callees of the call at this position.
    [[nodiscard]] double called_us(std::size_t position) const noexcept { return called_us_[position]; }

private:
    [[nodiscard]] double since_start_us(std::int64_t ns) const noexcept {
        return static_cast<double>(difference(ns, start_ns_)) / 1000;
    }

    std::int64_t start_ns_;
    std::vector<double> called_us_;
};

void add_to(OperatorAverage& average, const OperatorEvent& event) {
    ++average.count;
    add(average.cpu_ns, event.cpu_ns);
    add(average.self_cpu_ns, event.self_cpu_ns);
    add(average.device_ns, event.device_ns);
    add(average.self_device_ns, event.self_device_ns);
    add(average.cpu_bytes, event.cpu_bytes);
    add(average.self_cpu_bytes, event.self_cpu_bytes);
    add(average.device_bytes, event.device_bytes);
    add(average.self_device_bytes, event.self_device_bytes);
}

}   // namespace

std::vector<OperatorAverage> key_averages(const Ledger& ledger, const KeyAveragesOptions& options) {
    const std::vector<OperatorEvent> all = events(ledger);
    const HostTimes times{ledger, all};
    Keys keys{ledger, options};
    std::vector<OperatorAverage> averages;
    std::unordered_map<Key, std::size_t, KeyHash> rows;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const OperatorEvent& event = all[i];
        const auto [entry, is_new] = rows.try_emplace(keys.of(event), averages.size());
        if (is_new)
            averages.push_back(keys.row_of(event));
        OperatorAverage& average = averages[entry->second];
        add_to(average, event);
        if (event.device < 0) {
            const double us = times.us_of(event);
            average.cpu_us += us;
            average.self_cpu_us += us - times.called_us(i);
        }
        if (const OperatorRow* row = at(ledger.operators, event.row))
            average.flops += row->flops;
    }
    return averages;
}

std::string export_stacks(const Ledger& ledger, std::string_view metric) {
    static constexpr std::array<std::string_view, 5> metrics{"self_cpu_time_total", "self_cuda_time_total",
                                                             "self_xpu_time_total", "self_privateuse1_time_total",
                                                             "self_device_time_total"};
    if (std::ranges::find(metrics, metric) == metrics.end()) {
        std::string text = "metric should be one of: [";
        for (const std::string_view one : metrics)
            ((text += one == metrics[0] ? "'" : ", '") += one) += '\'';
        throw std::invalid_argument{text + "], not '" + std::string{metric} + "'"};
    }
    if (ledger.stacks.empty())
        throw std::invalid_argument{"export_stacks() requires with_stack=True"};
    std::unordered_map<std::uint32_t, std::string> folded;
    std::string text;
    for (const OperatorEvent& event : events(ledger)) {
        const std::int64_t us = (metric == metrics[0] ? event.self_cpu_ns : event.self_device_ns) / 1000;
        if (us <= 0 || event.stack == nothing)
            continue;
        const auto [entry, is_new] = folded.try_emplace(event.stack);
        if (is_new) {
            std::vector<std::string> frames = frames_of(ledger, event.stack, nothing);
            for (std::string& frame : frames)
                std::ranges::replace_if(
                    frame, [](char c) { return c == ' ' || c == ';' || c == '\t' || c == '\n'; }, '_');
            for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
                (entry->second += frame == frames.rbegin() ? "" : ";") += *frame;
        }
        if (!entry->second.empty())
            ((text += entry->second) += ' ') += std::to_string(us) + '\n';
    }
    return text;
}

}   // namespace drawpoint
