#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/recorded_run.hpp"

using namespace drawpoint;

namespace {

constexpr std::int64_t ms = 1'000'000, minute = 60'000 * ms;

/// The number of bytes that `write` adds to a file.
template <class Write>
double bytes_of(Write&& write) {
    const TemporaryFile file;
    TraceWriter writer{file.path(), {}};
    writer.pipeline({"train", {"read", "decode", "augment", "normalize"}, 64, 2, 2}, 0);
    const std::uint64_t before = writer.file_bytes();
    write(writer);
    writer.close();
    return static_cast<double>(writer.file_bytes() - before);
}

SampleRecord sample_of(std::uint32_t batch, std::uint32_t slot, std::int64_t begin_ns) {
    SampleRecord record;
    record.row = {.index = 50'000 + slot, .epoch = 3, .batch = batch, .slot = slot, .worker = 1, .bytes = 80'661};
    record.row.begin_ns = begin_ns;
    record.row.cpu_ns = 6'912'345;
    record.row.run_queue_ns = 51'234;
    record.stage_count = 4;
    std::int64_t at_ns = begin_ns;
    for (std::size_t i = 0; i < 4; ++i) {
        record.stages[i] = {at_ns, std::array<std::int64_t, 4>{150'000, 4'812'345, 1'234'567, 812'345}[i],
                            std::array<std::int64_t, 4>{51'234, 4'811'234, 1'233'321, 811'999}[i]};
        at_ns += record.stages[i].ns;
    }
    return record;
}

constexpr std::uint32_t batches = 50, batch_size = 64;
constexpr std::int64_t sample_ns = 8 * ms, first_ns = 10 * minute;

BatchRow batch_of(std::uint32_t batch, std::int64_t begin_ns, std::int64_t end_ns) {
    return {.epoch = 3, .batch = batch, .size = 64, .admitted_ns = begin_ns, .offered_ns = end_ns, .taken_ns = end_ns};
}

/// The file size of a run's samples and batches per sample.
double bytes_a_sample() {
    const double with_samples = bytes_of([&](TraceWriter& writer) {
        for (std::uint32_t b = 0; b < batches; ++b) {
            const std::int64_t begin_ns = first_ns + b * batch_size * sample_ns;
            for (std::uint32_t slot = 0; slot < batch_size; ++slot) {
                const SampleRecord record = sample_of(b, slot, begin_ns + slot * sample_ns);
                writer.sample(record.row, std::span{record.stages}.first(4));
            }
            const std::int64_t end_ns = begin_ns + batch_size * sample_ns;
            writer.batch(batch_of(b, begin_ns, end_ns));
        }
    });
    const double without = bytes_of([&](TraceWriter& writer) {
        for (std::uint32_t b = 0; b < batches; ++b) {
            const std::int64_t begin_ns = first_ns + b * batch_size * sample_ns,
                               end_ns = begin_ns + batch_size * sample_ns;
            writer.batch(batch_of(b, begin_ns, end_ns));
        }
    });
    return (with_samples - without) / (batches * batch_size);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_budget)

BOOST_AUTO_TEST_CASE(a_sample_of_four_stages_takes_at_most_200_bytes) {
    const double bytes = bytes_a_sample();
    BOOST_TEST_MESSAGE("bytes a sample: " << bytes);
    BOOST_TEST(bytes <= 200.0);
}

BOOST_AUTO_TEST_CASE(a_step_with_its_batch_takes_at_most_600_bytes) {
    constexpr std::uint32_t steps = 200;
    const double bytes = bytes_of([&](TraceWriter& writer) {
        std::int64_t at_ns = first_ns;
        for (std::uint32_t i = 0; i < steps; ++i) {
            StepRow row{.step = 10'000 + i,
                        .epoch = 3,
                        .batch = i,
                        .size = 64,
                        .draw_begin_ns = at_ns,
                        .loss = 0.7,
                        .spans = {}};
            std::vector<SpanRow> spans;
            const auto add = [&](Span span, std::int64_t ns) {
                spans.push_back({span, at_ns, ns});
                at_ns += ns;
            };
            add(span_of(Event::before_draw), 3'000);
            add(Span::starved, 31 * ms);
            add(Span::handoff, 12'000);
            add(Span::transfer, 2 * ms);
            row.draw_ns = at_ns - row.draw_begin_ns;
            writer.collate(1, at_ns - 14 * ms, at_ns - 13 * ms);
            writer.batch({.epoch = 3,
                          .batch = i,
                          .slot = i % 3,
                          .collate_worker = std::uint16_t{1},
                          .size = 64,
                          .bytes = 38'535'168,
                          .ready_batches = i % 2,
                          .admitted_ns = at_ns - 900 * ms,
                          .first_claim_ns = at_ns - 800 * ms,
                          .last_done_ns = at_ns - 14 * ms,
                          .collate_begin_ns = at_ns - 14 * ms,
                          .collate_end_ns = at_ns - 13 * ms,
                          .collate_cpu_ns = i % 2 == 0 ? ms - 1'234 : no_stamp,   // as ReadingBudget chooses
                          .collate_run_queue_ns = i % 2 == 0 ? 0 : no_stamp,
                          .transfer_issue_ns = at_ns - 2 * ms,
                          .transfer_done_ns = at_ns,
                          .offered_ns = at_ns - 13 * ms,
                          .taken_ns = at_ns});
            for (const Event event :
                 {Event::before_batch, Event::after_pred, Event::after_loss, Event::before_backward,
                  Event::after_backward, Event::before_step, Event::after_step, Event::after_batch}) {
                add(span_of(event), 2'100);
                switch (event) {
                case Event::before_batch: add(Span::forward, 61 * ms); break;
                case Event::after_pred: add(Span::loss, 412'000); break;
                case Event::before_backward: add(Span::backward, 120 * ms); break;
                case Event::before_step: add(Span::opt_step, 3 * ms); break;
                case Event::after_step: add(Span::zero_grad, 312'000); break;
                default: break;
                }
                add(Span::other, 700);
            }
            row.batch_ns = at_ns - row.draw_begin_ns - row.draw_ns;
            row.cpu_ns = 198 * ms;
            row.run_queue_ns = 412'345;
            row.between_run_queue_ns = 31'234;
            add(Span::between, 21'000);
            writer.step(row, spans);
        }
    });
    BOOST_TEST_MESSAGE("bytes a step with its batch: " << bytes / steps);
    BOOST_TEST(bytes / steps <= 600.0);
}

BOOST_AUTO_TEST_CASE(a_begin_and_end_of_an_operator_take_at_most_80_bytes) {
    // like a ResNet's forward: each has its own name, shapes and stack
    constexpr std::uint32_t steps = 100, operators = 120;
    const double bytes = bytes_of([&](TraceWriter& writer) {
        Definitions definitions{.threads = {{12'345, "loop"}, {12'346, "pt_autograd_0"}}};
        for (std::uint32_t i = 0; i < 40; ++i)
            definitions.names.push_back("aten::operator_" + std::to_string(i));
        for (std::uint32_t i = 0; i < 60; ++i)
            definitions.names.push_back("[[64, " + std::to_string(i) + ", 56, 56], [64, 64, 3, 3], [], [], [], []]");
        for (std::uint32_t i = 0; i < 100; ++i)
            definitions.frames.push_back({i % 40, 3, i}), definitions.stacks.push_back({nothing, i});
        writer.definitions(definitions);
        std::int64_t at_ns = first_ns;
        for (std::uint32_t i = 0; i < steps * operators; ++i) {
            const std::uint32_t thread = i / operators % 2;
            writer.operator_begin({.name = i % 40,
                                   .thread = thread,
                                   .shapes = 40 + i % 60,
                                   .stack = i % 3 == 0 ? i % 100 : nothing,
                                   .begin_ns = at_ns += 1'234,
                                   .sequence = i,
                                   .forward_thread = thread,
                                   .flops = i % 4 == 0 ? 236'027'904u : 0u});
            writer.operator_end(thread, at_ns += 87'654, false);
        }
    });
    BOOST_TEST_MESSAGE("bytes an operator: " << bytes / (steps * operators));
    BOOST_TEST(bytes / (steps * operators) <= 80.0);
}

BOOST_AUTO_TEST_SUITE_END()
