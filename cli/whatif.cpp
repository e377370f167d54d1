#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/number_in.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/verification.hpp"
#include "diagnosis/steady/steady_run.hpp"
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>

namespace drawpoint::cli {
namespace {

using Form = OutputOptions::Form;

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == text.npos)
            return parts;
        text.remove_prefix(end + 1);
    }
}

/// "1..4,8": 1, 2, 3, 4 and 8, each between `low` and `high`.
std::vector<std::size_t> numbers_in(std::string_view option, std::string_view text, std::size_t low, std::size_t high) {
    std::vector<std::size_t> numbers;
    if (text.empty())
        return numbers;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dots = part.find("..");
        const auto from = number_in<std::size_t>(part.substr(0, dots));
        const auto to = dots == part.npos ? from : number_in<std::size_t>(part.substr(dots + 2));
        if (!from || !to || *from > *to)
            throw UsageError{fmt::format("--{} must be numbers like 1..4,8, got '{}'", option, text)};
        if (*from < low || *to > high)
            throw UsageError{fmt::format("--{} must be between {} and {}, got {}", option, low, high, part)};
        for (std::size_t number = *from; number <= *to; ++number)
            numbers.push_back(number);
    }
    return numbers;
}

std::vector<OrderRule> orders_in(std::string_view text) {
    std::vector<OrderRule> orders;
    if (text.empty())
        return orders;
    for (const std::string_view part : split(text, ',')) {
        const auto order = OrderRule::parse(part);
        if (!order)
            throw UsageError{fmt::format("--order must be in, out or numbers of batches above 0, got '{}'", text)};
        orders.push_back(*order);
    }
    return orders;
}

/// Of --speedup STAGE=X: the demand of STAGE is divided by X.
void speed_up(Change& change, const std::string& text, const RecordedRun& run) {
    const std::size_t equals = text.rfind('=');
    const std::string name = text.substr(0, equals);
    const auto factor =
        equals == text.npos ? std::nullopt : number_in<double>(std::string_view{text}.substr(equals + 1));
    if (!factor || !(*factor > 0.001 && *factor < 1e6))
        throw UsageError{fmt::format("--speedup must be STAGE=X with X above 0, e.g. decode=2, got '{}'", text)};
    const double demand = 1 / *factor;
    if (name == "read")
        change.read = demand;
    else if (name == "collate")
        change.collate = demand;
    else if (name == "transfer")
        change.transfer = demand;
    else if (name == "compute")
        change.compute = demand;
    std::vector<std::string> known{"read", "collate", "transfer", "compute"};
    known.insert(known.end(), run.stages.begin(), run.stages.end());
    // "decode" stands for "decode+crop+resize+normalize" where nothing else begins so.
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
    else if (std::ranges::find(known.begin(), known.begin() + 4, name) == known.begin() + 4)
        throw UsageError{fmt::format("--speedup {}: no stage {}{}, only {}{}", text, name,
                                     meant.empty() ? "" : " alone is meant", fmt::join(known, ", "),
                                     did_you_mean(name, known))};
}

}   // namespace

int whatif_run(const Invocation& invocation) {
    CommandLine line{invocation, "Predicts what other settings would do, by replaying a recording."};
    std::string file, workers = "1..8", depths = "1,2,4,8", orders = "", sizes, html;
    std::vector<std::string> speedups;
    bool without_variance = false, verify = false;
    std::int64_t rounds = 3;
    line.app().add_option("RUN", file, "the recording: a .pftrace file");
    line.app().add_option("--num-workers", workers, "numbers and ranges, e.g. 1..4,8")->type_name("LIST");
    line.app().add_option("--prefetch-depth", depths, "the same, of batches loaded ahead")->type_name("LIST");
    line.app()
        .add_option("--order", orders, "in, out, or how many batches may overtake one [as recorded]")
        ->type_name("LIST");
    line.app().add_option("--batch-size", sizes, "numbers and ranges [as recorded]")->type_name("LIST");
    line.app()
        .add_option("--speedup", speedups,
                    "STAGE=X: as if a stage, read, collate, transfer or compute were X times as "
                    "fast; repeatable")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    line.app().add_flag("--without-variance", without_variance, "as if every sample and step took the mean");
    line.app().add_option("--html", html, "writes a page with charts to this file");
    line.app().add_flag(
        "--verify", verify,
        "runs the recommended setting and the recorded one in turns, and prints predicted against measured");
    line.app().add_option("--rounds", rounds, "with --verify: runs of each");
    const OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    WhatifGrid grid{.num_workers = numbers_in("num-workers", workers, 0, loader_limits::most_workers),
                    .prefetch_depth = numbers_in("prefetch-depth", depths, 1, loader_limits::most_prefetch_depth),
                    .batch_size = numbers_in("batch-size", sizes, 1, loader_limits::most_batch_size),
                    .order = orders_in(orders)};
    if (rounds < 1 || rounds > 100)
        throw UsageError{fmt::format("--rounds must be between 1 and 100, got {}", rounds)};
    if (verify && (!speedups.empty() || without_variance))
        throw UsageError{fmt::format("--verify runs settings: --{} is none",
                                     speedups.empty() ? std::string{"without-variance"}
                                                      : fmt::format("speedup {}", speedups.front()))};
    if (file.empty())
        throw UsageError{"RUN is missing: the recording to predict from"};
    check_files(output, "RUN", file);
    if (!html.empty()) {
        std::error_code unknown;
        if (std::filesystem::equivalent(file, html, unknown))
            throw UsageError{fmt::format("RUN {} and --html {} name the same file", file, html)};
        check_files({.json_files = {html}}, "RUN", "");
    }

    const ReadTrace trace = read_run(file);
    if (trace.ledger.steps.empty())
        throw Failure{(trace.warning.empty() ? file : trace.warning) + ": no steps"};
    if (!trace.warning.empty())
        complain(trace.warning);
    const SteadyRun steady = prepare(trace.ledger);
    const RecordedRun& run = steady.run;
    if (!run.unusable.empty())
        throw Failure{fmt::format("{}: the run cannot be replayed: {}", file, run.unusable)};
    grid.change.without_variance = without_variance;
    for (const std::string& text : speedups)
        speed_up(grid.change, text, run);
    Whatif found;
    try {
        found = drawpoint::whatif(run, grid);
        found.trust = steady.trust;
    } catch (const std::invalid_argument& error) {
        throw Failure{fmt::format("{}: {}", file, error.what())};
    }

    for (const std::string& reason : steady.trust.texts())
        complain(fmt::format("{}: the predictions are not to be trusted: {}", file, reason));

    const JsonHead head{.version = DRAWPOINT_VERSION, .command = invocation.line};
    nlohmann::ordered_json document = to_json(found, head, summary_of(trace.ledger, true).machine);
    std::string text = to_text(found);
    if (!html.empty()) {
        write_file(html, to_html(found, fmt::format("What if: {}", file)));
        complain(fmt::format("wrote {}", html));
    }
    if (verify) {
        const Verification verified = verify_setting(trace.ledger, found, static_cast<std::size_t>(rounds));
        text += "\n" + to_text(verified);
        document["verified"] = to_json(verified);
    }
    print(output.form == Form::json ? json_text(document) : text);
    for (const std::string& json : output.json_files)
        write_file(json, json_text(document));
    return exit_ok;
}

}   // namespace drawpoint::cli
