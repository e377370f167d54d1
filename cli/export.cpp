#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/perfetto_sql.hpp"
#include "cli/prometheus.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_logs.hpp"
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::array<std::string_view, 3> later{"otava", "nvtx", "opentelemetry"};

constexpr std::string_view views_of_perfetto = "perfetto-sql";

/// The formats of single files, then those of logs; csv, which is both, once.
std::vector<std::string> all_formats() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < export_format_count; ++i)
        names.emplace_back(name_of(static_cast<ExportFormat>(i)));
    for (const std::string_view name : run_log_formats)
        if (!export_format(name))
            names.emplace_back(name);
    names.emplace_back(views_of_perfetto);
    return names;
}

void check_format(const std::string& name) {
    const std::vector<std::string> names = all_formats();
    if (name.empty())
        throw UsageError{fmt::format("--to is missing: one of {}", fmt::join(names, ", "))};
    if (std::ranges::find(later, name) != later.end())
        throw UsageError{fmt::format("--to {} is not delivered yet", name)};
    if (std::ranges::find(names, name) == names.end())
        throw UsageError{
            fmt::format("--to {}: no such format, only {}{}", name, fmt::join(names, ", "), did_you_mean(name, names))};
}

/// Where XProf looks for a profile: in a folder of TensorBoard's, a folder for each of its own.
std::string in_profile_folder(const std::string& folder, const std::string& run) {
    return (std::filesystem::path{folder} / "plugins/profile" / std::filesystem::path{run}.stem() /
            "drawpoint.xplane.pb")
        .string();
}

/// `run.pftrace` → `run.pt.trace.json`, in the same folder.
std::string derived_name(const std::string& run, ExportFormat format) {
    std::string name = run;
    for (const std::string_view end : {".gz", ".json", ".trace", ".pt", ".pftrace"})
        if (name.ends_with(end))
            name.resize(name.size() - end.size());
    return name + std::string{extension_of(format)};
}

}   // namespace

int export_run(const Invocation& invocation) {
    CommandLine line{invocation, "Writes a recording as a file that other programs read."};
    std::string file, to, output;
    line.app().add_option("RUN", file, "the recording: a .pftrace file, or a PyTorch Chrome trace (.json, .json.gz)");
    line.app()
        .add_option("--to", to, fmt::format("{}", fmt::join(all_formats(), ", ")))
        ->type_name(fmt::format("{}", fmt::join(all_formats(), "|")));
    line.app()
        .add_option("-o,--output", output,
                    "where to: a file, compressed if it ends in .gz, or - for standard output; of tensorboard, wandb "
                    "and mlflow a "
                    "folder [RUN's name with the format's ending; runs/NAME, wandb, mlruns]")
        ->type_name("PATH");
    if (!line.parse())
        return exit_ok;
    check_format(to);
    if (same_file(file, output))
        throw UsageError{fmt::format("RUN {} and -o {} name the same file", file, output)};
    if (to == views_of_perfetto) {   // the same for all recordings
        if (output.empty() || output == "-")
            print(perfetto_sql());
        else
            write_file_whole(output, output.ends_with(".gz"), [](std::ostream& out) { out << perfetto_sql(); });
        return exit_ok;
    }
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to export"};
    const auto format = export_format(to);
    if (output.empty())
        output = format ? derived_name(file, *format) : usual_path(to, file);
    const bool is_metrics = to == "prometheus";
    if (output == "-" && (format ? *format == ExportFormat::pprof || *format == ExportFormat::xplane : !is_metrics))
        throw UsageError{fmt::format("-o -: {} goes into a file or folder; name it", to)};
    if (!format)
        check_log_path({to, output});
    if (format == ExportFormat::xplane && (output.ends_with('/') || std::filesystem::is_directory(output))) {
        output = in_profile_folder(output, file);
        std::filesystem::create_directories(std::filesystem::path{output}.parent_path());
    }
    if (same_file(file, output))   // by the name that was derived
        throw UsageError{fmt::format("RUN {} and -o {} name the same file", file, output)};

    std::signal(SIGXFSZ, SIG_IGN);   // a file at its size limit is an error to report, not the end of the process
    const ReadTrace run = read_run(file);
    if (!run.warning.empty())
        complain(run.warning);
    if (!format) {
        Summary summary = summary_of(run.ledger, drops_first_batch(run.ledger));
        summary.recording.file = file;
        const auto diagnosis = diagnosis_of(run.ledger);
        if (diagnosis)
            add_diagnosis(summary, *diagnosis);
        const Diagnosis* const found = diagnosis ? &*diagnosis : nullptr;
        if (output == "-")
            print(to_prometheus(summary, found));
        else
            write_run_log({to, output}, run.ledger, summary, found);
        return exit_ok;
    }
    if (output == "-") {
        write_export(run.ledger, *format, std::cout, file);
        std::cout.flush();
        if (!std::cout)
            throw Failure{"writing to standard output failed"};
        return exit_ok;
    }
    export_file(run.ledger, *format, output);
    complain(fmt::format("wrote {}", output));
    return exit_ok;
}

}   // namespace drawpoint::cli
