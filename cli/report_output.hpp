#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/options.hpp"
#include "cli/run_logs.hpp"
#include <drawpoint/diagnosis/run_page/run_page.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

struct ReportRequest {
    std::string style = "drawpoint";   ///< a name that `add_report_style` takes
    bool full = false;                 ///< drawpoint's own as text: all of it, not what fits on one screen
    bool drop_first_batch = true;
    std::string command_line;
    std::string sort_by;                 ///< op: a key of `sort_keys()`; empty: by time
    std::int64_t row_limit = 20;         ///< op: rows; advanced: functions an action; -1: all
    bool group_by_input_shape = false;   ///< op
    std::string html;                    ///< also write a page to this file; empty: none
    std::vector<RunLog> logs;            ///< also write these
    std::optional<RunPicture> picture;   ///< print this picture, instead of a report
};

/// Whether the style shows rows one by one, so that none may be folded.
[[nodiscard]] bool needs_every_row(std::string_view style) noexcept;

/// Runs actions that may throw Failure, so that one does not keep the others from being done.
class FirstFailure {
public:
    void run(const std::function<void()>& action);
    /// Throws the first one there was.
    void rethrow() const;

private:
    std::exception_ptr first_;
};

/// Whether the run was to leave the first batch of each phase out of the rows.
[[nodiscard]] bool drops_first_batch(const Ledger&);

/// drawpoint's own report on a ledger. With --profiler throughput it has the rows of steps, draws and batches alone.
[[nodiscard]] Summary summary_of(const Ledger&, bool drop_first_batch);

/// Prints the report in a style that exists only as text: lightning, lightning-extended, hannah, op, advanced or tree.
/// On a terminal its tables are made to fit, names cut.
void print_style(const Ledger&, const ReportRequest&);

/// The verdict on a ledger, computed from few replayed samples (about 0.2 s). nullopt: the ledger has no loader or no
/// steps. Throws as `diagnose` does.
[[nodiscard]] std::optional<Diagnosis> quick_diagnosis(const Ledger&);
/// The same; if the ledger cannot be diagnosed, says so on stderr and returns nullopt.
[[nodiscard]] std::optional<Diagnosis> diagnosis_of(const Ledger&);

/// Sets what a summary has from a diagnosis: blame and trust.
void add_diagnosis(Summary&, const Diagnosis&);

/// drawpoint's own report as JSON, with the verdict if there is a diagnosis.
[[nodiscard]] std::string report_document(const Summary&, const Diagnosis*, const std::string& command_line);

/// Writes the JSON files, logs and page asked for, then prints a report on stdout in the form asked for. drawpoint's
/// own report begins with the verdict. Throws Failure naming the first file that cannot be written, after all others
/// are, and UsageError if the style has no such form.
void print_report(const Ledger&, Summary, const ReportRequest&, const OutputOptions&);

/// Writes the JSON files asked for, then prints a result on stdout: text (on a terminal in lines of its width) or JSON.
/// Throws Failure naming a file that cannot be written.
void print_output(std::string_view text, const nlohmann::ordered_json& document, const OutputOptions&);

/// Throws UsageError if the style has no such form, or a value of the request is wrong.
void check_request(const ReportRequest&, const OutputOptions&);

/// Throws Failure naming the first JSON file that cannot be written, and UsageError if one is the same file as `other`,
/// which `option` names. Done before the work whose result would be lost.
void check_files(const OutputOptions&, std::string_view option, const std::string& other);

/// Prints on stdout and flushes.
void print(std::string_view text);
/// The same of text for people: on a terminal in lines of its width, except for words longer than that.
void print_text(std::string_view text);
/// Replaces the content of the file. Throws Failure naming it.
void write_file(const std::string& file, std::string_view text);

}   // namespace drawpoint::cli
