#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_page.hpp"
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint::cli {

int report(const Invocation& invocation) {
    CommandLine line{invocation, "Prints a report from a recording."};
    ReportRequest request{.command_line = invocation.line};
    std::string file;
    line.app().add_option("RUN", file, "the recording: a .pftrace file, or a PyTorch Chrome trace (.json, .json.gz)");
    add_report_style(line.app(), "--style", request.style);
    const CLI::Option* const sort_by =
        line.app()
            .add_option("--sort-by", request.sort_by, "style op: a key such as self_cpu_time_total or count [time]")
            ->type_name("KEY");
    const CLI::Option* const row_limit =
        line.app()
            .add_option("--row-limit", request.row_limit, "styles op and advanced: rows of a table; -1: all")
            ->type_name("N");
    const CLI::Option* const by_shape =
        line.app().add_flag("--group-by-input-shape", request.group_by_input_shape, "style op: a row for each shape");
    const CLI::Option* const drop_first =
        line.app().add_flag("--drop-first-batch,!--no-drop-first-batch", request.drop_first_batch,
                            "leaves the first batch of each phase out of the rows (as the run did)");
    line.app()
        .add_option("--html", request.html, "also writes the run as a page of HTML with pictures to this file")
        ->type_name("FILE");
    std::string picture;
    line.app()
        .add_option("--svg", picture,
                    "prints one picture as SVG, instead of the report: steps, draws, workers or flame")
        ->configurable(false)
        ->type_name("steps|draws|workers|flame");
    add_full(line.app(), request.full);
    OutputFlags flags{line.app(), true};
    if (!line.parse())
        return exit_ok;
    for (const auto& [option, styles] :
         {std::pair{sort_by, "op"}, std::pair{row_limit, "op or advanced"}, std::pair{by_shape, "op"}})
        if (option->count() > 0 && std::string_view{styles}.find(request.style) == std::string_view::npos)
            throw UsageError{fmt::format("{} needs --style {}, got {}", option->get_name(), styles, request.style)};
    const OutputOptions output = flags.read();
    check_request(request, output);
    if (!picture.empty()) {
        std::vector<std::string_view> names;
        for (std::size_t i = 0; i < run_picture_count; ++i)
            names.push_back(name_of(static_cast<RunPicture>(i)));
        request.picture = static_cast<RunPicture>(position_in(names, "--svg", picture));
        if (output.form != OutputOptions::Form::text || !output.json_files.empty())
            throw UsageError{"--svg prints a picture: --json, --csv and --markdown choose another form"};
        if (request.full)
            throw UsageError{"--svg prints a picture instead of a report: --full is of no use"};
        if (request.style != "drawpoint")
            throw UsageError{fmt::format("--svg prints a picture instead of a report, got --style {}", request.style)};
    }
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to report on"};
    check_files(output, "RUN", file);
    check_page(request.html, "RUN", file);
    for (const std::string& json : output.json_files)
        check_page(request.html, "--json", json);

    const Ledger ledger = read_steps(file, true, needs_every_row(request.style));
    if (drop_first->count() == 0)
        request.drop_first_batch = drops_first_batch(ledger);
    Summary summary = summary_of(ledger, request.drop_first_batch);
    summary.recording.file = file;
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(file, unknown);
    if (!unknown)
        summary.recording.bytes = static_cast<std::int64_t>(bytes);
    print_report(ledger, summary, request, output);
    return exit_ok;
}

}   // namespace drawpoint::cli
