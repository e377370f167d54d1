#include "instrumentation/trace/recorded_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

using namespace drawpoint;

namespace {

class Maker {
public:
    Maker(std::uint64_t seed, std::int64_t start_ns, const RunShape& shape)
        : random_{seed},
          shape_{shape},
          start_ns_{start_ns},
          now_ns_{start_ns + 1000},
          worker_free_ns_{now_ns_, now_ns_} {}

    RecordedRun make() {
        run_.push_back(PipelineRow{"train", {"read", "decode", "augment"}, shape_.batch_size, 2, 2, {}, 8, 1u << 30});
        run_.push_back(PipelineRow{"valid", {"read", "decode"}, shape_.batch_size, 1, 1, OrderRule::out_of_order()});
        run_.push_back(Fact{"host", "a machine"});
        run_.push_back(Fact{"digest", "unknown"});
        run_.push_back(
            Definitions{.names = {"step", "aten::conv2d", "aten::relu_", "[[8, 3, 16, 16], []]", "train", "train.cpp"},
                        .threads = {{static_cast<std::uint64_t>(::gettid()), "loop"}, {4'000'000'000, "sampled"}},
                        .frames = {{4, 5, 17}, {1, nothing, 0}},
                        .stacks = {{nothing, 0}, {0, 1}}});
        open(PassKind::fit, 0);
        for (epoch_ = 0; epoch_ < shape_.epochs; ++epoch_) {
            open(PassKind::epoch, epoch_);
            pass(PassKind::train, Phase::train, 0, shape_.train_batches);
            pass(PassKind::valid, Phase::valid, 1, shape_.valid_batches);
            run_.push_back(SettingRow{now_ns_ - upto(2000), static_cast<std::uint8_t>(epoch_ % 2), 1 + epoch_, 2,
                                      one_of(2) ? OrderRule::out_of_order() : OrderRule{},
                                      static_cast<std::uint32_t>(upto(100)), random_()});
            OrderRow order{.begin_ns = now_ns_ - upto(3000),
                           .ns = upto(2000),
                           .cpu_ns = one_of(2) ? no_stamp : upto(2000),
                           .epoch = epoch_,
                           .pipeline = static_cast<std::uint8_t>(epoch_ % 2)};
            if (one_of(2))
                order.worker = static_cast<std::uint16_t>(upto(3));
            run_.push_back(order);
            device();
            close(PassKind::epoch, epoch_);
        }
        batch(0, shape_.train_batches, BatchStatus::abandoned);
        if (shape_.end_passes)
            close(PassKind::fit, 0);
        else
            begin({.name = 0});
        run_.push_back(Fact{"digest", std::string(300, 'd')});
        return std::move(run_);
    }

private:
    std::int64_t upto(std::int64_t ns) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(ns)); }
    bool one_of(unsigned n) { return random_() % n == 0; }
    std::int64_t pass_time(std::int64_t ns) { return now_ns_ += ns; }

    std::vector<SpanRow> pieces(std::initializer_list<Span> spans) {
        std::vector<SpanRow> rows;
        for (const Span span : spans) {
            const std::int64_t begin_ns = now_ns_;
            rows.push_back({span, begin_ns, pass_time(one_of(5) ? 0 : upto(1'000'000)) - begin_ns});
        }
        return rows;
    }

    void open(PassKind kind, std::uint32_t epoch) {
        open_.push_back({.kind = kind, .epoch = epoch, .begin_ns = now_ns_, .spans = {}});
        run_.push_back(PassBegin{open_.back()});
    }
    void close(PassKind kind, std::uint32_t) {
        PassEnd end{open_.back(), pieces({span_of(Event::after_epoch), Span::between})};
        open_.pop_back();
        end.row.kind = kind;
        end.row.end_ns = now_ns_;
        run_.push_back(std::move(end));
    }

    void pass(PassKind kind, Phase phase, std::uint16_t pipeline, std::uint32_t batches) {
        open(kind, epoch_);
        for (std::uint32_t b = 0; b < batches; ++b)
            step(phase, pipeline, b);
        run_.push_back(EndOfDataRow{epoch_, phase, now_ns_, upto(1000)});
        close(kind, epoch_);
    }

    /// A copy, and a step on a device before the first step of the loop, so that nothing of its dry time is in one. Its
    /// loss is no other step's.
    void device() {
        TransferRow copy{.epoch = epoch_, .batch = 3, .pipeline = 1, .bytes = random_() % 1'000'000};
        copy.issue_ns = now_ns_ - upto(5000);
        copy.begin_ns = copy.issue_ns + upto(3000);
        copy.end_ns = copy.begin_ns + upto(3000);
        run_.push_back(copy);
        DeviceStepRow step{
            .step = 1'000'000 + epoch_, .epoch = epoch_, .phase = one_of(2) ? Phase::train : Phase::valid};
        step.free_ns = start_ns_ + upto(300);
        step.host_queued_ns = step.free_ns + upto(300);
        step.dry_launch_ns = upto(300);
        step.queued_ns = step.host_queued_ns + step.dry_launch_ns;
        step.begin_ns = step.queued_ns + upto(3000);
        step.end_ns = step.begin_ns + upto(100'000);
        step.forward_ns = step.begin_ns + upto(step.end_ns - step.begin_ns);
        step.host_forward_ns = step.forward_ns - upto(1000);
        step.host_end_ns = step.end_ns - upto(1000);
        step.uncertainty_ns = upto(3);
        if (one_of(2))
            step.loss = one_of(4) ? std::numeric_limits<double>::quiet_NaN() : 1e-3 * static_cast<double>(upto(3000));
        run_.push_back(step);
    }

    void batch(std::uint16_t pipeline, std::uint32_t number, BatchStatus status) {
        RunBatch made;
        BatchRow& row = made.row;
        row = {.epoch = epoch_, .batch = number, .slot = number % 3, .pipeline = pipeline, .status = status};
        row.size = 1 + static_cast<std::uint32_t>(random_() % shape_.batch_size);
        row.bytes = row.size * 602'112u;
        row.ready_batches = static_cast<std::uint32_t>(random_() % 3);
        row.admitted_ns = std::max(lane_free_ns_[pipeline][row.slot], now_ns_ - upto(3'000'000));
        row.first_claim_ns = row.admitted_ns + upto(1000);
        std::int64_t done_ns = row.first_claim_ns;
        for (std::uint32_t slot = 0; slot < row.size; ++slot) {
            made.samples.push_back(sample(row, slot));
            const SampleRecord& last = made.samples.back();
            const StageRow& stage = last.stages[last.stage_count - 1];
            done_ns = std::max(done_ns, stage.begin_ns + stage.ns);
        }
        row.last_done_ns = done_ns;
        if (one_of(3)) {
            row.collate_begin_ns = done_ns;
            row.collate_end_ns = done_ns += upto(100'000);
            if (one_of(2)) {
                row.collate_cpu_ns = upto(100'000);
                row.collate_run_queue_ns = one_of(3) ? no_stamp : upto(100'000);
            }
            if (!one_of(4)) {
                row.collate_worker = made.samples.back().row.worker;
                worker_free_ns_[*row.collate_worker] = done_ns;
            }
        }
        row.offered_ns = done_ns;
        now_ns_ = std::max(now_ns_, done_ns) + upto(10'000);
        row.taken_ns = now_ns_;
        if (one_of(2)) {
            row.transfer_issue_ns = now_ns_ - upto(100);
            row.transfer_done_ns = now_ns_;
        }
        lane_free_ns_[pipeline][row.slot] = now_ns_;
        if (status == BatchStatus::abandoned && one_of(2))
            row.offered_ns = no_stamp;
        if (shape_.odd_stamps && one_of(17))
            row.admitted_ns = no_stamp;
        if (shape_.odd_stamps && one_of(17))
            row.first_claim_ns = row.admitted_ns == no_stamp ? start_ns_ : row.admitted_ns - 1 - upto(3);
        run_.push_back(std::move(made));
    }

    SampleRecord sample(const BatchRow& batch, std::uint32_t slot) {
        SampleRecord record;
        const auto worker = static_cast<std::uint16_t>(random_() % 2);
        SampleRow& row = record.row;
        row = {.index = random_() % 100'000,
               .epoch = batch.epoch,
               .batch = batch.batch,
               .slot = slot,
               .worker = worker,
               .pipeline = batch.pipeline,
               .bytes = random_() % 200'000};
        row.begin_ns = std::max(worker_free_ns_[worker], batch.first_claim_ns);
        const bool failed = one_of(30);
        row.status = failed ? SampleStatus::failed : SampleStatus::complete;
        if (one_of(5))
            row.samples = static_cast<std::uint32_t>(1 + upto(64));
        if (one_of(3)) {
            row.read_begin_ns = row.begin_ns - upto(5'000'000);
            row.read_end_ns = row.read_begin_ns + upto(3'000'000);
            if (one_of(2))
                row.read_cpu_ns = upto(100'000);
            if (one_of(2))
                row.read_run_queue_ns = one_of(3) ? 0 : upto(1'000'000);
        }
        if (one_of(4))
            row.cpu_ns = upto(5'000'000);
        if (one_of(4))
            row.run_queue_ns = one_of(3) ? 0 : upto(1'000'000);
        record.stage_count = failed ? 1u : batch.pipeline == 0 ? 3u : 2u;
        const bool measured = one_of(2);
        std::int64_t at_ns = row.begin_ns;
        for (std::uint32_t i = 0; i < record.stage_count; ++i) {
            if (shape_.odd_stamps && one_of(9))
                at_ns += upto(500);
            record.stages[i] = {at_ns, upto(i == 1 ? 4'000'000 : 300'000)};
            if (measured)
                record.stages[i].cpu_ns = one_of(5) ? no_stamp : upto(record.stages[i].ns + 1);
            at_ns += record.stages[i].ns;
        }
        worker_free_ns_[worker] = at_ns;
        if (shape_.odd_stamps && one_of(200))
            row.begin_ns = start_ns_ - upto(5000);
        if (failed)
            run_.push_back(FailureRow{row.index, row.epoch, row.batch, row.pipeline, "photos/a.jpg", "read",
                                      "photos/a.jpg: truncated"});
        return record;
    }

    void begin(OperatorRow row) {
        row.begin_ns = pass_time(1 + upto(1000));   // distinct, so that their order is that of their begins
        row.ended = false;
        run_.push_back(OperatorBegun{row});
    }

    void operators() {
        begin({.kind = OperatorKind::user_annotation, .name = 0, .stack = 0});
        begin({.name = 1, .shapes = 3, .sequence = 1000 + next_step_, .flops = 21'676'032});
        if (one_of(3))
            run_.push_back(StackSampleRow{pass_time(upto(1000)), 1, 1, 10'000'000});
        const std::int64_t bytes = 4 * (1 + upto(1'000'000));
        run_.push_back(AllocationRow{pass_time(upto(1000)), 0, -1, bytes, 0x7f00'0000'1000, one_of(2) ? 0 : bytes});
        begin({.name = 2, .sequence = -1, .forward_thread = 1});
        const bool lost = one_of(4);
        run_.push_back(OperatorEnded{0, pass_time(lost ? 0 : 1000 + upto(100'000)), lost});
        run_.push_back(OperatorEnded{0, now_ns_, false});
        run_.push_back(AllocationRow{pass_time(upto(1000)), 0, one_of(5) ? 0 : -1, -bytes, 0x7f00'0000'1000, 0});
        run_.push_back(OperatorEnded{0, pass_time(upto(1000)), false});
    }

    void step(Phase phase, std::uint16_t pipeline, std::uint32_t number) {
        operators();
        RunStep made;
        StepRow& row = made.row;
        row = {.step = next_step_++,
               .epoch = epoch_,
               .batch = number,
               .phase = phase,
               .draw_begin_ns = now_ns_,
               .loss = {}};
        made.spans = pieces({span_of(Event::before_draw), Span::starved, Span::handoff});
        const std::int64_t batch_from_ns = now_ns_;
        const bool failed_batch = one_of(25);
        batch(pipeline, number, failed_batch ? BatchStatus::failed : BatchStatus::taken);
        made.spans[1].ns += now_ns_ - batch_from_ns;   // the batch arrived while the loop was starved
        made.spans[2].begin_ns += now_ns_ - batch_from_ns;
        row.size = failed_batch ? 0 : std::get<RunBatch>(run_.back()).row.size;
        row.draw_ns = now_ns_ - row.draw_begin_ns;
        const std::int64_t batch_begin_ns = now_ns_;
        const auto add = [&](std::vector<SpanRow> more) {
            made.spans.insert(made.spans.end(), more.begin(), more.end());
        };
        if (failed_batch) {
            row.status = StepStatus::failed;
        } else if (one_of(10)) {
            row.status = StepStatus::cancelled;
            add(pieces({span_of(Event::before_batch), Span::forward, span_of(Event::after_cancel_batch)}));
        } else if (phase == Phase::train) {
            add(pieces({span_of(Event::before_batch), Span::forward, span_of(Event::after_pred), Span::loss,
                        span_of(Event::after_loss), span_of(Event::before_backward), Span::backward,
                        span_of(Event::after_backward), span_of(Event::before_step), Span::opt_step,
                        span_of(Event::after_step), Span::zero_grad, Span::other, span_of(Event::after_batch)}));
        } else {
            add(pieces({span_of(Event::before_batch), Span::forward, span_of(Event::after_pred), Span::loss,
                        span_of(Event::after_loss), Span::other, span_of(Event::after_batch), Span::callbacks}));
        }
        row.batch_ns = now_ns_ - batch_begin_ns;
        if (row.status == StepStatus::complete && one_of(2))
            row.loss = static_cast<double>(upto(1'000'000)) / 977.0;
        if (one_of(2))
            row.cpu_ns = upto(1'000'000);
        if (one_of(2))
            row.run_queue_ns = one_of(3) ? 0 : upto(1'000'000);
        if (one_of(3))
            row.between_run_queue_ns = one_of(3) ? 0 : upto(1'000'000);
        add(pieces({Span::between}));
        if (shape_.odd_stamps && one_of(11)) {   // a gap before the last piece
            ++made.spans.back().begin_ns;
            ++now_ns_;
        }
        run_.push_back(std::move(made));
    }

    std::mt19937_64 random_;
    const RunShape shape_;
    const std::int64_t start_ns_;
    std::int64_t now_ns_;
    std::array<std::int64_t, 2> worker_free_ns_;
    std::array<std::array<std::int64_t, 3>, 2> lane_free_ns_{
        {{now_ns_, now_ns_, now_ns_}, {now_ns_, now_ns_, now_ns_}}};
    std::uint32_t epoch_ = 0, next_step_ = 0;
    std::vector<PassRow> open_;
    RecordedRun run_;
};

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};

/// Gives a builder or a writer the rows in the order in which a recorder writes them.
template <class Sample, class Batch, class Step, class Begin, class End, class EndOfData, class Failure, class SetFact,
          class Pipeline, class Rest>
void visit_rows(const RunRow& row, Sample&& sample, Batch&& batch, Step&& step, Begin&& begin, End&& end,
                EndOfData&& end_of_data, Failure&& failure, SetFact&& fact, Pipeline&& pipeline, Rest&& rest) {
    std::visit(Overloaded{[&](const RunBatch& made) {
                              for (const SampleRecord& record : made.samples)
                                  sample(record);
                              batch(made.row);
                          },
                          [&](const RunStep& made) { step(made.row, made.spans); },
                          [&](const PassBegin& made) { begin(made.row); },
                          [&](const PassEnd& made) { end(made.row, made.spans); },
                          [&](const EndOfDataRow& made) { end_of_data(made); },
                          [&](const FailureRow& made) { failure(made); },
                          [&](const Fact& made) { fact(made.first, made.second); },
                          [&](const PipelineRow& made) { pipeline(made); }, [&](const auto& made) { rest(made); }},
               row);
}

std::span<const StageRow> stages_of(const SampleRecord& record) {
    return std::span{record.stages}.first(record.stage_count);
}

}   // namespace

RecordedRun random_run(std::uint64_t seed, std::int64_t start_ns, const RunShape& shape) {
    return Maker{seed, start_ns, shape}.make();
}

Ledger ledger_of(const RecordedRun& run, std::int64_t start_ns) {
    Ledger ledger;
    ledger.start_ns = start_ns;
    std::vector<std::size_t> open;
    const auto add = [](auto& rows, const auto& more) {
        const Slice slice{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(more.size())};
        rows.insert(rows.end(), more.begin(), more.end());
        return slice;
    };
    for (const RunRow& row : run)
        visit_rows(
            row,
            [&](const SampleRecord& record) {
                ledger.samples.push_back(record.row);
                ledger.samples.back().stages = add(ledger.stages, stages_of(record));
            },
            [&](const BatchRow& made) { ledger.batches.push_back(made); },
            [&](const StepRow& made, const std::vector<SpanRow>& spans) {
                ledger.steps.push_back(made);
                ledger.steps.back().spans = add(ledger.spans, spans);
            },
            [](const PassRow&) {},
            [&](const PassRow& made, const std::vector<SpanRow>& spans) {
                ledger.passes.push_back(made);
                ledger.passes.back().spans = add(ledger.spans, spans);
            },
            [&](const EndOfDataRow& made) { ledger.ends_of_data.push_back(made); },
            [&](const FailureRow& made) { ledger.failures.push_back(made); },
            [&](const std::string& key, const std::string& value) { ledger.set_fact(key, value); },
            [&](const PipelineRow& made) { ledger.pipelines.push_back(made); },
            Overloaded{[&](const SettingRow& made) { ledger.settings.push_back(made); },
                       [&](const OrderRow& made) { ledger.orders.push_back(made); },
                       [&](const TransferRow& made) { ledger.transfers.push_back(made); },
                       [&](const DeviceStepRow& made) { ledger.device_steps.push_back(made); },
                       [&](const Definitions& made) {
                           add(ledger.names, made.names), add(ledger.threads, made.threads);
                           add(ledger.frames, made.frames), add(ledger.stacks, made.stacks);
                       },
                       [&](const OperatorBegun& made) {
                           open.push_back(ledger.operators.size());
                           ledger.operators.push_back(made.row);
                       },
                       [&](const OperatorEnded& made) {
                           OperatorRow& begun = ledger.operators[open.back()];
                           begun.ns = made.at_ns - begun.begin_ns;
                           begun.ended = !made.lost;
                           open.pop_back();
                       },
                       [&](const AllocationRow& made) { ledger.allocations.push_back(made); },
                       [&](const StackSampleRow& made) { ledger.stack_samples.push_back(made); }});
    ledger.sort();
    return ledger;
}

void play(const RecordedRun& run, Recorder& recorder, ManualClock* clock) {
    // A worker waits until the loop lets it make a batch, and reports when its samples are pushed.
    std::vector<const RunBatch*> batches;
    for (const RunRow& row : run)
        if (const auto* batch = std::get_if<RunBatch>(&row))
            batches.push_back(batch);
    std::atomic<std::size_t> allowed = 0;
    std::array<std::atomic<std::size_t>, 2> done{};
    const auto work = [&](std::uint16_t worker, WorkerTrack track) {
        for (std::size_t b = 0; b < batches.size(); ++b) {
            for (std::size_t seen = allowed.load(); seen <= b; seen = allowed.load())
                allowed.wait(seen);
            for (SampleRecord record : batches[b]->samples)
                if (record.row.worker == worker)
                    track.push(record);
            const BatchRow& row = batches[b]->row;
            if (row.collate_worker == worker)
                track.push_collate(row.collate_begin_ns, row.collate_end_ns);
            done[worker].store(b + 1);
            done[worker].notify_one();
        }
    };
    WorkerTrack first = recorder.add_worker(), second = recorder.add_worker();
    std::jthread first_worker{work, std::uint16_t{0}, std::move(first)};
    std::jthread second_worker{work, std::uint16_t{1}, std::move(second)};
    const auto allow = [&](std::size_t count) {
        allowed.store(std::min(count, batches.size()));
        allowed.notify_all();
    };
    const auto move_to = [&](std::int64_t ns) {
        if (clock != nullptr)
            clock->advance(std::chrono::nanoseconds{ns - clock->now_ns()});
    };
    std::vector<std::uint32_t> open;
    std::size_t next = 0;
    allow(1);
    for (const RunRow& row : run) {
        if (std::holds_alternative<RunBatch>(row)) {
            allow(next + 2);
            for (auto& worker : done)
                for (std::size_t seen = worker.load(); seen <= next; seen = worker.load())
                    worker.wait(seen);
        }
        visit_rows(
            row, [](const SampleRecord&) {}, [&](const BatchRow& made) { recorder.push(made), ++next; },
            [&](const StepRow& made, const std::vector<SpanRow>& spans) { recorder.push(made, spans); },
            [&](const PassRow& made) { recorder.push_begin(made); },
            [&](const PassRow& made, const std::vector<SpanRow>& spans) { recorder.push(made, spans); },
            [&](const EndOfDataRow& made) { recorder.push(made); },
            [&](const FailureRow& made) { recorder.add_failure(made); },
            [&](const std::string& key, const std::string& value) { recorder.set_fact(key, value); },
            [&](const PipelineRow& made) { recorder.add_pipeline(made); },
            Overloaded{[&](const SettingRow& made) { recorder.add_setting(made); },
                       [&](const OrderRow& made) { recorder.push(made); },
                       [&](const TransferRow& made) { recorder.push(made); },
                       [&](const DeviceStepRow& made) { recorder.push(made); },
                       [&](const Definitions& made) {
                           for (const std::string& name : made.names)
                               recorder.add_name(name);
                           for (const ThreadRow& thread : made.threads)
                               recorder.add_thread(thread);
                           for (const FrameRow& frame : made.frames)
                               recorder.add_frame(frame);
                           for (const StackRow& stack : made.stacks)
                               recorder.add_stack(stack);
                       },
                       [&](const OperatorBegun& made) {
                           const OperatorRow& begun = made.row;
                           move_to(begun.begin_ns);
                           open.push_back(recorder.begin_operator({begun.kind, begun.name, begun.shapes, begun.stack,
                                                                   begun.sequence, begun.forward_thread, begun.flops}));
                       },
                       [&](const OperatorEnded& made) {
                           move_to(made.at_ns);
                           if (!made.lost)
                               recorder.end_operator(open.back());
                           open.pop_back();
                       },
                       [&](const AllocationRow& made) { recorder.push(made); },
                       [&](const StackSampleRow& made) { recorder.push(made); }});
    }
}

void write(const RecordedRun& run, TraceWriter& writer, std::size_t records_a_block) {
    std::chrono::steady_clock::time_point now{};
    std::size_t records = 0;
    const auto wrote = [&] {
        if (++records % records_a_block == 0) {
            writer.end_block_if_due(now);
            writer.end_block_if_due(now += std::chrono::seconds{2});
        }
    };
    std::int64_t now_ns = 0;
    for (const RunRow& row : run)
        visit_rows(
            row, [&](const SampleRecord& made) { writer.sample(made.row, stages_of(made)), wrote(); },
            [&](const BatchRow& made) {
                if (made.collate_worker)
                    writer.collate(*made.collate_worker, made.collate_begin_ns, made.collate_end_ns);
                writer.batch(made), wrote(), now_ns = made.taken_ns;
            },
            [&](const StepRow& made, const std::vector<SpanRow>& spans) { writer.step(made, spans), wrote(); },
            [&](const PassRow& made) { writer.pass_begin(made), wrote(); },
            [&](const PassRow& made, const std::vector<SpanRow>& spans) { writer.pass(made, spans), wrote(); },
            [&](const EndOfDataRow& made) { writer.end_of_data(made), wrote(); },
            [&](const FailureRow& made) { writer.failure(made, now_ns), wrote(); },
            [&](const std::string& key, const std::string& value) { writer.fact(key, value, now_ns), wrote(); },
            [&](const PipelineRow& made) { writer.pipeline(made, now_ns), wrote(); },
            Overloaded{
                [&](const SettingRow& made) { writer.setting(made), wrote(); },
                [&](const OrderRow& made) { writer.order(made), wrote(); },
                [&](const TransferRow& made) { writer.transfer(made), wrote(); },
                [&](const DeviceStepRow& made) { writer.device_step(made), wrote(); },
                [&](const Definitions& made) { writer.definitions(made), wrote(); },
                [&](const OperatorBegun& made) { writer.operator_begin(made.row), wrote(); },
                [&](const OperatorEnded& made) { writer.operator_end(made.thread, made.at_ns, made.lost), wrote(); },
                [&](const AllocationRow& made) { writer.allocation(made), wrote(); },
                [&](const StackSampleRow& made) { writer.stack_sample(made), wrote(); }});
    writer.close();
}

namespace {

/// Whether `part` occurs in `whole` in the same order. Walks along `whole` once.
template <class Row, class Same>
bool subsequence(const std::vector<Row>& part, const std::vector<Row>& whole, Same&& same) {
    auto at = whole.begin();
    for (const Row& row : part) {
        at = std::find_if(at, whole.end(), [&](const Row& other) { return same(row, other); });
        if (at == whole.end())
            return false;
        ++at;
    }
    return true;
}

constexpr auto equal = [](const auto& a, const auto& b) { return a == b; };

/// Compares rows with a side column by its content, not by its position.
template <class Row, class Side, class Of>
auto equal_with(Slice Row::* slice, const Ledger& part, const Ledger& whole, Of side_of) {
    return [=, &part, &whole](Row a, Row b) {
        const std::span<const Side> of_a = side_of(part, a), of_b = side_of(whole, b);
        a.*slice = b.*slice = {};
        return a == b && std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
    };
}

}   // namespace

bool is_part_of(const Ledger& part, const Ledger& whole) {
    const auto spans_of = [](const Ledger& ledger, const auto& row) { return ledger.spans_of(row); };
    const auto stages = [](const Ledger& ledger, const SampleRow& row) { return ledger.stages_of(row); };
    const auto same_pass = equal_with<PassRow, SpanRow>(&PassRow::spans, part, whole, spans_of);
    const bool is_damaged = std::ranges::any_of(
        part.dropped, [](const DroppedRow& row) { return row.ring == damaged_part; });   // an end may be lost
    const auto begun = [&](const PassRow& a, const PassRow& b) {
        return a.ended ? same_pass(a, b)
                       : a.kind == b.kind && a.epoch == b.epoch && a.begin_ns == b.begin_ns &&
                             (is_damaged || a.end_ns <= b.end_ns);
    };
    const auto begun_operator = [](OperatorRow a, OperatorRow b) {
        if (!a.ended)
            a.ended = b.ended = false, a.ns = b.ns = 0;
        return a == b;
    };
    const auto prefix = [](const auto& of_part, const auto& of_whole, const auto& is_lost) {
        const std::size_t both = std::min(of_part.size(), of_whole.size());   // what is lost may be named behind all
        return std::equal(of_part.begin(), of_part.begin() + static_cast<std::ptrdiff_t>(both), of_whole.begin(),
                          [&](const auto& a, const auto& b) { return a == b || is_lost(a); }) &&
               std::all_of(of_part.begin() + static_cast<std::ptrdiff_t>(both), of_part.end(), is_lost);
    };
    const auto lost_name = [](std::string_view name) { return name == "(lost)"; };
    const auto lost_row = [&](const auto& row) { return lost_name(row.name); };
    const auto lost_frame = [&](const FrameRow& row) { return lost_name(part.names.at(row.function)); };
    const auto lost_stack = [&](const StackRow& row) { return lost_frame(part.frames.at(row.frame)); };
    std::vector<DroppedRow> dropped = part.dropped;   // without what is in damaged parts
    std::erase_if(dropped, [](const DroppedRow& row) { return row.ring == damaged_part; });
    return prefix(part.names, whole.names, lost_name) && prefix(part.threads, whole.threads, lost_row) &&
           prefix(part.frames, whole.frames, lost_frame) && prefix(part.stacks, whole.stacks, lost_stack) &&
           prefix(part.pipelines, whole.pipelines, lost_row) &&
           subsequence(part.operators, whole.operators, begun_operator) &&
           subsequence(part.allocations, whole.allocations, equal) &&
           subsequence(part.stack_samples, whole.stack_samples, equal) &&
           (part.steps.empty() || part.start_ns == whole.start_ns) && subsequence(part.passes, whole.passes, begun) &&
           subsequence(part.steps, whole.steps, equal_with<StepRow, SpanRow>(&StepRow::spans, part, whole, spans_of)) &&
           subsequence(part.samples, whole.samples,
                       equal_with<SampleRow, StageRow>(&SampleRow::stages, part, whole, stages)) &&
           subsequence(part.batches, whole.batches, equal) &&
           subsequence(part.ends_of_data, whole.ends_of_data, equal) &&
           subsequence(part.settings, whole.settings, equal) && subsequence(part.orders, whole.orders, equal) &&
           subsequence(part.transfers, whole.transfers, equal) &&
           subsequence(part.device_steps, whole.device_steps, equal) && subsequence(part.host, whole.host, equal) &&
           subsequence(part.failures, whole.failures, equal) && subsequence(dropped, whole.dropped, equal) &&
           subsequence(part.thinnings, whole.thinnings, equal);
}

std::size_t rows_of(const Ledger& ledger) {
    const auto ended =
        std::count_if(ledger.passes.begin(), ledger.passes.end(), [](const PassRow& row) { return row.ended; });
    return ledger.pipelines.size() + static_cast<std::size_t>(ended) + ledger.steps.size() + ledger.samples.size() +
           ledger.batches.size() + ledger.ends_of_data.size() + ledger.settings.size() + ledger.orders.size() +
           ledger.transfers.size() + ledger.device_steps.size() + ledger.failures.size() + ledger.dropped.size() +
           ledger.thinnings.size() + ledger.names.size() + ledger.threads.size() + ledger.frames.size() +
           ledger.stacks.size() + ledger.operators.size() + ledger.allocations.size() + ledger.stack_samples.size();
}
