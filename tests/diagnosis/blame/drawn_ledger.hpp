#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>

namespace drawpoint::test {

/// Builds a ledger of one loader, "train" with the stages "read" and "decode", row by row, so that the expected blame
/// can be worked out by hand. Rows are added in the ledger's order.
struct DrawnLedger {
    Ledger ledger;

    explicit DrawnLedger(std::uint32_t num_workers = 2, std::uint32_t prefetch_depth = 1) {
        ledger.pipelines.push_back({.name = "train",
                                    .stages = {"read", "decode"},
                                    .batch_size = 2,
                                    .num_workers = num_workers,
                                    .prefetch_depth = prefetch_depth});
    }

    /// Adds a batch; the caller sets its stamps.
    BatchRow& batch(std::uint32_t number, std::uint32_t size = 2) {
        return ledger.batches.emplace_back(BatchRow{.batch = number, .size = size});
    }

    /// Adds a sample whose stages follow one another from `begin_ns` on.
    SampleRow& sample(std::uint32_t batch, std::uint32_t slot, std::uint16_t worker, std::int64_t begin_ns,
                      std::initializer_list<std::int64_t> stages) {
        SampleRow row{
            .index = 100 * batch + slot, .batch = batch, .slot = slot, .worker = worker, .begin_ns = begin_ns};
        row.stages = {static_cast<std::uint32_t>(ledger.stages.size()), static_cast<std::uint32_t>(stages.size())};
        for (const std::int64_t ns : stages) {
            ledger.stages.push_back({.begin_ns = begin_ns, .ns = ns});
            begin_ns += ns;
        }
        return ledger.samples.emplace_back(row);
    }

    /// Adds a training step whose pieces follow one another from `begin_ns` on; those up to `transfer` are its draw.
    StepRow& step(std::uint32_t batch, std::int64_t begin_ns,
                  std::initializer_list<std::pair<Span, std::int64_t>> pieces, std::uint32_t size = 2) {
        StepRow row{.step = static_cast<std::uint32_t>(ledger.steps.size()),
                    .batch = batch,
                    .size = size,
                    .draw_begin_ns = begin_ns};
        row.spans = {static_cast<std::uint32_t>(ledger.spans.size()), static_cast<std::uint32_t>(pieces.size())};
        for (const auto& [span, ns] : pieces) {
            ledger.spans.push_back({span, begin_ns, ns});
            const bool draw = span == span_of(Event::before_draw) || span == Span::starved || span == Span::handoff ||
                              span == Span::transfer;
            (draw ? row.draw_ns : row.batch_ns) += span == Span::between ? 0 : ns;
            begin_ns += ns;
        }
        return ledger.steps.emplace_back(row);
    }
};

/// Each piece as text, such as "worker 10" or "stage 0 computing 5", for messages and comparisons.
inline std::vector<std::string> words(const Blame& blame, const DrawBlame& draw) {
    std::vector<std::string> all;
    for (std::uint32_t i = draw.pieces.first; i < draw.pieces.first + draw.pieces.count; ++i) {
        const BlamePiece& piece = blame.pieces[i];
        std::string text{to_string(piece.cause)};
        if (piece.cause == Cause::stage)
            text += ' ' + std::to_string(piece.stage);
        if (piece.spent != Spent::unknown)
            text += ' ' + std::string{to_string(piece.spent)};
        all.push_back(text + ' ' + std::to_string(piece.ns));
    }
    return all;
}

}   // namespace drawpoint::test
