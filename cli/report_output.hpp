#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/options.hpp"
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

struct ReportRequest {
    std::string style = "drawpoint";   ///< of `report_styles`
    bool drop_first_batch = true;
    std::string command_line;
    std::string sort_by;                 ///< op: a key of `sort_keys()`; empty: by time
    std::int64_t row_limit = 20;         ///< op: rows; advanced: functions an action; -1: all
    bool group_by_input_shape = false;   ///< op
};

/// drawpoint's own report of a ledger, with the rows its run asked for.
[[nodiscard]] Summary summary_of(const Ledger&, bool drop_first_batch);

/// The report of a style that is text alone: lightning, lightning-extended, hannah, op, advanced or tree.
[[nodiscard]] std::string text_of(const Ledger&, const ReportRequest&);

/// The verdict on a ledger, at the price of a report; nothing where the ledger knows no loader, or cannot be diagnosed (which
/// is said on stderr).
[[nodiscard]] std::optional<Diagnosis> diagnosis_of(const Ledger&);

/// Prints a report on stdout in the form asked for, then writes the JSON files asked for. Throws Failure naming a file that
/// cannot be written, and UsageError where a style has no such form.
/// drawpoint's own ends with the verdict.
void print_report(const Ledger&, Summary, const ReportRequest&, const OutputOptions&);

/// Throws UsageError where a style has no such form, or an option of the request has no such value.
void check_request(const ReportRequest&, const OutputOptions&);

/// Throws Failure naming the first JSON file that cannot be written, before the work that would be lost; UsageError where
/// one is `other`, which names the file of option `option`.
void check_files(const OutputOptions&, std::string_view option, const std::string& other);

/// Prints a document on stdout, or writes it to `file`. Throws Failure naming the file.
void print(std::string_view text);
void write_file(const std::string& file, std::string_view text);

}   // namespace drawpoint::cli
