#include <algorithm>
#include <filesystem>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "cli/program.hpp"
#include <drawpoint/instrumentation/text/detail/shell.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

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

/// Opens /dev/null for each closed standard stream. Otherwise the next file that is opened would take the stream's
/// number and receive its output.
void fill_closed_streams() noexcept {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0)
            (void)open("/dev/null", O_RDONLY);   // takes the lowest free number
}

/// Gives new threads stacks of at least 1 MiB, also under a small `ulimit -s`: they decompress and compute.
void enlarge_thread_stacks() noexcept {
    constexpr std::size_t least_bytes = std::size_t{1} << 20;
    pthread_attr_t attributes;
    std::size_t bytes = least_bytes;
    if (pthread_getattr_default_np(&attributes) != 0)
        return;
    if (pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < least_bytes &&
        pthread_attr_setstacksize(&attributes, least_bytes) == 0)
        (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

/// Whether the reader of our output has closed it, as in `drawpoint … | head`.
bool reader_has_gone() noexcept {
    pollfd out{STDOUT_FILENO, 0, 0};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
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

int main(int count, char** words) {
    using namespace drawpoint::cli;
    fill_closed_streams();
    enlarge_thread_stacks();
    int code = exit_failed;
    try {
        code = dispatch({words + 1, words + count});
    } catch (const UsageError& error) {
        complain(error.what());
        return exit_usage;
    } catch (const std::bad_alloc&) {
        complain("out of memory");
    } catch (const std::system_error& error) {
        const bool no_thread = error.code() == std::errc::resource_unavailable_try_again &&
                               dynamic_cast<const std::filesystem::filesystem_error*>(&error) == nullptr;
        complain(no_thread ? fmt::format("cannot start a thread: {}", error.what()) : error.what());
    } catch (const std::exception& error) {
        complain(error.what());
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        if (!reader_has_gone())
            complain("writing to standard output failed");
        return exit_failed;
    }
    return code;
}
