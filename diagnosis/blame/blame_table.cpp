#include <drawpoint/diagnosis/blame/blame.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

#include "diagnosis/blame/blame_parts.hpp"

namespace drawpoint {
namespace {

std::string stage_name(const Ledger& ledger, const DrawBlame& draw, std::uint8_t stage) {
    if (draw.batch != nothing && ledger.batches[draw.batch].pipeline < ledger.pipelines.size()) {
        const auto& stages = ledger.pipelines[ledger.batches[draw.batch].pipeline].stages;
        if (stage < stages.size())
            return stages[stage];
    }
    return "stage " + std::to_string(stage);
}

std::string key_of(const Ledger& ledger, const DrawBlame& draw, const BlamePiece& piece) {
    std::string key{to_string(piece.cause)};
    return piece.cause == Cause::stage ? key + ':' + stage_name(ledger, draw, piece.stage) : key;
}

}   // namespace

std::string name_of(const Ledger& ledger, const DrawBlame& draw, const BlamePiece& piece) {
    switch (piece.cause) {
    case Cause::admission:
        return std::string{prefetch_name(is_of_pytorch(ledger, draw) ? LoaderKind::pytorch : LoaderKind::drawpoint)};
    case Cause::transfer: return is_of_pytorch(ledger, draw) ? "delivery" : "transfer";
    case Cause::budget: return "memory_budget";
    case Cause::worker: return "num_workers";
    case Cause::stage: return stage_name(ledger, draw, piece.stage);
    case Cause::other_samples: return "other samples";
    case Cause::collate_queue: return "collate queue";
    case Cause::transfer_queue: return "transfer queue";
    case Cause::hidden: return "hidden behind the device";
    default: return std::string{to_string(piece.cause)};
    }
}

std::vector<BlameRow> blame_table(const Ledger& ledger, const Blame& blame, DrawKind kind) {
    // By the parts of a key, so that each key is built once.
    std::map<std::tuple<Cause, std::uint16_t, std::uint8_t>, BlameRow> sums;
    std::int64_t all_ns = 0;
    const DrawBlame* with_others = nullptr;
    const UntimedSteps untimed{ledger};
    for (const DrawBlame& draw : blame.draws) {
        const StepRow& step = ledger.steps[draw.step];
        if (step.phase != Phase::train || kind_of(draw) != kind || untimed.has(step))
            continue;
        for (const BlamePiece& piece : pieces_of(blame, draw)) {
            const bool stage = piece.cause == Cause::stage;
            with_others = piece.cause == Cause::other_samples ? &draw : with_others;
            const auto pipeline = stage ? ledger.batches[draw.batch].pipeline : std::uint16_t{0};
            BlameRow& row = sums[{piece.cause, pipeline, stage ? piece.stage : std::uint8_t{0}}];
            if (row.key.empty()) {
                row.key = key_of(ledger, draw, piece);
                row.cause = name_of(ledger, draw, piece);
            }
            row.ns += piece.ns;
            row.computing_ns += piece.spent == Spent::computing ? piece.ns : 0;
            row.run_queue_ns += piece.spent == Spent::run_queue ? piece.ns : 0;
            row.waiting_ns += piece.spent == Spent::waiting ? piece.ns : 0;
            all_ns += piece.ns;
        }
    }
    std::map<std::string, BlameRow> by_key;   // stages of two loaders may have the same name
    for (auto& [what, sum] : sums) {
        BlameRow& row = by_key[sum.key];
        row.key = sum.key;
        row.cause = sum.cause;
        row.ns += sum.ns;
        row.computing_ns += sum.computing_ns;
        row.run_queue_ns += sum.run_queue_ns;
        row.waiting_ns += sum.waiting_ns;
    }
    // Adds in which stage the workers mostly were: with few workers this row is often the largest, and says little by
    // itself.
    const std::vector<std::int64_t>& others = blame.other_samples_by_stage_ns;
    if (const auto found = by_key.find("other_samples");
        found != by_key.end() && kind == DrawKind::steady && !others.empty()) {
        const auto most = std::ranges::max_element(others);
        if (*most > std::accumulate(others.begin(), others.end(), std::int64_t{0}) / 2)
            found->second.cause +=
                ": " + stage_name(ledger, *with_others, static_cast<std::uint8_t>(most - others.begin()));
    }
    std::vector<BlameRow> rows;
    for (auto& [key, row] : by_key) {
        row.share = all_ns > 0 ? static_cast<double>(row.ns) / static_cast<double>(all_ns) : 0;
        rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, std::greater{}, &BlameRow::ns);
    return rows;
}

}   // namespace drawpoint
