#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/steps.hpp"
#include "bench/experiment/suite_program.hpp"
#include "bench/suite/turn.hpp"
#include <drawpoint/bench/experiment/detail/interruptible_experiment.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>

namespace drawpoint::bench {

namespace {

constexpr int exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_interrupted = 130;

struct Options {
    std::vector<std::string> rows, to;
    std::size_t rounds = 0, runs = 1;
    double turn_ms = 200, error_percent = 1;
    std::optional<std::uint64_t> seed;
    std::string json, html, once;
    bool prints_json = false, lists = false, digest = false, in_steps = false;

    void add_to(CLI::App& app, const Suite& suite) {
        std::vector<std::string> names;
        for (const Suite::Row& row : suite.rows())
            names.push_back(row.name);
        const auto finite = [](const std::string& text) -> std::string {
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : "must be a finite number";
        };
        app.add_option("--row", rows, "measures this row; repeatable: the first one is the base [all]")
            ->check(CLI::IsMember(names))
            ->expected(1)
            ->allow_extra_args(false)   // or CLI11 would take "[a]" for a list
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        app.add_option("--rounds", rounds, "turns of each row; 0: at least 15, and 5 seconds [0]")
            ->check(CLI::Range(0, 10'000));
        app.add_option("--turn-ms", turn_ms, "a turn is as many runs as take so many milliseconds [200]")
            ->check(finite)
            ->check(CLI::Range(0.0, 1e6));
        app.add_option("--error", error_percent, "probability in % that any bound is wrong [1]")
            ->check(finite)
            ->check(CLI::Range(1e-6, 50.0));
        app.add_option("--seed", seed, "of the orders of turns [drawn anew]");
        app.add_option("--json", json, "JSON on stdout in place of the table; --json=FILE: beside it")->expected(0, 1);
        app.add_option("--html", html, "writes a page of HTML with a picture of the ratios; as --to html=FILE");
        app.add_option("--to", to,
                       fmt::format("FORMAT=FILE, repeatable: writes a file for another program; FORMAT is {}",
                                   fmt::join(experiment_formats(), ", ")))
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        std::string own;
        for (const auto& [name, help] : suite.options())
            own += fmt::format("{}  {} VALUE: {}", own.empty() ? "of this suite:\n" : "\n", name, help);
        app.footer(own);
        app.add_flag("--list", lists, "prints the names of the rows as JSON");
        CLI::Option* only =
            app.add_option("--once", once, "a row: measures it once, in this process, and prints a line of JSON")
                ->check(CLI::IsMember(names));
        CLI::Option* number =
            app.add_option("--runs", runs, "with --once: how many runs [1]")->check(CLI::PositiveNumber)->needs(only);
        app.add_flag("--steps", in_steps, "with --once: runs when a program that opened descriptor 3 says so")
            ->needs(only)
            ->excludes(number);
        app.add_flag("--digest", digest, "with --once: also a digest of the row's output")->needs(only);
    }

    /// The rows to measure, by name, each once.
    [[nodiscard]] std::vector<std::string> chosen(const Suite& suite) const {
        std::vector<std::string> all;
        for (const std::string& row : rows)
            if (std::ranges::find(all, row) == all.end())
                all.push_back(row);
        if (!all.empty())
            return all;
        for (const Suite::Row& row : suite.rows())
            all.push_back(row.name);
        return all;
    }
};

/// The words that start this program again.
std::vector<std::string> own_command() {
    std::ifstream file{"/proc/self/cmdline", std::ios::binary};
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');)
        words.push_back(std::move(word));
    if (words.empty())
        throw std::runtime_error{"/proc/self/cmdline cannot be read"};
    return words;
}

void measure_once(const Suite& suite, const Options& options, bool optimised) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);   // nobody would read what it prints
    if (options.in_steps)
        take_channel();
    const auto row = std::ranges::find(suite.rows(), options.once, &Suite::Row::name);
    std::size_t left = options.runs;
    const auto next = [&] { return options.in_steps ? next_step() : std::exchange(left, 0); };
    RowTurn turn = take_turn(*row, next, options.digest);
    turn.optimised = optimised;
    fmt::print("\n{}\n", turn_to_json(turn).dump());   // after whatever the user's code has printed
}

void list(const Suite& suite, const Options& options) {
    const nlohmann::ordered_json document{
        {"schema", "drawpoint.suite/1"}, {"suite", suite.name()}, {"rows", options.chosen(suite)}};
    fmt::print("\n{}\n", document.dump());
}

int measure(const Suite& suite, const Options& options, const std::string& command) {
    std::vector<ExportFile> exports;
    for (const std::string& text : options.to) {
        try {
            exports.push_back(export_file_in(text));
        } catch (const std::invalid_argument& error) {
            throw CLI::ValidationError{"--to", error.what()};
        }
    }
    std::vector<std::string> files{options.json};
    for (const ExportFile& one : exports) {
        if (std::ranges::any_of(files, [&](const std::string& other) { return same_file(one.file, other); }))
            throw CLI::ValidationError{"--to", fmt::format("{} is to be written twice", one.file)};
        files.push_back(one.file);
    }
    for (const std::string& file : files)
        if (!file.empty())
            check_output_file(file);
    std::vector<std::unique_ptr<Contender>> contenders;
    const std::vector<std::string> program = own_command();
    for (const std::string& row : options.chosen(suite))
        contenders.push_back(std::make_unique<SuiteProgram>(row, row, "/proc/self/exe", program, row));
    InterruptibleExperiment experiment{
        std::move(contenders),
        {.least_turn = std::chrono::nanoseconds{static_cast<std::int64_t>(options.turn_ms * 1e6)},
         .seed = options.seed.value_or(std::random_device{}()),
         .leaves_out = true}};
    const bool interrupted = experiment.run(
        [](const Measurements&) {}, [&](const Measurements& measured) { return are_enough(measured, options.rounds); },
        [](std::size_t rounds) { fmt::print(stderr, "{} rounds\n", rounds); });
    const Measurements& measured = experiment.measurements();
    if (measured.rounds.empty())
        return exit_interrupted;
    const double error = options.error_percent / 100;
    const auto comparisons = compare(measured, error);
    bool are_equal = true;
    for (std::size_t row = 0; row < measured.contenders.size(); ++row)
        are_equal = are_equal && differing_parts(measured, row).empty();
    nlohmann::ordered_json document =
        to_json(measured, comparisons, error, {.version = DRAWPOINT_VERSION, .command = command}, this_machine());
    document["suite"] = suite.name();
    const std::vector<std::string> failures = write_exports(exports, measured, comparisons);
    for (const std::string& failure : failures)
        fmt::print(stderr, "{}: {}\n", suite.name(), failure);
    std::exception_ptr failed;
    try {   // files before stdout, whose reader may be gone
        if (!options.json.empty())
            write_output_file(options.json, json_text(document));
    } catch (const std::runtime_error&) {
        failed = std::current_exception();
    }
    if (options.prints_json && options.json.empty())
        fmt::print("{}", json_text(document));
    else
        fmt::print("{}", to_text(measured, comparisons, error));
    if (failed)
        std::rethrow_exception(failed);
    const bool all_ran = std::ranges::all_of(measured.not_run, &std::string::empty);
    const bool is_fine = all_ran && are_equal && failures.empty();
    return interrupted ? exit_interrupted : is_fine ? exit_ok : exit_failed;
}

}   // namespace

int main(const Suite& suite, int argc, char** argv, bool optimised) {
    Options options;
    CLI::App app{fmt::format("The benchmark suite {}", suite.name()), suite.name()};
    std::vector<std::string> words(argv + std::clamp(argc, 0, 1), argv + std::max(argc, 0));
    try {
        options.add_to(app, suite);
        const std::string command = fmt::format("{}", fmt::join(own_command(), " "));
        for (std::string& word : words)   // or the next word would be taken for the file
            if (word == "--json")
                word += '=';
        std::ranges::reverse(words);
        app.parse(words);
        options.prints_json = app.get_option("--json")->count() > 0;
        if (!options.html.empty())
            options.to.push_back("html=" + options.html);
        if (suite.rows().empty())
            throw std::runtime_error{"the suite has no rows"};
        int status = exit_ok;
        if (options.lists)
            list(suite, options);
        else if (!options.once.empty())
            measure_once(suite, options, optimised);
        else
            status = measure(suite, options, command);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            throw std::runtime_error{"stdout cannot be written"};
        return status;
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "{}: {}\n", suite.name(), error.what());
        return exit_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", suite.name(), error.what());
        return exit_failed;
    }
}

}   // namespace drawpoint::bench
