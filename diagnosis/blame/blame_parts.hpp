#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>

#include "diagnosis/rows/loader_rows.hpp"

namespace drawpoint {

/// Longest list of slow samples.
inline constexpr std::size_t max_slow_samples = 100;

/// The loop waited for a batch to be made, rather than to be moved or handed over.
[[nodiscard]] constexpr bool is_making(Cause cause) noexcept {
    return cause != Cause::callbacks && cause != Cause::transfer_queue && cause != Cause::transfer &&
           cause != Cause::handoff && cause != Cause::unknown;
}

[[nodiscard]] inline std::span<const BlamePiece> pieces_of(const Blame& blame, const DrawBlame& draw) noexcept {
    return std::span{blame.pieces}.subspan(draw.pieces.first, draw.pieces.count);
}

/// The end of the sentence "The loop waited … because". `piece` of `draw`.
[[nodiscard]] std::string reason_of(const Ledger&, const DrawBlame& draw, const BlamePiece& piece);

/// Fill in `slow_samples`; `workers` and what is said of them. After `draws` and `pieces`.
void add_slow_samples(Blame&, const Ledger&, const LoaderRows&);
void add_workers(Blame&, const Ledger&, const LoaderRows&);

}   // namespace drawpoint
