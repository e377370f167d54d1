#pragma once

#include <string>
#include <string_view>

#include <cli/options.hpp>
#include <drawpoint/instrumentation/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

struct ReportRequest {
    std::string style = "drawpoint";   ///< drawpoint, throughput, simple or simple-old
    bool drop_first_batch = true;
    std::string command_line;
};

/// drawpoint's own report of a ledger, with the rows its run asked for.
[[nodiscard]] Summary summary_of(const Ledger&, bool drop_first_batch);

/// Prints a report on stdout in the form asked for, then writes the JSON files asked for. Throws Failure naming a file that
/// cannot be written, and UsageError where a style has no such form.
void print_report(const Ledger&, const Summary&, const ReportRequest&, const OutputOptions&);

/// Throws UsageError where a style has no such form.
void check_form(const std::string& style, const OutputOptions&);

/// Throws Failure naming the first JSON file that cannot be written, before the work that would be lost; UsageError where
/// one is `other`, which names the file of option `option`.
void check_files(const OutputOptions&, std::string_view option, const std::string& other);

/// Prints a document on stdout, or writes it to `file`. Throws Failure naming the file.
void print(std::string_view text);
void write_file(const std::string& file, std::string_view text);

}   // namespace drawpoint::cli
