#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "cli/program.hpp"
#include "cli/run_program.hpp"
#include <drawpoint/instrumentation/text/detail/shell.hpp>

namespace drawpoint::cli {
namespace {

struct Command {
    std::string_view name;
    int (*run)(const Invocation&);
    std::string_view what;
};

constexpr std::array commands{
    Command{"profile", profile, "trains a model on a data set through the DataLoader, records, prints the report"},
    Command{"report", report, "prints any report from a recording"},
    Command{"diagnose", diagnose_run,
            "says what holds a run back, with evidence and the predicted gain of each change"},
    Command{"whatif", whatif_run, "predicts what other settings would do, by replaying a recording"},
    Command{"top", top, "shows a run while it trains, in the terminal"},
    Command{"serve", serve, "shows a run, also while it trains, to browsers and Prometheus; answers profile captures"},
    Command{"view", view, "opens a recording in Perfetto"},
    Command{"export", export_run, "writes a recording as a file that other programs read"},
    Command{"dataset", dataset, "crops, generate, pack or info: makes and checks image folders and tar shards"},
    Command{"bench", bench, "runs a suite of benchmarks (this loader beside others, its parts), or compares commands"},
    Command{"compare", compare, "explains the difference of two runs' wall times"},
    Command{"gate", gate_run, "says whether a command is slower than another, by racing them until it is sure"},
    Command{"doctor", doctor, "what this machine, build and environment offer"},
    Command{"tune", tune_loader, "finds the smallest setting of the loader within 2 % of the best, live"},
};

void print_usage(std::FILE* to) {
    std::string text = "usage: drawpoint COMMAND [OPTIONS]\n\n";
    for (const Command& command : commands)
        text += fmt::format("  {:<10}{}\n", command.name, command.what);
    write_to(
        to,
        text + "\ndrawpoint help COMMAND lists a command's options; drawpoint --version prints the version.\n"
               "Exit codes: 0 ok, 1 failed, 2 bad usage, 3 slower (gate), 130 stopped by Ctrl-C, SIGTERM or SIGHUP.\n");
}

int dispatch(const std::vector<std::string>& words) {
    if (words.empty()) {
        print_usage(stderr);
        throw UsageError{"no command given"};
    }
    const std::string& name = words.front();
    if (name == "help" && words.size() > 1) {   // as git's
        std::vector<std::string> asked{words.begin() + 1, words.end()};
        asked.emplace_back("--help");
        return dispatch(asked);
    }
    if (name == "--help" || name == "-h" || name == "help") {
        print_usage(stdout);
        return exit_ok;
    }
    if (name == "--version") {
        fmt::print("drawpoint {}\n", DRAWPOINT_VERSION);
        return exit_ok;
    }
    std::vector<std::string> names;
    for (const Command& command : commands)
        names.emplace_back(command.name);
    const auto found = std::ranges::find(commands, name, &Command::name);
    if (found == commands.end()) {
        throw UsageError{fmt::format("unknown {} {}{}", name.starts_with('-') ? "option" : "command", name,
                                     did_you_mean(name, names))};
    }
    Invocation invocation{.command = name,
                          .line = "drawpoint",
                          .arguments = {words.begin() + 1, words.end()},
                          .commands = std::move(names)};
    for (const std::string& word : words)
        invocation.line += " " + shell_word(word);
    return found->run(invocation);
}

}   // namespace

}   // namespace drawpoint::cli

int main(int count, char** words) { return drawpoint::cli::run_program(count, words, drawpoint::cli::dispatch); }
