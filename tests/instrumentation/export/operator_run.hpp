#pragma once

#include <sstream>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/facts.hpp>

#include "tests/instrumentation/report/hand_made.hpp"

namespace drawpoint::test {

/// Adds rows to a ledger, using names instead of positions.
class OperatorRun {
public:
    Ledger ledger = hand_made::one_epoch();

    std::uint32_t name(std::string_view text) {
        ledger.names.emplace_back(text);
        return static_cast<std::uint32_t>(ledger.names.size() - 1);
    }
    std::uint32_t thread(std::uint64_t tid, std::string_view called = {}, std::int32_t device = -1) {
        ledger.threads.push_back({tid, std::string{called}, device});
        return static_cast<std::uint32_t>(ledger.threads.size() - 1);
    }
    OperatorRow& call(std::uint32_t thread, std::string_view called, std::int64_t begin_ns, std::int64_t ns,
                      OperatorKind kind = OperatorKind::cpu_op) {
        const std::uint32_t position = name(called);
        return ledger.operators.emplace_back(
            OperatorRow{.kind = kind, .name = position, .thread = thread, .begin_ns = begin_ns, .ns = ns});
    }
    /// When piece `span` of a step began.
    [[nodiscard]] std::int64_t begin_of(std::size_t step, Span span) const {
        for (const SpanRow& piece : ledger.spans_of(ledger.steps[step]))
            if (piece.span == span)
                return piece.begin_ns;
        return no_stamp;
    }
};

/// Adds the batch of training step 0 and its samples, as if a loader had made them.
inline void add_first_batch(Ledger& ledger) {
    const StepRow& step = ledger.steps.front();
    const std::int64_t taken = step.draw_begin_ns + 5;
    ledger.batches.push_back({.size = 2,
                              .bytes = 4096,
                              .ready_batches = 3,
                              .admitted_ns = taken - 400,
                              .first_claim_ns = taken - 390,
                              .last_done_ns = taken - 20,
                              .offered_ns = taken - 10,
                              .taken_ns = taken});
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        const auto first = static_cast<std::uint32_t>(ledger.stages.size());
        ledger.stages.push_back({taken - 300, 100});
        ledger.stages.push_back({taken - 200, 50});
        ledger.samples.push_back({.index = 70 + slot,
                                  .slot = slot,
                                  .worker = static_cast<std::uint16_t>(slot),
                                  .bytes = 99,
                                  .begin_ns = taken - 300,
                                  .stages = {first, 2}});
    }
}

template <class Write>
std::string text_of(Write write) {
    std::ostringstream out;
    write(out);
    return out.str();
}

}   // namespace drawpoint::test
