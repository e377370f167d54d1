#include <drawpoint/instrumentation/export/chrome.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/export/chrome_events.hpp"
#include "instrumentation/export/chrome_flows.hpp"
#include "instrumentation/export/chrome_head.hpp"
#include "instrumentation/export/json_text.hpp"
#include "instrumentation/export/text_stream.hpp"
#include "instrumentation/host/host_use.hpp"
#include "instrumentation/export/tracks.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

using Kind = TrackSlice::Kind;

// Kineto's sort indices: devices come after all processes, Kineto's own spans after those.
constexpr std::int64_t first_device_rank = 5'000'000, spans_rank = 536'870'912;

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

std::string optimizer_of(const Ledger& ledger) {
    const auto option = ledger.fact(std::string{facts::option_prefix} + "optimizer");
    if (!option || option->empty())
        return "Optimizer";
    return *option == "adam" ? "Adam" : *option == "sgd" ? "SGD" : std::string{*option};
}

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
          events_{ledger, out_},
          flows_{ledger, events_, process_, loop_tid_} {}

    void write() {
        write_chrome_head(ledger_, out_);
        process();
        const std::uint64_t left_out = for_each_track(ledger_, [this](const Track& track) { write_track(track); });
        flows_.forward_backward();
        flows_.loader();
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
    void process() {
        const std::string pid = std::to_string(process_);
        events_.meta("process_name", pid, 0, fmt::format(R"("name": {})", json_string(process_name())));
        events_.meta("process_labels", pid, 0, R"("labels": "CPU")");
        events_.meta("process_sort_index", pid, 0, fmt::format(R"("sort_index": {})", process_));
        std::vector<std::int32_t> devices;
        for (const ThreadRow& thread : ledger_.threads)
            if (thread.device >= 0)
                devices.push_back(thread.device);
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        for (const std::int32_t device : devices) {
            const std::string number = std::to_string(device);
            events_.meta("process_name", number, 0, fmt::format(R"("name": {})", json_string(process_name())));
            events_.meta("process_labels", number, 0, fmt::format(R"("labels": "GPU {}")", device));
            events_.meta("process_sort_index", number, 0,
                         fmt::format(R"("sort_index": {})", first_device_rank + device));
        }
    }

    [[nodiscard]] std::string_view process_name() const {
        return ledger_.fact(facts::process_name).value_or("drawpoint");
    }

    void write_track(const Track& track) {
        const std::int64_t pid = track.device < 0 ? static_cast<std::int64_t>(process_) : track.device;
        events_.meta("thread_name", std::to_string(pid), track.tid,
                     fmt::format(R"("name": {})", json_string(track.name)));
        events_.meta("thread_sort_index", std::to_string(pid), track.tid,
                     fmt::format(R"("sort_index": {})", next_rank_++));
        std::vector<const TrackSlice*> open;   // the slices around the current one
        for (const TrackSlice& slice : track.slices) {
            while (!open.empty() && open.back()->end_ns <= slice.begin_ns)
                open.pop_back();
            write_slice(track, slice, pid, open);
            open.push_back(&slice);
        }
    }

    void write_slice(const Track& track, const TrackSlice& slice, std::int64_t pid,
                     const std::vector<const TrackSlice*>& around) {
        out_.print(R"({}{{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, )",
                   events_.next(), category(slice), name(slice), pid, track.tid, events_.time(slice.begin_ns),
                   ChromeEvents::length(slice.begin_ns, slice.end_ns));
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
            flows_.shows_batch(slice.row, track.tid);
            break;
        case Kind::sample:
            sample_args(ledger_.samples[slice.row]);
            flows_.shows_sample(slice.row, track.tid);
            break;
        case Kind::device_step: out_.print(R"("step": {})", ledger_.device_steps[slice.row].step); break;
        case Kind::copy: copy_args(ledger_.transfers[slice.row]); break;
        case Kind::call: call_args(track, slice, around); break;
        case Kind::piece:
        case Kind::batch_piece:
        case Kind::stage: break;
        }
        out_.put("}}");
        if (slice.kind == Kind::call)
            flows_.device(ledger_.operators[slice.row], pid, track.tid, slice.begin_ns);
    }

    [[nodiscard]] std::string_view category(const TrackSlice& slice) const {
        // Readers count a loader's time only in this category, although PyTorch's own traces have another.
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

    void copy_args(const TransferRow& row) {
        out_.print(R"("epoch": {}, "batch": {}, "bytes": {})", row.epoch, row.batch, row.bytes);
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
        if (row.read_cpu_ns != no_stamp)
            out_.print(R"(, "read_cpu_ns": {})", row.read_cpu_ns);
        if (row.read_run_queue_ns != no_stamp)
            out_.print(R"(, "read_run_queue_ns": {})", row.read_run_queue_ns);
        if (row.cpu_ns)
            out_.print(R"(, "cpu_ns": {})", *row.cpu_ns);
        if (row.run_queue_ns)
            out_.print(R"(, "run_queue_ns": {})", *row.run_queue_ns);
    }

    void call_args(const Track& track, const TrackSlice& slice, const std::vector<const TrackSlice*>& around) {
        const OperatorRow& row = ledger_.operators[slice.row];
        flows_.shows_call(slice.row, track.tid);
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

    /// The number of the innermost enclosing call for which `is_it` is true, or 0.
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
                events_.next(), process_, events_.time(at_ns), count);
        for (std::size_t i = 1; i < ledger_.host.size(); ++i) {
            const HostUse use = host_use(ledger_.host[i - 1], ledger_.host[i]);
            out_.print(
                R"({}{{"ph": "C", "name": "cpu_percent", "pid": {}, "tid": 0, "ts": {}, "args": {{"own": {}, "others": {}}}}})",
                events_.next(), process_, events_.time(ledger_.host[i].at_ns), use.own, use.others);
        }
    }

    void allocations() {
        for (const AllocationRow& row : ledger_.allocations)
            out_.print(
                R"({}{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {}, "tid": {}, "ts": {}, )"
                R"("args": {{"Total Reserved": 0, "Total Allocated": {}, "Bytes": {}, "Addr": {}, "Device Id": {}, )"
                R"("Device Type": {}}}}})",
                events_.next(), process_,
                row.thread < ledger_.threads.size() ? ledger_.threads[row.thread].tid : process_,
                events_.time(row.at_ns), row.total_allocated, row.bytes, row.address, row.device,
                row.device < 0 ? 0 : 1);
    }

    void drops() {
        for (const DroppedRow& row : ledger_.dropped)
            out_.print(R"({}{{"ph": "i", "s": "p", "name": "records dropped", "pid": {}, "tid": {}, "ts": {}, )"
                       R"("args": {{"records": {}, "over_ns": {}, "ring": {}}}}})",
                       events_.next(), process_, loop_tid_, events_.time(row.to_ns), row.records,
                       row.to_ns - row.from_ns, row.ring);
    }

    /// Writes the recording's own span and marks, with the names that readers look for.
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
                   events_.next(), events_.time(ledger_.start_ns), ChromeEvents::length(ledger_.start_ns, end_ns),
                   ledger_.operators.size());
        events_.meta("process_sort_index", "\"Spans\"", 0, fmt::format(R"("sort_index": {})", spans_rank));
        out_.print(R"({}{{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", )"
                   R"("tid": "Trace PyTorch Profiler", "ts": {}}})",
                   events_.next(), events_.time(ledger_.start_ns));
        out_.print(R"({}{{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": {}}})",
                   events_.next(), events_.time(end_ns));
    }

    const Ledger& ledger_;
    const ChromeTraceOptions& options_;
    TextStream out_;
    JsonTexts names_;
    std::uint64_t process_, loop_tid_;
    std::string optimizer_;
    ChromeEvents events_;
    ChromeFlows flows_;
    int next_rank_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> launched_by_;   // correlation -> number of the enclosing call
};

}   // namespace

void write_chrome_trace(const Ledger& ledger, std::ostream& out, const ChromeTraceOptions& options) {
    ChromeTrace{ledger, out, options}.write();
}

}   // namespace drawpoint
