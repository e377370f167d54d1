#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/option_values.hpp"
#include "cli/run_program.hpp"
#include "cli/serve/capture.hpp"
#include "cli/serve/capture_server.hpp"
#include "cli/serve/http_server.hpp"
#include "cli/serve/live_run.hpp"
#include "cli/serve_options.hpp"
#include <drawpoint/instrumentation/host/detail/signals.hpp>
#include <drawpoint/instrumentation/text/detail/shell.hpp>

extern char** environ;

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kept_bytes = 2u << 20;
constexpr auto look_every = 500ms;

/// Why the program ends: a signal came, or there is nothing left to do.
struct Ending {
    std::binary_semaphore now{0};
    std::atomic<bool> by_signal{false};
    Signals signals{[this](int) {
        by_signal = true;
        now.release();
    }};
};

/// Whether nobody records what is served.
bool is_over(const std::string& run_or_pid, LiveRun* run) {
    if (run)
        return run->is_over();
    if (const auto pid = number_in<int>(run_or_pid); pid && !std::filesystem::exists(run_or_pid))
        return ::kill(*pid, 0) != 0 && errno == ESRCH;
    return run_or_pid.empty() ? live_recordings().empty() : !writer_of(run_or_pid);
}

int serve_run(const ServeOptions& options, const std::string& command_line) {
    Ending ending;   // before other threads
    std::optional<LiveRun> run;
    std::optional<HttpServer> pages;
    if (!options.no_http) {
        run.emplace(followed_run(options.run, kept_bytes), command_line);
        pages.emplace(*run, HttpServer::Options{.address = options.listen, .port = options.port});
    }
    Captures captures{options.run};
    std::optional<CaptureServer> capturing;
    if (options.capture)
        capturing.emplace(captures, options.listen, *options.capture);
    if (pages)
        fmt::print("page     {0}\nmetrics  {0}metrics\nreport   {0}report.json\nPerfetto {0}perfetto\n", pages->url());
    if (capturing)
        fmt::print("captures {}\n", capturing->address());
    std::fflush(stdout);
    while (!ending.now.try_acquire_for(look_every))
        if (options.until_end && is_over(options.run, run ? &*run : nullptr))
            break;
    return ending.by_signal ? exit_interrupted : exit_ok;
}

bool has_display() {
    for (const char* const name : {"DISPLAY", "WAYLAND_DISPLAY"})
        if (const char* const value = std::getenv(name); value && *value)
            return true;
    return false;
}

/// Whether the desktop's program for it was started.
bool open_in_browser(const std::string& url) {
    std::string words[]{"xdg-open", url};
    char* const pointers[]{words[0].data(), words[1].data(), nullptr};
    pid_t id = 0;
    return ::posix_spawnp(&id, pointers[0], nullptr, nullptr, pointers, environ) == 0;
}

void print_ways(const std::string& run) {
    fmt::print("There is no browser here. Either open https://ui.perfetto.dev and give it the file {0}, or\n"
               "  drawpoint serve {1}                  # here\n"
               "  ssh -L 9464:127.0.0.1:9464 THIS_HOST     # on the machine with the browser; then open\n"
               "  http://127.0.0.1:9464/perfetto\n",
               run, shell_word(run));
}

int view_run(const ViewOptions& options, const std::string& command_line) {
    Ending ending;
    LiveRun run{FollowedRun{options.run, std::nullopt, kept_bytes}, command_line};
    if (options.no_browser || !has_display()) {
        print_ways(options.run);
        return exit_ok;
    }
    const HttpServer pages{run, {.port = options.port, .on_recording_sent = [&] { ending.now.release(); }}};
    if (!open_in_browser(pages.url() + "perfetto")) {
        print_ways(options.run);
        return exit_ok;
    }
    complain(fmt::format("opening {}perfetto: this ends when the browser has the recording", pages.url()));
    ending.now.acquire();
    return ending.by_signal ? exit_interrupted : exit_ok;
}

template <class Options>
int with_options(const Invocation& invocation, const char* description,
                 int (*action)(const Options&, const std::string&)) {
    Options options;
    CommandLine line{invocation, description};
    options.add_to(line.app());
    if (!line.parse())
        return exit_ok;
    options.check_together();
    return action(options, invocation.line);
}

/// `drawpoint serve` and `drawpoint view` become this program with their words.
int dispatch(const std::vector<std::string>& words) {
    if (words.empty() || (words.front() != "serve" && words.front() != "view"))
        throw UsageError{"this is the part of drawpoint that `drawpoint serve` and `drawpoint view` run"};
    Invocation invocation{.command = words.front(), .line = "drawpoint", .arguments = {words.begin() + 1, words.end()}};
    for (const std::string& word : words)
        invocation.line += " " + shell_word(word);
    return invocation.command == "serve" ? with_options<ServeOptions>(invocation, serve_description, serve_run)
                                         : with_options<ViewOptions>(invocation, view_description, view_run);
}

}   // namespace
}   // namespace drawpoint::cli

int main(int count, char** words) { return drawpoint::cli::run_program(count, words, drawpoint::cli::dispatch); }
