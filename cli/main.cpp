#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.hpp"
#include "cli/command_page.hpp"
#include "cli/completion.hpp"
#include "cli/program.hpp"
#include "cli/report_output.hpp"
#include "cli/run_program.hpp"
#include <drawpoint/instrumentation/text/detail/shell.hpp>

namespace drawpoint::cli {
namespace {

struct Command {
    std::string_view name;
    int (*run)(const Invocation&);
    std::string_view what;
};

int print_completion(const Invocation&);
int print_man_page(const Invocation&);

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
    Command{"completion", print_completion, "prints a script by which a shell completes commands and options"},
    Command{"man", print_man_page, "prints a manual page"},
};

void print_usage(std::FILE* to) {
    const std::size_t width = width_of_stdout().value_or(usual_width);
    std::string text = "usage: drawpoint COMMAND [OPTIONS]\n\n";
    for (const Command& command : commands)
        text += two_columns(fmt::format("  {}", command.name), command.what, 14, width);
    text +=
        "\n" +
        two_columns("", "drawpoint help COMMAND lists a command's options; drawpoint --version prints the version.", 0,
                    width) +
        two_columns(
            "", "Exit codes: 0 ok, 1 failed, 2 bad usage, 3 slower (gate), 130 stopped by Ctrl-C, SIGTERM or SIGHUP.",
            0, width);
    write_to(to, text);
}

/// What each command takes, as the command itself says.
std::vector<CommandPage> all_pages() {
    std::vector<CommandPage> pages;
    const auto ask = [&](const Command& command, std::vector<std::string> arguments) {
        CommandPage& page = pages.emplace_back();
        (void)command.run(
            {.command = std::string{command.name}, .line = {}, .arguments = std::move(arguments), .page = &page});
    };
    for (const Command& command : commands)
        if (command.run == dataset)
            for (const std::string_view action : dataset_actions)
                ask(command, {std::string{action}});
        else
            ask(command, {});
    std::vector<std::string> names;
    for (const Command& command : commands)
        names.emplace_back(command.name);
    pages.back().options.front().value = fmt::format("{}", fmt::join(names, "|"));   // of man, which is the last
    return pages;
}

int print_completion(const Invocation& invocation) {
    CommandLine line{invocation, "Prints a script by which a shell completes commands, options and values."};
    std::string shell;
    line.app().add_option("bash|zsh|fish", shell, "the shell; e.g. source <(drawpoint completion bash)");
    if (!line.parse())
        return exit_ok;
    if (shell != "bash" && shell != "zsh" && shell != "fish")
        throw UsageError{fmt::format("completion needs one of bash, zsh, fish, got '{}'", shell)};
    write_to(stdout, completion_script(shell, all_pages()));
    return exit_ok;
}

int print_man_page(const Invocation& invocation) {
    CommandLine line{invocation, "Prints a manual page, for man."};
    std::vector<std::string> words;
    std::string folder;
    line.app().add_option("COMMAND", words, "the command, e.g. dataset crops [drawpoint itself]")->expected(0, 2);
    line.app().add_option("--folder", folder, "writes all pages to this folder instead")->type_name("FOLDER");
    if (!line.parse())
        return exit_ok;
    const std::vector<CommandPage> pages = all_pages();
    const std::string name = fmt::format("{}", fmt::join(words, " "));
    if (!folder.empty()) {
        std::filesystem::create_directories(folder);
        write_file(folder + "/drawpoint.1", main_man_page(pages));
        for (const CommandPage& page : pages)
            write_file(fmt::format("{}/{}.1", folder, man_name(page)), man_page(page));
        return exit_ok;
    }
    if (name.empty()) {
        write_to(stdout, main_man_page(pages));
        return exit_ok;
    }
    const auto found = std::ranges::find(pages, name, &CommandPage::command);
    if (found == pages.end()) {
        std::vector<std::string> names;
        for (const CommandPage& page : pages)
            names.push_back(page.command);
        throw UsageError{name == "dataset"
                             ? fmt::format("man dataset needs one of {}", fmt::join(dataset_actions, ", "))
                             : fmt::format("there is no command {}{}", name, did_you_mean(name, names))};
    }
    write_to(stdout, man_page(*found));
    return exit_ok;
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
