#pragma once

#include <string>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Writes a run's page of HTML to `file` and says so on stderr; with what other settings are predicted to do, if the
/// run can be replayed. Throws Failure naming a file that cannot be written.
void write_run_page(const std::string& file, const Ledger&, const Summary&, const Diagnosis*,
                    const std::string& command_line);

/// Throws UsageError if the page would replace `other`, which `option` names, and Failure if it cannot be written. An
/// empty `page` is none.
void check_page(const std::string& page, std::string_view option, const std::string& other);

}   // namespace drawpoint::cli
