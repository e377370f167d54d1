#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_page.hpp"
#include "cli/verification.hpp"
#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>

namespace drawpoint::cli {
namespace {

/// Reads "1..4,8" as 1, 2, 3, 4 and 8, each between `low` and `high`.
std::vector<std::size_t> numbers_in(std::string_view option, std::string_view text, std::size_t low, std::size_t high) {
    std::vector<std::size_t> numbers;
    if (text.empty())
        return numbers;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dots = part.find("..");
        const auto from = number_in<std::size_t>(part.substr(0, dots));
        const auto to = dots == part.npos ? from : number_in<std::size_t>(part.substr(dots + 2));
        if (!from || !to || *from > *to)
            throw UsageError{fmt::format("{} must be numbers like 1..4,8, got '{}'", option, text)};
        if (*from < low || *to > high)
            throw UsageError{fmt::format("{} must be between {} and {}, got {}", option, low, high, part)};
        for (std::size_t number = *from; number <= *to; ++number)
            numbers.push_back(number);
    }
    return numbers;
}

std::vector<OrderRule> orders_in(std::string_view option, std::string_view text) {
    std::vector<OrderRule> orders;
    if (text.empty())
        return orders;
    for (const std::string_view part : split(text, ',')) {
        const auto order = OrderRule::parse(part);
        if (!order)
            throw UsageError{fmt::format("{} must be in, out or numbers of batches above 0, got '{}'", option, text)};
        orders.push_back(*order);
    }
    return orders;
}

/// Applies --speedup STAGE=X: divides the demand of STAGE by X.
void speed_up(Change& change, const std::string& text, const RecordedRun& run) {
    const std::size_t equals = text.rfind('=');
    const std::string name = text.substr(0, equals);
    const auto factor =
        equals == text.npos ? std::nullopt : number_in<double>(std::string_view{text}.substr(equals + 1));
    if (!factor || !(*factor > 0.001 && *factor < 1e6))
        throw UsageError{fmt::format("--speedup must be STAGE=X with X above 0, e.g. decode=2, got '{}'", text)};
    const double demand = 1 / *factor;
    std::vector<std::string> known{"read", "collate", "transfer", "sampler", "compute"};
    double* const parts[]{&change.read, &change.collate, &change.transfer, &change.sampler, &change.compute};
    const auto part = static_cast<std::size_t>(std::ranges::find(known, name) - known.begin());
    if (part < std::size(parts))
        *parts[part] = demand;
    known.insert(known.end(), run.stages.begin(), run.stages.end());
    // "decode" stands for "decode+crop+resize+normalize" if no other stage begins with it.
    std::vector<std::size_t> meant;
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
        if (run.stages[stage] == name)
            meant = {stage};
    if (meant.empty())
        for (std::size_t stage = 0; stage < run.stages.size(); ++stage)
            if (!name.empty() && run.stages[stage].starts_with(name))
                meant.push_back(stage);
    if (meant.size() == 1)
        change.stages[meant.front()] = demand;
    else if (part == std::size(parts))
        throw UsageError{fmt::format("--speedup {}: no stage {}{}, only {}{}", text, name,
                                     meant.empty() ? "" : " alone is meant", fmt::join(known, ", "),
                                     did_you_mean(name, known))};
}

void add_grid(CLI::App& app, WhatifGrid& grid, std::vector<std::size_t>& factors) {
    const auto add_list = [&app](const std::string& option, auto& list, const char* by_default, auto read,
                                 const std::string& description) {
        add_read(app, option, list, by_default, read, description)->type_name("LIST");
    };
    const auto numbers = [](std::size_t low, std::size_t high) {
        return [=](std::string_view option, std::string_view text) { return numbers_in(option, text, low, high); };
    };
    add_list("--num-workers", grid.num_workers, "1..8", numbers(0, loader_limits::most_workers),
             "numbers and ranges, e.g. 1..4,8");
    add_list("--prefetch-depth", grid.prefetch_depth, "1,2,4,8", numbers(1, loader_limits::most_prefetch_depth),
             "the same, of batches loaded ahead");
    add_list("--prefetch-factor", factors, "", numbers(1, loader_limits::most_pytorch_depth),
             "of a PyTorch loader instead: batches ahead for each worker [1,2,4,8]");
    add_list("--order", grid.order, "", orders_in, "in, out, or how many batches may overtake one [as recorded]");
    add_list("--batch-size", grid.batch_size, "", numbers(1, loader_limits::most_batch_size),
             "numbers and ranges [as recorded]");
}

/// Replays the recorded run at every setting of the grid. Throws Failure if that cannot be done. Complains if the
/// predictions are not to be trusted.
Whatif predict(const std::string& file, const SteadyRun& steady, const WhatifGrid& grid) {
    Whatif found;
    try {
        found = drawpoint::whatif(steady.run, grid);
    } catch (const std::invalid_argument& error) {
        throw Failure{fmt::format("{}: {}", file, error.what())};
    }
    found.trust = steady.trust;
    for (const std::string& reason : steady.trust.texts())
        complain(fmt::format("{}: the predictions are not to be trusted: {}", file, reason));
    return found;
}

}   // namespace

int whatif_run(const Invocation& invocation) {
    CommandLine line{invocation, "Predicts what other settings would do, by replaying a recording."};
    CLI::App& app = line.app();
    std::string file, html;
    WhatifGrid grid;
    std::vector<std::string> speedups;
    bool verify = false;
    std::size_t rounds = 3;
    app.add_option("RUN", file, "the recording: a .pftrace file");
    std::vector<std::size_t> factors;
    add_grid(app, grid, factors);
    app.add_option(
           "--speedup", speedups,
           "STAGE=X: as if a stage, read, collate, transfer, sampler or compute were X times as fast; repeatable")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("STAGE=X");
    bool without_variance = false;
    app.add_flag("--without-variance", without_variance, "as if every sample and step took the mean");
    app.add_option("--html", html, "writes a page with charts to this file")->type_name("FILE");
    bool svg = false;
    app.add_flag("--svg", svg, "prints the map of the recommended order and batch size as SVG instead of text")
        ->configurable(false);
    app.add_flag("--verify", verify,
                 "runs the recommended setting and the recorded one in turns, and prints predicted against measured");
    add_number(app, "--rounds", rounds, 1, 100, "with --verify: runs of each");
    OutputFlags flags{app, false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    grid.change.variance = without_variance ? 0 : 1;
    if (verify && (!speedups.empty() || without_variance))
        throw UsageError{fmt::format("--verify runs settings: --{} is none",
                                     speedups.empty() ? "without-variance" : "speedup " + speedups.front())};
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to predict from"};
    check_files(output, "RUN", file);
    check_page(html, "RUN", file);
    for (const std::string& json : output.json_files)
        check_page(html, "--json", json);
    if (svg && (verify || output.form == OutputOptions::Form::json || !output.json_files.empty()))
        throw UsageError{"--svg prints a picture: --json and --verify choose another form"};

    const Ledger ledger = read_steps(file);
    const SteadyRun steady = prepare(ledger);
    if (!steady.run.unusable.empty())
        throw Failure{fmt::format("{}: the run cannot be replayed: {}", file, steady.run.unusable)};
    const bool is_pytorch = steady.run.setting.kind == LoaderKind::pytorch;
    if (is_pytorch ? app.get_option("--prefetch-depth")->count() > 0 : !factors.empty())
        throw UsageError{is_pytorch
                             ? "--prefetch-depth: the recorded loader is PyTorch's, which has --prefetch-factor"
                             : "--prefetch-factor: the recorded loader is not PyTorch's, it has --prefetch-depth"};
    if (is_pytorch && verify)
        throw UsageError{"--verify runs drawpoint profile, but the recorded loader is PyTorch's"};
    if (!factors.empty())
        grid.prefetch_depth = std::move(factors);
    for (const std::string& text : speedups)
        speed_up(grid.change, text, steady.run);
    const Whatif found = predict(file, steady, grid);
    nlohmann::ordered_json document =
        to_json(found, {.version = DRAWPOINT_VERSION, .command = invocation.line}, summary_of(ledger, true).machine);
    std::string text = svg ? to_svg(found) : to_text(found, output.text_options());
    if (!html.empty()) {
        write_file(html, to_html(found, fmt::format("What if: {}", file)));
        complain(fmt::format("wrote {}", html));
    }
    if (svg)
        return print(text), exit_ok;
    if (verify) {
        const Verification verified = verify_setting(ledger, found, rounds);
        text += "\n" + to_text(verified, output.text_options());
        document["verified"] = to_json(verified);
    }
    print_output(text, document, output);
    return exit_ok;
}

}   // namespace drawpoint::cli
