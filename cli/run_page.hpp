#pragma once

#include <optional>
#include <string>

#include <drawpoint/diagnosis/run_page/run_page.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// A run's page of HTML. `live`: see RunPage; one that is not live also has what other settings are predicted to do, if
/// the run can be replayed.
[[nodiscard]] std::string run_page(const Ledger&, const Summary&, const Diagnosis*, const std::string& command_line,
                                   const std::optional<LivePage>& live = std::nullopt);

/// Writes a run's page of HTML to `file` and says so on stderr. Throws Failure naming a file that cannot be written.
void write_run_page(const std::string& file, const Ledger&, const Summary&, const Diagnosis*,
                    const std::string& command_line);

/// Throws UsageError if the page would replace `other`, which `option` names, and Failure if it cannot be written. An
/// empty `page` is none.
void check_page(const std::string& page, std::string_view option, const std::string& other);

}   // namespace drawpoint::cli
