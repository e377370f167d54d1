#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

/// What a picture of a draw shows.
struct DrawTimeline {
    /// Of the drawn batch, the samples that ended last, as indices into `Ledger::samples`, by begin; at most 32.
    std::vector<std::uint32_t> samples;
    std::size_t all_samples = 0;           ///< recorded ones of the batch
    std::int64_t from_ns = 0, to_ns = 0;   ///< from the first thing that is shown to the end of the draw
    std::vector<std::pair<std::string_view, std::int64_t>> moments;   ///< of the batch and the draw, named
};

/// The draw that `explain` explains; arguments and errors as there.
[[nodiscard]] const DrawBlame& explained_draw(const Ledger&, const Blame&, std::optional<std::uint32_t> step);

/// O(samples of the batch).
[[nodiscard]] DrawTimeline draw_timeline(const Ledger&, const LoaderRows&, const DrawBlame&);

/// "sample 17, worker 1"
[[nodiscard]] std::string sample_label(const SampleRow&);

/// "computing", "waiting for a core" …; empty if unknown.
[[nodiscard]] std::string_view words_of(Spent) noexcept;

/// A sentence that says what most of the draw was: "The loop waited 3.2 ms because …"
[[nodiscard]] std::string draw_sentence(const Ledger&, const Blame&, const DrawBlame&);

}   // namespace drawpoint
