#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.hpp"
#include "cli/experiment.hpp"
#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

/// Reads NAME=LINE.
std::unique_ptr<bench::Contender> contender_in(const std::string& text, bench::Reports reports) {
    const std::size_t equals = text.find('=');
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
    if (equals == text.npos || equals == 0 ||
        !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), is_plain))
        throw UsageError{
            fmt::format("--command must be NAME='COMMAND LINE', got '{}' (a name has letters of ASCII, digits, "
                        "'_', '-', '.')",
                        text)};
    if (text.find_first_not_of(" \t", equals + 1) == text.npos)
        throw UsageError{fmt::format("--command {} has no command line", text)};
    return bench::make_command(text.substr(0, equals), text.substr(equals + 1), reports);
}

}   // namespace

int bench_commands(const Invocation& invocation) {
    CommandLine line{invocation, "Times whole commands in rounds, and compares them with the first one."};
    CLI::App& app = line.app();
    std::vector<std::string> commands;
    std::size_t rounds = 0;
    app.add_option("--command", commands, "NAME='COMMAND LINE'; repeatable: the first one is the base")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("NAME=LINE");
    add_number(app, "--rounds", rounds, 0, 10'000, "turns of each; 0: at least 15, and 5 seconds");
    ExperimentFlags flags{app};
    if (!line.parse())
        return exit_ok;
    if (commands.empty())
        throw UsageError{"--command is missing: what to time"};
    flags.read();
    std::vector<std::unique_ptr<bench::Contender>> contenders;
    for (const std::string& text : commands)
        contenders.push_back(contender_in(text, flags.reports()));
    std::optional<bench::InterruptibleExperiment> experiment;
    bench::ExperimentOptions options = flags.options();
    options.leaves_out = flags.reports() == bench::Reports::row;
    try {
        experiment.emplace(std::move(contenders), options);
    } catch (const std::invalid_argument& error) {
        throw UsageError{fmt::format("--command: {}", error.what())};
    }
    const bool interrupted = run(
        *experiment, [](const bench::Measurements&) {},
        [&](const bench::Measurements& measured) { return bench::are_enough(measured, rounds); });
    const bench::Measurements& measured = experiment->measurements();
    bool is_fine = true;
    if (!measured.rounds.empty())
        is_fine = flags.print(flags.report(measured, flags.error(), invocation), measured);
    const auto fail = [&](const std::string& reason) {
        complain(printable(reason));
        is_fine = false;
    };
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
        if (!measured.not_run[contender].empty())
            fail("not run: " + measured.not_run[contender]);
        std::ranges::for_each(differing_parts(measured, contender), fail);
    }
    if (!measured.failure.empty())
        fail(measured.failure);
    else if (const std::string reason = bench::unfit(measured);
             !reason.empty() && flags.form() != OutputOptions::Form::text)   // the text has it
        complain(printable("the figures mean nothing: " + reason));
    return interrupted ? exit_interrupted : is_fine ? exit_ok : exit_failed;
}

}   // namespace drawpoint::cli
