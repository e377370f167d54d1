#include "cli/run_page.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {
namespace {

/// Some numbers, the recorded one and twice that, in order.
std::vector<std::size_t> with_recorded(std::vector<std::size_t> numbers, std::size_t recorded, std::size_t most) {
    numbers.insert(numbers.end(), {std::min(recorded, most), std::min(2 * recorded, most)});
    std::ranges::sort(numbers);
    numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
    return numbers;
}

/// What other settings would do. nullopt if the run cannot be replayed.
std::optional<Whatif> other_settings(const Ledger& ledger) {
    try {
        const SteadyRun steady = prepare(ledger);
        if (!steady.run.unusable.empty())
            return std::nullopt;
        WhatifGrid grid;
        grid.num_workers =
            with_recorded({1, 2, 3, 4, 6, 8}, steady.run.setting.num_workers, loader_limits::most_workers);
        grid.prefetch_depth =
            with_recorded({1, 2, 4, 8}, prefetch_of(steady.run.setting), loader_limits::most_depth(steady.run.setting));
        constexpr std::size_t quick_samples = 400'000;
        return whatif(steady.run, grid, {.predict = {.replications = 6}, .most_samples = quick_samples});
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}   // namespace

std::string run_page(const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis,
                     const std::string& command_line, const std::optional<LivePage>& live) {
    const bool predicts = diagnosis && !diagnosis->abstained && !(live && live->is_running);
    const std::optional<Whatif> others = predicts ? other_settings(ledger) : std::optional<Whatif>{};
    return to_html(ledger, summary,
                   {.title = summary.recording.file.empty() ? std::string{"drawpoint"} : summary.recording.file,
                    .version = DRAWPOINT_VERSION,
                    .command = command_line,
                    .diagnosis = diagnosis,
                    .whatif = others ? &*others : nullptr,
                    .live = live});
}

void write_run_page(const std::string& file, const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis,
                    const std::string& command_line) {
    write_file(file, run_page(ledger, summary, diagnosis, command_line));
    complain(fmt::format("wrote {}", file));
}

void check_page(const std::string& page, std::string_view option, const std::string& other) {
    if (page.empty())
        return;
    if (same_file(page, other))
        throw UsageError{fmt::format("{} {} and --html {} name the same file", option, other, page)};
    check_files({.json_files = {page}}, "--html", "");   // throws if it cannot be written
}

}   // namespace drawpoint::cli
