#include "instrumentation/recorder/write_all.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

/// A row of the loop or of a loader, to be written in the order of time.
struct Event {
    /// In the order of events at the same time: a pass ends before the next begins, but not before it has begun itself.
    enum Kind : std::uint8_t { pass_end, pass_begin, sample, batch, step, end_of_data, end_of_empty_pass };
    std::int64_t at_ns = 0;
    Kind kind{};
    std::size_t row = 0;
};

class AllWriter {
public:
    AllWriter(const LedgerBuilder& from, TraceWriter& to, std::int64_t now_ns)
        : from_{from}, rows_{from.rows()}, to_{to}, now_ns_{now_ns} {}

    void write() {
        if (rows_.folded.until_ns != no_stamp)
            to_.folded(rows_.folded);
        for (const PipelineRow& row : rows_.pipelines)
            to_.pipeline(row, rows_.start_ns);
        for (const SettingRow& row : rows_.settings)
            to_.setting(row);
        for (const OrderRow& row : rows_.orders)
            to_.order(row);
        for (const TransferRow& row : rows_.transfers)
            to_.transfer(row);
        for (const DeviceStepRow& row : rows_.device_steps)
            to_.device_step(row);
        for (const DroppedRow& row : rows_.dropped)
            to_.dropped(row);
        for (const FailureRow& row : rows_.failures)
            to_.failure(row, now_ns_);
        for (const auto& [key, value] : rows_.facts)
            to_.fact(key, value, now_ns_);
        for (const HostRow& row : rows_.host)
            to_.host(row);
        to_.definitions({rows_.names, rows_.threads, rows_.frames, rows_.stacks, {}});
        operators();
        for (const AllocationRow& row : rows_.allocations)
            to_.allocation(row);
        for (const StackSampleRow& row : rows_.stack_samples)
            to_.stack_sample(row);
        loop_and_loaders();
    }

private:
    /// Writes begins and ends so that each end is that of its thread's innermost operator.
    void operators() {
        std::vector<std::vector<const OperatorRow*>> begun(rows_.threads.size());
        std::vector<bool> open(rows_.operators.size());
        for (const auto& of_thread : from_.open_operators())
            for (const std::size_t row : of_thread)
                open[row] = true;
        const auto end_last = [&](std::vector<const OperatorRow*>& of_thread) {
            const OperatorRow& row = *of_thread.back();
            to_.operator_end(row.thread, wrapping_sum(row.begin_ns, row.ns), !row.ended);
            of_thread.pop_back();
        };
        for (std::size_t i = 0; i < rows_.operators.size(); ++i) {
            const OperatorRow& row = rows_.operators[i];
            std::vector<const OperatorRow*>& around = begun[row.thread];
            while (!around.empty() &&
                   (open[i] || wrapping_sum(around.back()->begin_ns, around.back()->ns) <= row.begin_ns))
                end_last(around);
            to_.operator_begin(row);
            if (!open[i])
                around.push_back(&row);
        }
        for (auto& of_thread : begun)
            while (!of_thread.empty())
                end_last(of_thread);
    }

    /// Adds the rows' events in the rows' order, each with the latest time so far.
    template <class Rows, class Time>
    void add(Event::Kind kind, const Rows& rows, Time time) {
        std::int64_t reached_ns = no_stamp;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            reached_ns = std::max(reached_ns, time(rows[i]));
            events_.push_back({reached_ns, kind, i});
        }
    }

    /// Samples keep the order of their workers.
    void add_samples() {
        std::vector<std::int64_t> reached_ns;
        for (std::size_t i = 0; i < rows_.samples.size(); ++i) {
            const SampleRow& row = rows_.samples[i];
            if (reached_ns.size() <= row.worker)
                reached_ns.resize(row.worker + 1u, no_stamp);
            reached_ns[row.worker] = std::max(reached_ns[row.worker], row.begin_ns);
            events_.push_back({reached_ns[row.worker], Event::sample, i});
        }
    }

    void batch(const BatchRow& row) {
        if (row.collate_worker && row.collate_begin_ns != no_stamp && row.collate_end_ns != no_stamp)
            to_.collate(*row.collate_worker, row.collate_begin_ns, row.collate_end_ns);
        to_.batch(row);
    }

    void loop_and_loaders() {
        std::vector<PassRow> passes = rows_.passes;
        passes.insert(passes.end(), from_.open_passes().begin(), from_.open_passes().end());
        std::ranges::stable_sort(passes, {}, [](const PassRow& row) { return std::tuple{row.begin_ns, row.kind}; });
        add(Event::pass_begin, passes, [](const PassRow& row) { return row.begin_ns; });
        add_samples();
        add(Event::batch, rows_.batches,
            [](const BatchRow& row) { return row.taken_ns != no_stamp ? row.taken_ns : row.admitted_ns; });
        add(Event::step, rows_.steps, [](const StepRow& row) { return wrapping_sum(row.draw_begin_ns, row.draw_ns); });
        add(Event::end_of_data, rows_.ends_of_data, [](const EndOfDataRow& row) { return row.begin_ns; });
        add(Event::pass_end, rows_.passes, [](const PassRow& row) { return std::max(row.begin_ns, row.end_ns); });
        for (Event& event : events_)
            if (event.kind == Event::pass_end && rows_.passes[event.row].begin_ns >= event.at_ns)
                event.kind = Event::end_of_empty_pass;
        std::ranges::stable_sort(events_, {}, [](const Event& event) { return std::tuple{event.at_ns, event.kind}; });
        for (const Event& event : events_)
            switch (event.kind) {
            case Event::pass_begin: {
                const PassRow& row = passes[event.row];
                to_.pass_begin({.kind = row.kind,
                                .epoch = row.epoch,
                                .begin_ns = row.begin_ns,
                                .spans = {},
                                .folded_ns = row.folded_ns});
                break;
            }
            case Event::sample: to_.sample(rows_.samples[event.row], rows_.stages_of(rows_.samples[event.row])); break;
            case Event::batch: batch(rows_.batches[event.row]); break;
            case Event::step: to_.step(rows_.steps[event.row], rows_.spans_of(rows_.steps[event.row])); break;
            case Event::end_of_data: to_.end_of_data(rows_.ends_of_data[event.row]); break;
            case Event::pass_end:
            case Event::end_of_empty_pass:
                to_.pass(rows_.passes[event.row], rows_.spans_of(rows_.passes[event.row]));
                break;
            }
    }

    const LedgerBuilder& from_;
    const Ledger& rows_;
    TraceWriter& to_;
    const std::int64_t now_ns_;
    std::vector<Event> events_;
};

}   // namespace

void write_all(const LedgerBuilder& from, TraceWriter& to, std::int64_t now_ns) { AllWriter{from, to, now_ns}.write(); }

}   // namespace drawpoint
