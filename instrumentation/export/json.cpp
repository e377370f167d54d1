#include <drawpoint/instrumentation/export/json.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include "instrumentation/export/text_stream.hpp"
#include "instrumentation/host/host_columns.hpp"

namespace drawpoint {
namespace {

constexpr std::string_view name_of(BatchStatus status) noexcept {
    return status == BatchStatus::taken ? "taken" : status == BatchStatus::abandoned ? "abandoned" : "failed";
}
constexpr std::string_view name_of(SampleStatus status) noexcept {
    return status == SampleStatus::complete ? "complete" : "failed";
}
constexpr std::string_view name_of(OperatorKind kind) noexcept {
    switch (kind) {
    case OperatorKind::cpu_op: return "cpu_op";
    case OperatorKind::user_annotation: return "user_annotation";
    case OperatorKind::python_function: return "python_function";
    case OperatorKind::runtime: return "runtime";
    case OperatorKind::kernel: return "kernel";
    case OperatorKind::memcpy: return "memcpy";
    case OperatorKind::memset: return "memset";
    case OperatorKind::other: break;
    }
    return "other";
}

/// A position in another column, null where it is `nothing`.
struct Position {
    std::uint32_t value;
};
/// A stamp, null where it is `no_stamp`.
struct Stamp {
    std::int64_t ns;
};

class LedgerJson {
public:
    LedgerJson(const Ledger& ledger, std::ostream& out) : ledger_{ledger}, out_{out} {}

    void write() {
        head();
        column("pipelines", ledger_.pipelines, [this](const PipelineRow& row) {
            field("name", row.name);
            nested("stages", row.stages, [this](const std::string& stage) { out_.put(json_string(stage)); });
            field("batch_size", row.batch_size);
            field("num_workers", row.num_workers);
            field("prefetch_depth", row.prefetch_depth);
            field("max_overtakes",
                  row.max_overtakes == any_order ? std::nullopt : std::optional<std::int64_t>{row.max_overtakes});
            field("read_concurrency", row.read_concurrency);
            field("memory_budget", row.memory_budget);
        });
        column("passes", ledger_.passes, [this](const PassRow& row) {
            field("kind", drawpoint::name_of(row.kind));
            field("epoch", row.epoch);
            field("begin_ns", row.begin_ns);
            field("end_ns", row.end_ns);
            field("ended", row.ended);
            spans(ledger_.spans_of(row));
        });
        column("steps", ledger_.steps, [this](const StepRow& row) {
            field("step", row.step);
            field("epoch", row.epoch);
            field("batch", row.batch);
            field("phase", drawpoint::name_of(row.phase));
            field("status", drawpoint::name_of(row.status));
            field("size", row.size);
            field("draw_begin_ns", row.draw_begin_ns);
            field("draw_ns", row.draw_ns);
            field("batch_ns", row.batch_ns);
            field("loss", row.loss);
            field("cpu_ns", row.cpu_ns);
            field("run_queue_ns", row.run_queue_ns);
            field("between_run_queue_ns", row.between_run_queue_ns);
            spans(ledger_.spans_of(row));
        });
        column("ends_of_data", ledger_.ends_of_data, [this](const EndOfDataRow& row) {
            field("epoch", row.epoch);
            field("phase", drawpoint::name_of(row.phase));
            field("begin_ns", row.begin_ns);
            field("ns", row.ns);
        });
        column("batches", ledger_.batches, [this](const BatchRow& row) {
            field("epoch", row.epoch);
            field("batch", row.batch);
            field("slot", row.slot);
            field("pipeline", row.pipeline);
            field("status", name_of(row.status));
            field("size", row.size);
            field("bytes", row.bytes);
            field("ready_batches", row.ready_batches);
            field("admitted_ns", Stamp{row.admitted_ns});
            field("first_claim_ns", Stamp{row.first_claim_ns});
            field("last_done_ns", Stamp{row.last_done_ns});
            field("collate_begin_ns", Stamp{row.collate_begin_ns});
            field("collate_end_ns", Stamp{row.collate_end_ns});
            field("collate_worker",
                  row.collate_worker ? std::optional<std::int64_t>{*row.collate_worker} : std::nullopt);
            field("transfer_issue_ns", Stamp{row.transfer_issue_ns});
            field("transfer_done_ns", Stamp{row.transfer_done_ns});
            field("offered_ns", Stamp{row.offered_ns});
            field("taken_ns", Stamp{row.taken_ns});
        });
        column("samples", ledger_.samples, [this](const SampleRow& row) {
            field("index", row.index);
            field("epoch", row.epoch);
            field("batch", row.batch);
            field("slot", row.slot);
            field("samples", row.samples);
            field("worker", row.worker);
            field("pipeline", row.pipeline);
            field("status", name_of(row.status));
            field("bytes", row.bytes);
            field("begin_ns", row.begin_ns);
            field("read_begin_ns", Stamp{row.read_begin_ns});
            field("read_end_ns", Stamp{row.read_end_ns});
            field("read_cpu_ns", Stamp{row.read_cpu_ns});
            field("read_run_queue_ns", Stamp{row.read_run_queue_ns});
            field("cpu_ns", row.cpu_ns);
            field("run_queue_ns", row.run_queue_ns);
            nested("stages", ledger_.stages_of(row), [this](const StageRow& stage) {
                out_.print(R"({{"begin_ns": {}, "ns": {}, "cpu_ns": )", stage.begin_ns, stage.ns);
                stage.cpu_ns == no_stamp ? out_.put("null}") : out_.print("{}}}", stage.cpu_ns);
            });
        });
        column("failures", ledger_.failures, [this](const FailureRow& row) {
            field("index", row.index);
            field("epoch", row.epoch);
            field("batch", row.batch);
            field("pipeline", row.pipeline);
            field("path", row.path);
            field("stage", row.stage);
            field("message", row.message);
        });
        column("settings", ledger_.settings, [this](const SettingRow& row) {
            field("at_ns", row.at_ns);
            field("pipeline", row.pipeline);
            field("num_workers", row.num_workers);
            field("prefetch_depth", row.prefetch_depth);
            field("max_overtakes",
                  row.max_overtakes == any_order ? std::nullopt : std::optional<std::int64_t>{row.max_overtakes});
            field("read_concurrency", row.read_concurrency);
            field("memory_budget", row.memory_budget);
        });
        column("host", ledger_.host, [this](const HostRow& row) {
            field("at_ns", row.at_ns);
            for (const HostColumn& column : host_columns)
                field(column.name, Stamp{row.*column.value});
        });
        column("dropped", ledger_.dropped, [this](const DroppedRow& row) {
            field("records", row.records);
            field("from_ns", row.from_ns);
            field("to_ns", row.to_ns);
            field("ring", row.ring);
        });
        column("thinnings", ledger_.thinnings, [this](const ThinningRow& row) {
            field("at_ns", row.at_ns);
            field("slices_every", row.slices_every);
            field("samples_every", row.samples_every);
        });
        out_.put(",\n  ");
        list("names", ledger_.names, [this](const std::string& name) { out_.put(json_string(name)); });
        column("threads", ledger_.threads, [this](const ThreadRow& row) {
            field("tid", row.tid);
            field("name", row.name);
            field("device", row.device);
        });
        column("operators", ledger_.operators, [this](const OperatorRow& row) {
            field("kind", name_of(row.kind));
            field("ended", row.ended);
            field("name", Position{row.name});
            field("thread", Position{row.thread});
            field("shapes", Position{row.shapes});
            field("stack", Position{row.stack});
            field("begin_ns", row.begin_ns);
            field("ns", row.ns);
            field("sequence", row.sequence < 0 ? std::nullopt : std::optional{row.sequence});
            field("forward_thread", row.forward_thread);
            field("flops", row.flops);
            field("correlation", row.correlation);
        });
        column("allocations", ledger_.allocations, [this](const AllocationRow& row) {
            field("at_ns", row.at_ns);
            field("thread", Position{row.thread});
            field("device", row.device);
            field("bytes", row.bytes);
            field("address", row.address);
            field("total_allocated_bytes", row.total_allocated);
        });
        column("frames", ledger_.frames, [this](const FrameRow& row) {
            field("function", Position{row.function});
            field("file", Position{row.file});
            field("line", row.line);
        });
        column("stacks", ledger_.stacks, [this](const StackRow& row) {
            field("parent", Position{row.parent});
            field("frame", Position{row.frame});
        });
        column("stack_samples", ledger_.stack_samples, [this](const StackSampleRow& row) {
            field("at_ns", row.at_ns);
            field("thread", Position{row.thread});
            field("stack", Position{row.stack});
            field("weight_ns", row.weight_ns);
        });
        folded();
        out_.put("\n}\n");
        out_.flush();
    }

private:
    /// What every document begins with, then the run's start and its facts.
    void head() {
        const auto text = [this](std::string_view key) { return std::string{ledger_.fact(key).value_or("")}; };
        Machine machine{.cpu = text(facts::machine_cpu),
                        .kernel = text(facts::machine_kernel),
                        .compiler = text(facts::machine_compiler)};
        const std::string cores = text(facts::machine_cores);
        std::int64_t number = 0;
        if (std::from_chars(cores.data(), cores.data() + cores.size(), number).ec == std::errc{})
            machine.cores_usable = number;
        for (const auto& [key, value] : ledger_.facts)
            if (key.starts_with(facts::machine_library_prefix))
                machine.libraries.emplace_back(key.substr(facts::machine_library_prefix.size()), value);
        std::string document = json_text(json_document(
            "drawpoint.ledger/1", {.version = text(facts::version), .command = text(facts::command)}, machine));
        document.resize(document.rfind('\n', document.rfind('}')));   // the rest follows
        out_.put(document);
        out_.print(",\n  \"start_ns\": {},\n  \"facts\": {{", ledger_.start_ns);
        bool first = true;
        for (const auto& [key, value] : ledger_.facts)
            out_.print("{}\n    {}: {}", std::exchange(first, false) ? "" : ",", json_string(key), json_string(value));
        out_.put("\n  }");
    }

    /// What is left of the rows that are in no column.
    void folded() {
        out_.put(",\n  \"folded\": {");
        first_field_ = true;
        field("steps", ledger_.folded.steps);
        field("failed", ledger_.folded.failed);
        field("not_drawn", ledger_.folded.not_drawn);
        field("samples", ledger_.folded.samples);
        field("until_ns", Stamp{ledger_.folded.until_ns});
        field("draws_ns", ledger_.folded.draws_ns);
        field("batches_ns", ledger_.folded.batches_ns);
        out_.put("}");
    }

    template <class Rows, class Write>
    void list(std::string_view name, const Rows& rows, Write write_row) {
        out_.print("\"{}\": [", name);
        bool first = true;
        for (const auto& row : rows) {
            out_.put(std::exchange(first, false) ? "\n    " : ",\n    ");
            write_row(row);
        }
        out_.put("]");
    }
    template <class Rows, class Write>
    void column(std::string_view name, const Rows& rows, Write write_fields) {
        out_.put(",\n  ");
        list(name, rows, [&](const auto& row) {
            first_field_ = true;
            out_.put("{");
            write_fields(row);
            out_.put("}");
        });
    }
    template <class Rows, class Write>
    void nested(std::string_view name, const Rows& rows, Write write_row) {
        key(name);
        out_.put("[");
        bool first = true;
        for (const auto& row : rows) {
            out_.put(std::exchange(first, false) ? "" : ", ");
            write_row(row);
        }
        out_.put("]");
    }
    void spans(std::span<const SpanRow> pieces) {
        nested("spans", pieces, [this](const SpanRow& piece) {
            out_.print(R"({{"span": "{}", "begin_ns": {}, "ns": {}}})", drawpoint::name_of(piece.span), piece.begin_ns,
                       piece.ns);
        });
    }

    void key(std::string_view name) { out_.print("{}\"{}\": ", std::exchange(first_field_, false) ? "" : ", ", name); }

    template <std::integral T>
    void field(std::string_view name, T value) {
        key(name);
        out_.print("{}", value);
    }
    void field(std::string_view name, std::string_view text) {
        key(name);
        out_.put(json_string(text));
    }
    void field(std::string_view name, Position position) {
        position.value == nothing ? null(name) : field(name, position.value);
    }
    void field(std::string_view name, Stamp stamp) { stamp.ns == no_stamp ? null(name) : field(name, stamp.ns); }
    void field(std::string_view name, const std::optional<std::int64_t>& value) {
        value ? field(name, *value) : null(name);
    }
    void field(std::string_view name, const std::optional<double>& value) {
        if (!value || !std::isfinite(*value))
            return null(name);
        key(name);
        out_.print("{}", *value);
    }
    void null(std::string_view name) {
        key(name);
        out_.put("null");
    }

    const Ledger& ledger_;
    TextStream out_;
    bool first_field_ = true;
};

}   // namespace

void write_json_ledger(const Ledger& ledger, std::ostream& out) { LedgerJson{ledger, out}.write(); }

}   // namespace drawpoint
