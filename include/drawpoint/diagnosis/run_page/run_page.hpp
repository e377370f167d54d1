#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// What a page says of a run that is looked at through a server, whose page may be asked for again.
struct LivePage {
    std::string state;         ///< a sentence: whether the run goes on, and of when the numbers are
    bool is_running = false;   ///< then the page renews itself, each second with scripts, each five without
};

/// What a page shows besides the ledger. What is absent is left out.
struct RunPage {
    std::string title;     ///< any text; it is escaped, as all texts of the page are
    std::string version;   ///< of drawpoint
    std::string command;   ///< the command line that made the page
    const Diagnosis* diagnosis = nullptr;
    const Whatif* whatif = nullptr;
    std::optional<LivePage> live = std::nullopt;
};

/// A run as a page of HTML that needs nothing from elsewhere: the verdict with its advice and what speaks against it,
/// pictures of steps, draws, workers and the longest draws, tables of all numbers of the report, call stacks and
/// operators. Numbers are elements `<data value="…">` whose values are those of the report's JSON. Pictures go over the
/// rows that the ledger keeps, numbers over the whole run. Some hundred kilobytes, however long the run. Works without
/// scripts; with them, a part of the steps can be looked at more closely. A page that is `live` links what else its
/// server has. Sorted ledger; the summary and the diagnosis
/// must be of it. O(rows log rows). Any thread.
[[nodiscard]] std::string to_html(const Ledger&, const Summary&, const RunPage&);

/// Pictures of a run that can be had alone.
enum class RunPicture : std::uint8_t { steps, draws, workers, flame };
inline constexpr std::size_t run_picture_count = 4;
[[nodiscard]] std::string_view name_of(RunPicture) noexcept;

/// One picture as a file of SVG. `diagnosis` (may be null) divides draws by cause. nullopt: the ledger has no rows for
/// it. As `to_html`.
[[nodiscard]] std::optional<std::string> to_svg(const Ledger&, const Summary&, const Diagnosis*, RunPicture);

/// The picture of one draw that `explain` prints, as a file of SVG; arguments and errors as there.
[[nodiscard]] std::string explain_svg(const Ledger&, const Blame&, std::optional<std::uint32_t> step = std::nullopt);

}   // namespace drawpoint
