#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/recording.hpp"
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::array<std::string_view, 7> later{"tensorboard", "xplane", "wandb",   "mlflow",
                                                "prometheus",  "nvtx",   "perfetto"};

ExportFormat chosen_format(const std::string& name) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < export_format_count; ++i)
        names.emplace_back(name_of(static_cast<ExportFormat>(i)));
    if (name.empty())
        throw UsageError{fmt::format("--to is missing: one of {}", fmt::join(names, ", "))};
    if (const auto format = export_format(name))
        return *format;
    if (std::ranges::find(later, name) != later.end())
        throw UsageError{fmt::format("--to {} is not delivered yet", name)};
    throw UsageError{
        fmt::format("--to {}: no such format, only {}{}", name, fmt::join(names, ", "), did_you_mean(name, names))};
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
    line.app().add_option("--to", to, "chrome, speedscope, folded, pprof, csv or json");
    line.app().add_option(
        "-o,--output", output,
        "where to; compressed if it ends in .gz; - is standard output [RUN's name with the format's ending]");
    if (!line.parse())
        return exit_ok;
    const ExportFormat format = chosen_format(to);
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to export"};
    if (output.empty())
        output = derived_name(file, format);
    if (output == "-" && format == ExportFormat::pprof)
        throw UsageError{"-o -: a pprof profile is no text; name a file"};
    if (same_file(file, output))
        throw UsageError{fmt::format("RUN {} and -o {} name the same file", file, output)};

    std::signal(SIGXFSZ, SIG_IGN);   // a file at its size limit is an error to report, not the end of the process
    const ReadTrace run = read_run(file);
    if (!run.warning.empty())
        complain(run.warning);
    if (output == "-") {
        write_export(run.ledger, format, std::cout, file);
        std::cout.flush();
        if (!std::cout)
            throw Failure{"writing to standard output failed"};
        return exit_ok;
    }
    export_file(run.ledger, format, output);
    complain(fmt::format("wrote {}", output));
    return exit_ok;
}

}   // namespace drawpoint::cli
