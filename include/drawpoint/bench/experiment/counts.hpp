#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/results.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::bench {

/// What can be said of a count in two files. `too_few_rounds`, `other_samples`, `other_turns`: nothing, because of
/// that; the last one: a value is the mean of another number of runs, of which what a turn counts once has another
/// share.
enum class CountFinding : std::uint8_t {
    equal,
    fewer,
    more,
    no_difference_shown,
    too_few_rounds,
    other_samples,
    other_turns
};
/// Whether a finding is that there is none.
[[nodiscard]] constexpr bool says_nothing(CountFinding finding) noexcept {
    return finding >= CountFinding::too_few_rounds;
}

/// Something that two files count.
struct CountComparison {
    std::string name;
    Metric::Unit unit{};    ///< count or bytes
    Interval base, value;   ///< least, median and most of the rounds
    CountFinding finding{};
};

/// Compares what two files of results both count; times are left out. There is more of a row if every round of the new
/// file has more of it than every round of the base. Unless the row is exact (`ResultRow::is_exact`), this takes as
/// many rounds as make it improbable: if nothing was changed, a row is found to be more with probability `error` at
/// most, all rows together.
[[nodiscard]] std::vector<CountComparison> compare_counts(const Results& base, const Results& candidate,
                                                          double error = 0.01);

/// What only one of two files counts: the first one's, then the second one's.
[[nodiscard]] std::vector<std::string> counted_by_one(const Results&, const Results&);

/// What two recordings count: the residual of their accounts, lost records, failed samples, bytes read a sample,
/// allocations and faults a batch, memory. Sorted ledgers.
[[nodiscard]] std::vector<CountComparison> compare_counts(const Ledger& base, const Ledger& candidate,
                                                          double error = 0.01);

/// "equal", "more", …
[[nodiscard]] std::string_view to_text(CountFinding) noexcept;
/// A table, one row a line.
[[nodiscard]] std::string counts_to_text(std::span<const CountComparison>, TextOptions = {});
[[nodiscard]] std::string counts_to_markdown(std::span<const CountComparison>);
/// Schema `drawpoint.count-comparison/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json counts_to_json(std::span<const CountComparison>, const JsonHead&, const Machine&);

}   // namespace drawpoint::bench
