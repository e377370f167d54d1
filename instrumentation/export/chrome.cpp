#include <drawpoint/instrumentation/export/chrome.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/facts.hpp>
#include <instrumentation/export/json_text.hpp>
#include <instrumentation/export/text_stream.hpp>
#include <instrumentation/export/tracks.hpp>
#include <instrumentation/wrapping.hpp>

namespace drawpoint {
namespace {

using Kind = TrackSlice::Kind;

// Kineto's numbers: devices stand after all processes, its own spans after those.
constexpr std::int64_t first_device_rank = 5'000'000, spans_rank = 536'870'912;
constexpr std::array<std::string_view, 9> own_keys{"schemaVersion",       "deviceProperties", "displayTimeUnit",
                                                   "baseTimeNanoseconds", "stackFrames",      "traceEvents",
                                                   "traceName",           "drawpoint",        "drawpoint_left_out"};

/// Nanoseconds as microseconds with three decimals.
struct Microseconds {
    std::int64_t ns;
};

std::string_view category_of(OperatorKind kind) noexcept {
    switch (kind) {
    case OperatorKind::cpu_op: return "cpu_op";
    case OperatorKind::user_annotation: return "user_annotation";
    case OperatorKind::python_function: return "python_function";
    case OperatorKind::runtime: return "cuda_runtime";
    case OperatorKind::kernel: return "kernel";
    case OperatorKind::memcpy: return "gpu_memcpy";
    case OperatorKind::memset: return "gpu_memset";
    case OperatorKind::other: break;
    }
    return "other";
}

bool on_a_device(OperatorKind kind) noexcept {
    return kind == OperatorKind::kernel || kind == OperatorKind::memcpy || kind == OperatorKind::memset;
}

std::string optimizer_of(const Ledger& ledger) {
    const auto option = ledger.fact(std::string{facts::option_prefix} + "optimizer");
    if (!option || option->empty())
        return "Optimizer";
    return *option == "adam" ? "Adam" : *option == "sgd" ? "SGD" : std::string{*option};
}

}   // namespace
}   // namespace drawpoint

template <>
struct fmt::formatter<drawpoint::Microseconds> : fmt::formatter<std::string_view> {
    auto format(drawpoint::Microseconds time, fmt::format_context& context) const {
        const auto magnitude =
            time.ns < 0 ? 0 - static_cast<std::uint64_t>(time.ns) : static_cast<std::uint64_t>(time.ns);
        return fmt::format_to(context.out(), "{}{}.{:03}", time.ns < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
    }
};

namespace drawpoint {
namespace {

class ChromeTrace {
public:
    ChromeTrace(const Ledger& ledger, std::ostream& out, const ChromeTraceOptions& options)
        : ledger_{ledger},
          options_{options},
          out_{out},
          names_{ledger.names},
          process_{process_of(ledger)},
          loop_tid_{loop_tid_of(ledger)},
          optimizer_{optimizer_of(ledger)},
          tid_of_call_(ledger.operators.size()) {
        for (const OperatorRow& call : ledger.operators)
            if (on_a_device(call.kind) && call.correlation != 0)
                kernels_.insert(call.correlation);
    }

    void write() {
        head();
        process();
        const std::uint64_t left_out = for_each_track(ledger_, [this](const Track& track) { write_track(track); });
        forward_backward_flows();
        loader_flows();
        counters();
        allocations();
        drops();
        window();
        out_.put("\n  ],\n");
        if (left_out != 0)
            out_.print("  \"drawpoint_left_out\": {},\n", left_out);
        out_.print("  \"traceName\": {}\n}}\n", json_string(options_.trace_name));
        out_.flush();
    }

private:
    [[nodiscard]] Microseconds time(std::int64_t at_ns) const noexcept {
        return {static_cast<std::int64_t>(wrapping_difference(at_ns, ledger_.start_ns))};
    }
    static Microseconds length(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
        return {static_cast<std::int64_t>(wrapping_difference(end_ns, begin_ns))};
    }

    // ---- the head ----

    void head() {
        out_.put("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n");
        bool distributed = false;
        std::string own;
        for (const auto& [key, value] : ledger_.facts)
            if (key.starts_with(facts::metadata_prefix)) {
                std::string name = key.substr(facts::metadata_prefix.size());
                distributed = distributed || name == "distributedInfo";
                const std::string text = metadata(name, value);
                if (std::find(own_keys.begin(), own_keys.end(), name) != own_keys.end())
                    name = "user." + name;
                out_.print("  {}: {},\n", json_string(name), text);
            } else {
                own += fmt::format("{}\n    {}: {}", own.empty() ? "" : ",", json_string(key), json_string(value));
            }
        if (!distributed)
            distributed_info();
        out_.print("  \"drawpoint\": {{{}\n  }},\n", own);
        out_.print("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": {},\n", base_ns());
        stack_frames();
        out_.put("  \"traceEvents\": [");
    }

    static std::string metadata(std::string_view name, std::string_view value) {
        if (!is_json(value))
            return json_string(value);
        // A reader looks for the rank in a line of its own, with a space before the number.
        return name == "distributedInfo" ? nlohmann::ordered_json::parse(value).dump(4) : std::string{value};
    }

    void distributed_info() {
        const auto rank = ledger_.fact(facts::rank);
        if (!rank || !is_json(*rank))
            return;
        out_.put("  \"distributedInfo\": {\n");
        if (const auto backend = ledger_.fact(facts::backend))
            out_.print("    \"backend\": {},\n", json_string(*backend));
        if (const auto size = ledger_.fact(facts::world_size); size && is_json(*size))
            out_.print("    \"world_size\": {},\n", *size);
        out_.print("    \"rank\": {}\n  }},\n", *rank);
    }

    [[nodiscard]] std::int64_t base_ns() const {
        const auto offset = ledger_.fact(facts::unix_offset_ns);
        std::int64_t ns = 0;
        if (offset && std::from_chars(offset->data(), offset->data() + offset->size(), ns).ec != std::errc{})
            ns = 0;
        return wrapping_sum(ledger_.start_ns, ns);
    }

    // ---- events ----

    /// What stands between two events.
    std::string_view next() { return std::exchange(first_, false) ? "\n    " : ",\n    "; }

    void meta(std::string_view name, std::string_view pid, std::uint64_t tid, std::string_view args) {
        out_.print(R"({}{{"ph": "M", "name": "{}", "ts": 0.000, "pid": {}, "tid": {}, "args": {{{}}}}})", next(), name,
                   pid, tid, args);
    }

    void process() {
        const std::string pid = std::to_string(process_);
        meta("process_name", pid, 0, fmt::format(R"("name": {})", json_string(process_name())));
        meta("process_labels", pid, 0, R"("labels": "CPU")");
        meta("process_sort_index", pid, 0, fmt::format(R"("sort_index": {})", process_));
        std::vector<std::int32_t> devices;
        for (const ThreadRow& thread : ledger_.threads)
            if (thread.device >= 0)
                devices.push_back(thread.device);
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        for (const std::int32_t device : devices) {
            const std::string number = std::to_string(device);
            meta("process_name", number, 0, fmt::format(R"("name": {})", json_string(process_name())));
            meta("process_labels", number, 0, fmt::format(R"("labels": "GPU {}")", device));
            meta("process_sort_index", number, 0, fmt::format(R"("sort_index": {})", first_device_rank + device));
        }
    }

    [[nodiscard]] std::string_view process_name() const {
        return ledger_.fact(facts::process_name).value_or("drawpoint");
    }

    void write_track(const Track& track) {
        const std::int64_t pid = track.device < 0 ? static_cast<std::int64_t>(process_) : track.device;
        meta("thread_name", std::to_string(pid), track.tid, fmt::format(R"("name": {})", json_string(track.name)));
        meta("thread_sort_index", std::to_string(pid), track.tid, fmt::format(R"("sort_index": {})", next_rank_++));
        std::vector<const TrackSlice*> open;   // around the slice at hand
        for (const TrackSlice& slice : track.slices) {
            while (!open.empty() && open.back()->end_ns <= slice.begin_ns)
                open.pop_back();
            write_slice(track, slice, pid, open);
            open.push_back(&slice);
        }
    }

    void write_slice(const Track& track, const TrackSlice& slice, std::int64_t pid,
                     const std::vector<const TrackSlice*>& around) {
        out_.print(R"({}{{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, )", next(),
                   category(slice), name(slice), pid, track.tid, time(slice.begin_ns),
                   length(slice.begin_ns, slice.end_ns));
        if (slice.kind == Kind::call && ledger_.operators[slice.row].stack < ledger_.stacks.size())
            out_.print(R"("sf": {}, )", ledger_.operators[slice.row].stack);
        out_.put(R"("args": {)");
        switch (slice.kind) {
        case Kind::pass: pass_args(ledger_.passes[slice.row]); break;
        case Kind::step: step_args(ledger_.steps[slice.row]); break;
        case Kind::draw: out_.print(R"("size": {})", ledger_.steps[slice.row].size); break;
        case Kind::end_of_data: out_.print(R"("epoch": {})", ledger_.ends_of_data[slice.row].epoch); break;
        case Kind::batch:
            batch_args(ledger_.batches[slice.row]);
            batch_tids_[slice.row] = track.tid;
            break;
        case Kind::sample:
            sample_args(ledger_.samples[slice.row]);
            sample_tids_[slice.row] = track.tid;
            break;
        case Kind::call: call_args(track, slice, around); break;
        case Kind::piece:
        case Kind::batch_piece:
        case Kind::stage: break;
        }
        out_.put("}}");
        if (slice.kind == Kind::call)
            device_flow(ledger_.operators[slice.row], track, slice, pid);
    }

    [[nodiscard]] std::string_view category(const TrackSlice& slice) const {
        // Readers count a loader's time only in this category; PyTorch's own traces have another.
        if (slice.kind == Kind::draw || (slice.kind == Kind::call && slice.name.starts_with("enumerate(DataLoader)#")))
            return "cpu_op";
        switch (slice.kind) {
        case Kind::call: return category_of(ledger_.operators[slice.row].kind);
        case Kind::batch:
        case Kind::batch_piece:
        case Kind::sample:
        case Kind::stage: return "dataloader";
        default: return "user_annotation";
        }
    }

    std::string name(const TrackSlice& slice) {
        switch (slice.kind) {
        case Kind::call: return std::string{names_.string(ledger_.operators[slice.row].name)};
        case Kind::step: return fmt::format("\"ProfilerStep#{}\"", ledger_.steps[slice.row].step);
        case Kind::draw: return "\"enumerate(DataLoader)#drawpoint.__next__\"";
        case Kind::piece:
            if (slice.name == name_of(Action::opt_step))
                return json_string(fmt::format("Optimizer.step#{}.step", optimizer_));
            if (slice.name == name_of(Action::zero_grad))
                return json_string(fmt::format("Optimizer.zero_grad#{}.zero_grad", optimizer_));
            [[fallthrough]];
        default: return json_string(slice.name);
        }
    }

    // ---- arguments ----

    void pass_args(const PassRow& row) {
        out_.print(R"("epoch": {})", row.epoch);
        if (!row.ended)
            out_.put(R"(, "ended": false)");
    }

    void step_args(const StepRow& row) {
        out_.print(R"("epoch": {}, "batch": {}, "phase": "{}", "status": "{}", "size": {})", row.epoch, row.batch,
                   name_of(row.phase), name_of(row.status), row.size);
        if (row.loss && std::isfinite(*row.loss))
            out_.print(R"(, "loss": {})", *row.loss);
    }

    void batch_args(const BatchRow& row) {
        constexpr std::array<std::string_view, 3> statuses{"taken", "abandoned", "failed"};
        out_.print(R"("epoch": {}, "batch": {}, "status": "{}", "size": {}, "bytes": {})", row.epoch, row.batch,
                   statuses[std::min<std::size_t>(static_cast<std::size_t>(row.status), 2)], row.size, row.bytes);
    }

    void sample_args(const SampleRow& row) {
        out_.print(R"("index": {}, "epoch": {}, "batch": {}, "slot": {}, "bytes": {}, "status": "{}")", row.index,
                   row.epoch, row.batch, row.slot, row.bytes,
                   row.status == SampleStatus::complete ? "complete" : "failed");
        if (row.samples != 1)
            out_.print(R"(, "samples": {})", row.samples);
        if (row.read_begin_ns != no_stamp && row.read_end_ns != no_stamp)
            out_.print(R"(, "read_ns": {})", wrapping_difference(row.read_end_ns, row.read_begin_ns));
        if (row.cpu_ns)
            out_.print(R"(, "cpu_ns": {})", *row.cpu_ns);
        if (row.run_queue_ns)
            out_.print(R"(, "run_queue_ns": {})", *row.run_queue_ns);
    }

    void call_args(const Track& track, const TrackSlice& slice, const std::vector<const TrackSlice*>& around) {
        const OperatorRow& row = ledger_.operators[slice.row];
        tid_of_call_[slice.row] = track.tid;
        std::uint64_t external = slice.row + 1;   // PyTorch counts from 1
        if (row.kind == OperatorKind::runtime) {
            external = enclosing(around, [](const OperatorRow& call) {
                return call.kind == OperatorKind::cpu_op || call.kind == OperatorKind::user_annotation;
            });
            if (row.correlation != 0)
                launched_by_[row.correlation] = external;
        } else if (on_a_device(row.kind)) {
            const auto launch = launched_by_.find(row.correlation);
            external = launch == launched_by_.end() ? 0 : launch->second;
        }
        out_.print(R"("External id": {})", external);
        if (row.sequence >= 0)
            out_.print(R"(, "Sequence number": {}, "Fwd thread id": {})", row.sequence, row.forward_thread);
        if (on_a_device(row.kind))
            out_.print(R"(, "device": {}, "stream": {})", track.device, ledger_.threads[row.thread].tid);
        if (on_a_device(row.kind) || row.kind == OperatorKind::runtime)
            out_.print(R"(, "correlation": {})", row.correlation);
        if (row.kind == OperatorKind::python_function)
            out_.print(R"(, "Python id": {}, "Python parent id": {})", slice.row + 1,
                       enclosing_or_null(
                           around, [](const OperatorRow& call) { return call.kind == OperatorKind::python_function; }));
        if (row.flops != 0)
            out_.print(R"(, "flops": {})", row.flops);
        if (row.shapes != nothing)
            out_.print(R"(, "Input Dims": {})", names_.array(row.shapes));
        if (!row.ended)
            out_.put(R"(, "ended": false)");
        out_.print(R"(, "Ev Idx": {})", slice.row);
    }

    /// The number of the innermost call around that `is_it`, or 0.
    template <class Is>
    std::uint64_t enclosing(const std::vector<const TrackSlice*>& around, Is is_it) const {
        for (auto slice = around.rbegin(); slice != around.rend(); ++slice)
            if ((*slice)->kind == Kind::call && is_it(ledger_.operators[(*slice)->row]))
                return (*slice)->row + std::uint64_t{1};
        return 0;
    }
    template <class Is>
    std::string enclosing_or_null(const std::vector<const TrackSlice*>& around, Is is_it) const {
        const std::uint64_t number = enclosing(around, is_it);
        return number == 0 ? "null" : std::to_string(number);
    }

    /// Each stack once, as Chrome has it: an event names its innermost frame, a frame its parent.
    void stack_frames() {
        std::vector<bool> named(ledger_.stacks.size());   // by an operator, or by what is named
        for (const OperatorRow& row : ledger_.operators)
            for (std::uint32_t at = row.stack; at < named.size() && !named[at]; at = ledger_.stacks[at].parent)
                named[at] = true;
        if (std::ranges::find(named, true) == named.end())
            return;
        const auto name = [&](std::uint32_t position) {
            return position < ledger_.names.size() ? std::string_view{ledger_.names[position]} : std::string_view{};
        };
        out_.put("  \"stackFrames\": {");
        bool first = true;
        for (std::size_t i = 0; i < named.size(); ++i) {
            if (!named[i])
                continue;
            const StackRow& stack = ledger_.stacks[i];
            std::string text;
            if (stack.frame < ledger_.frames.size()) {
                const FrameRow& frame = ledger_.frames[stack.frame];
                text = frame.file == nothing
                           ? std::string{name(frame.function)}
                           : fmt::format("{}({}): {}", name(frame.file), frame.line, name(frame.function));
            }
            out_.print(R"({}"{}": {{"category": "", "name": {})", std::exchange(first, false) ? "\n    " : ",\n    ", i,
                       json_string(text));
            if (stack.parent != nothing)
                out_.print(R"(, "parent": "{}")", stack.parent);
            out_.put("}");
        }
        out_.put("\n  },\n");
    }

    // ---- flows ----

    void flow(std::string_view end, std::string_view category, std::uint64_t id, std::int64_t pid, std::uint64_t tid,
              std::int64_t at_ns) {
        out_.print(R"({}{{"ph": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}, "cat": "{}", "name": "{}"{}}})", next(),
                   end, id, pid, tid, time(at_ns), category, category, end == "f" ? R"(, "bp": "e")" : "");
    }

    void host_flow(std::string_view category, std::uint64_t from_tid, std::int64_t from_ns, std::uint64_t to_tid,
                   std::int64_t to_ns) {
        if (to_ns < from_ns)   // readers lose a flow that ends before it begins
            return;
        const std::uint64_t id = next_flow_++;
        const auto pid = static_cast<std::int64_t>(process_);
        flow("s", category, id, pid, from_tid, from_ns);
        flow("f", category, id, pid, to_tid, to_ns);
    }

    void device_flow(const OperatorRow& row, const Track& track, const TrackSlice& slice, std::int64_t pid) {
        if (row.correlation == 0)
            return;
        if (row.kind == OperatorKind::runtime && kernels_.contains(row.correlation)) {
            if (const auto [at, is_new] = device_flows_.try_emplace(row.correlation, next_flow_); is_new) {
                ++next_flow_;
                flow("s", "ac2g", at->second, pid, track.tid, slice.begin_ns);
            }
        } else if (on_a_device(row.kind)) {
            if (const auto at = device_flows_.find(row.correlation); at != device_flows_.end())
                flow("f", "ac2g", at->second, pid, track.tid, slice.begin_ns);
        }
    }

    /// Of the calls that share a sequence number the last begun are linked, as Kineto does: the innermost of the forward ones
    /// with the innermost of the backward ones.
    void forward_backward_flows() {
        std::map<std::int64_t, std::uint32_t> forward;
        std::map<std::pair<std::int64_t, std::uint64_t>, std::uint32_t> backward;
        const auto keep_last = [&](auto& calls, auto key, std::uint32_t row) {
            const auto [at, is_new] = calls.try_emplace(key, row);
            if (!is_new && ledger_.operators[row].begin_ns >= ledger_.operators[at->second].begin_ns)
                at->second = row;
        };
        for (std::uint32_t i = 0; i < ledger_.operators.size(); ++i) {
            const OperatorRow& call = ledger_.operators[i];
            if (call.sequence < 0 || !tid_of_call_[i])
                continue;
            if (call.forward_thread == 0)
                keep_last(forward, call.sequence, i);
            else
                keep_last(backward, std::pair{call.sequence, call.forward_thread}, i);
        }
        for (const auto& [key, to] : backward)
            if (const auto from = forward.find(key.first); from != forward.end())
                host_flow("fwdbwd", *tid_of_call_[from->second], ledger_.operators[from->second].begin_ns,
                          *tid_of_call_[to], ledger_.operators[to].begin_ns);
    }

    /// Sample → batch → the step whose draw took it.
    void loader_flows() {
        std::map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>, std::uint32_t> batches;
        for (const auto& [row, tid] : batch_tids_) {
            const BatchRow& batch = ledger_.batches[row];
            batches[{batch.pipeline, batch.epoch, batch.batch}] = row;
            if (batch.status != BatchStatus::taken || batch.taken_ns == no_stamp || batch.offered_ns == no_stamp)
                continue;
            const auto next =
                std::upper_bound(ledger_.steps.begin(), ledger_.steps.end(), batch.taken_ns,
                                 [](std::int64_t at, const StepRow& step) { return at < step.draw_begin_ns; });
            if (next == ledger_.steps.begin())
                continue;
            const StepRow& step = *std::prev(next);
            const std::int64_t last_ns = step.draw_begin_ns + step.draw_ns + step.batch_ns - 1;
            if (batch.taken_ns <= last_ns)
                host_flow("dataloader", tid, inside(batch.offered_ns, *life_of(batch)), loop_tid_, batch.taken_ns);
        }
        for (const auto& [row, tid] : sample_tids_) {
            const SampleRow& sample = ledger_.samples[row];
            const auto batch = batches.find({sample.pipeline, sample.epoch, sample.batch});
            if (batch != batches.end())
                host_flow("dataloader", tid, sample.begin_ns, batch_tids_[batch->second],
                          inside(end_of(ledger_, sample), *life_of(ledger_.batches[batch->second])));
        }
    }

    /// Where an arrow touches a slice: the slice's last moment is no longer in it.
    static std::int64_t inside(std::int64_t at_ns, std::pair<std::int64_t, std::int64_t> slice) noexcept {
        return std::max(slice.first, std::min(at_ns, slice.second - 1));
    }

    // ---- the rest ----

    void counters() {
        std::vector<std::pair<std::int64_t, std::uint32_t>> ready;
        for (const BatchRow& batch : ledger_.batches)
            if (batch.taken_ns != no_stamp && batch.status != BatchStatus::abandoned)
                ready.emplace_back(batch.taken_ns, batch.ready_batches);
        std::sort(ready.begin(), ready.end());
        for (const auto& [at_ns, count] : ready)
            out_.print(
                R"({}{{"ph": "C", "name": "ready_batches", "pid": {}, "tid": 0, "ts": {}, "args": {{"count": {}}}}})",
                next(), process_, time(at_ns), count);
    }

    void allocations() {
        for (const AllocationRow& row : ledger_.allocations)
            out_.print(
                R"({}{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {}, "tid": {}, "ts": {}, )"
                R"("args": {{"Total Reserved": 0, "Total Allocated": {}, "Bytes": {}, "Addr": {}, "Device Id": {}, )"
                R"("Device Type": {}}}}})",
                next(), process_, row.thread < ledger_.threads.size() ? ledger_.threads[row.thread].tid : process_,
                time(row.at_ns), row.total_allocated, row.bytes, row.address, row.device, row.device < 0 ? 0 : 1);
    }

    void drops() {
        for (const DroppedRow& row : ledger_.dropped)
            out_.print(R"({}{{"ph": "i", "s": "p", "name": "records dropped", "pid": {}, "tid": {}, "ts": {}, )"
                       R"("args": {{"records": {}, "over_ns": {}, "ring": {}}}}})",
                       next(), process_, loop_tid_, time(row.to_ns), row.records, row.to_ns - row.from_ns, row.ring);
    }

    /// The recording's own span and marks, called what readers look for.
    void window() {
        std::int64_t end_ns = ledger_.start_ns;
        const auto reach = [&](std::int64_t at_ns) { end_ns = std::max(end_ns, at_ns); };
        for (const PassRow& row : ledger_.passes)
            reach(row.end_ns);
        for (const StepRow& row : ledger_.steps)
            reach(wrapping_sum(row.draw_begin_ns, row.draw_ns + row.batch_ns));
        for (const OperatorRow& row : ledger_.operators)
            reach(wrapping_sum(row.begin_ns, row.ns));
        for (const SampleRow& row : ledger_.samples)
            reach(end_of(ledger_, row));
        for (const BatchRow& row : ledger_.batches)
            if (const auto life = life_of(row))
                reach(life->second);
        out_.print(R"-({}{{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", )-"
                   R"("tid": "PyTorch Profiler", "ts": {}, "dur": {}, "args": {{"Op count": {}}}}})",
                   next(), time(ledger_.start_ns), length(ledger_.start_ns, end_ns), ledger_.operators.size());
        meta("process_sort_index", "\"Spans\"", 0, fmt::format(R"("sort_index": {})", spans_rank));
        out_.print(R"({}{{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", )"
                   R"("tid": "Trace PyTorch Profiler", "ts": {}}})",
                   next(), time(ledger_.start_ns));
        out_.print(R"({}{{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": {}}})", next(),
                   time(end_ns));
    }

    const Ledger& ledger_;
    const ChromeTraceOptions& options_;
    TextStream out_;
    JsonTexts names_;
    std::uint64_t process_, loop_tid_;
    std::string optimizer_;
    bool first_ = true;
    std::uint64_t next_flow_ = 1;
    int next_rank_ = 0;
    std::vector<std::optional<std::uint64_t>> tid_of_call_;   // absent: left out
    std::map<std::uint32_t, std::uint64_t> batch_tids_;       // of those shown
    std::map<std::uint32_t, std::uint64_t> sample_tids_;
    std::unordered_set<std::uint64_t> kernels_;                                     // correlations
    std::unordered_map<std::uint64_t, std::uint64_t> launched_by_, device_flows_;   // by correlation
};

}   // namespace

void write_chrome_trace(const Ledger& ledger, std::ostream& out, const ChromeTraceOptions& options) {
    ChromeTrace{ledger, out, options}.write();
}

}   // namespace drawpoint
