#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

/// The most slow samples that are listed.
inline constexpr std::size_t max_slow_samples = 100;

/// Whether the loop waited for a batch to be made, rather than to be moved or handed over.
[[nodiscard]] constexpr bool is_making(Cause cause) noexcept {
    return cause != Cause::callbacks && cause != Cause::transfer_queue && cause != Cause::transfer &&
           cause != Cause::handoff && cause != Cause::hidden && cause != Cause::unknown;
}

/// Whether a PyTorch loader made the draw's batch.
[[nodiscard]] inline bool is_of_pytorch(const Ledger& ledger, const DrawBlame& draw) noexcept {
    return draw.batch != nothing && ledger.batches[draw.batch].pipeline < ledger.pipelines.size() &&
           ledger.pipelines[ledger.batches[draw.batch].pipeline].kind == LoaderKind::pytorch;
}

[[nodiscard]] inline std::span<const BlamePiece> pieces_of(const Blame& blame, const DrawBlame& draw) noexcept {
    return std::span{blame.pieces}.subspan(draw.pieces.first, draw.pieces.count);
}

/// Why the loop waited: the end of the sentence "The loop waited … because"; if the piece is hidden, of "The loop
/// waited …,"; or a sentence of its own if its cause is unknown. `piece` belongs to `draw`.
[[nodiscard]] std::string reason_of(const Ledger&, const DrawBlame& draw, const BlamePiece& piece);

/// Fills in `slow_samples`. Needs `draws` and `pieces`.
void add_slow_samples(Blame&, const Ledger&, const LoaderRows&);
/// Fills in `workers` and the sums over what they did during draws. Needs `draws` and `pieces`.
void add_workers(Blame&, const Ledger&, const LoaderRows&);

}   // namespace drawpoint
