#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_program.hpp"
#include "cli/serve/capture.hpp"
#include "cli/serve/capture_server.hpp"
#include "cli/serve/http_server.hpp"
#include "cli/serve/live_logs.hpp"
#include "cli/serve/live_run.hpp"
#include "cli/serve_options.hpp"
#include <drawpoint/instrumentation/host/detail/signals.hpp>
#include <drawpoint/instrumentation/text/detail/shell.hpp>

extern char** environ;

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kept_bytes = 2u << 20;
constexpr std::chrono::milliseconds look_every{500};

/// When the program ends: a signal came, or there is nothing left to do. With `until_eof` when stdin ends, whatever
/// signals come.
class Ending {
public:
    explicit Ending(bool until_eof = false) {
        if (until_eof)
            for (const int signal : {SIGINT, SIGTERM, SIGHUP})
                std::signal(signal, SIG_IGN);
        else
            signals_.emplace([this](int) {
                by_signal_ = true;
                release();
            });
    }
    void release() {
        if (!released_.test_and_set())
            now_.release();
    }
    [[nodiscard]] bool wait_for(std::chrono::milliseconds time) {
        return signals_ ? now_.try_acquire_for(time) : stdin_ends_within(time);
    }
    [[nodiscard]] int code() const { return by_signal_ ? exit_interrupted : exit_ok; }

private:
    static bool stdin_ends_within(std::chrono::milliseconds time) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        char byte = 0;
        return ::poll(&input, 1, static_cast<int>(time.count())) == 1 && ::read(STDIN_FILENO, &byte, 1) != 1;
    }

    std::binary_semaphore now_{0};
    std::atomic_flag released_{};
    std::atomic<bool> by_signal_{false};
    std::optional<Signals> signals_;
};

/// Where captures and logs are. Throws Failure if nobody can know it.
void print_where(const ServeOptions& options, const std::optional<CaptureServer>& capturing) {
    if (capturing)
        fmt::print("captures {}\n", capturing->address());
    for (const RunLog& log : options.logs)
        fmt::print("log      {}={}\n", log.format, log.path);
    if (std::fflush(stdout) != 0)
        throw Failure{"writing to standard output failed"};
}

/// 130 also if nothing could be logged, because the run never began.
int code_of(const Ending& ending, const LiveLogs& logs) {
    return logs.have_failed()   ? exit_failed
           : !logs.have_begun() ? exit_interrupted
           : logs.are_whole()   ? exit_ok
                                : ending.code();
}

/// Serves captures and logs alone. With --until-eof the process need not have begun its recording.
int serve_without_pages(const ServeOptions& options, Ending& ending) {
    std::optional<FollowedRun> run;
    if (!options.until_eof) {
        run.emplace(followed_run(options.run, kept_bytes));
        run->read();   // throws if it is no recording
        if (run->is_over() && options.capture)
            throw Failure{fmt::format("{}: the run has ended", run->name())};
    }
    const std::string source = run ? run->source() : options.run;
    LiveLogs logs{source, options.logs};
    Captures captures{source};
    std::optional<CaptureServer> capturing;
    if (options.capture)
        capturing.emplace(captures, options.listen, *options.capture);
    print_where(options, capturing);
    while (!ending.wait_for(look_every)) {
        logs.look();
        if (options.until_end && run && (run->read(), run->is_over()))
            break;
    }
    logs.finish();
    return code_of(ending, logs);
}

int serve_run(const ServeOptions& options, const std::string& command_line) {
    std::signal(SIGXFSZ, SIG_IGN);   // a log at its size limit and a closed pipe are errors to report
    std::signal(SIGPIPE, SIG_IGN);
    Ending ending{options.until_eof};   // before other threads
    if (options.no_http)
        return serve_without_pages(options, ending);
    LiveRun run{followed_run(options.run, kept_bytes), command_line};
    LiveLogs logs{run.source(), options.logs};
    const HttpServer pages{run, {.address = options.listen, .port = options.port}};
    Captures captures{run.source()};
    std::optional<CaptureServer> capturing;
    if (options.capture)
        capturing.emplace(captures, options.listen, *options.capture);
    fmt::print("page     {0}\nmetrics  {0}metrics\nreport   {0}report.json\nPerfetto {0}perfetto\n", pages.url());
    print_where(options, capturing);
    bool accepts = true;
    while (!ending.wait_for(look_every)) {
        logs.look();
        accepts = !pages.has_ended();
        if (!accepts || (options.until_end && run.is_over()))
            break;
    }
    logs.finish();
    if (!accepts)
        throw Failure{fmt::format("{}: the system accepts no more connections", pages.url())};
    return code_of(ending, logs);
}

bool has_display() {
    for (const char* const name : {"DISPLAY", "WAYLAND_DISPLAY"})
        if (const char* const value = std::getenv(name); value && *value)
            return true;
    return false;
}

/// Starts the desktop's program for it, with the usual signals. 0: it could not be started.
pid_t open_in_browser(const std::string& url) {
    std::string words[]{"xdg-open", url};
    char* const pointers[]{words[0].data(), words[1].data(), nullptr};
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t id = 0;
    const int error = ::posix_spawnp(&id, pointers[0], nullptr, &attributes, pointers, environ);
    ::posix_spawnattr_destroy(&attributes);
    return error == 0 ? id : 0;
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
    LiveRun run{FollowedRun{options.run, writer_of(options.run), kept_bytes}, command_line};
    if (options.no_browser || !has_display()) {
        print_ways(options.run);
        return exit_ok;
    }
    const HttpServer pages{run, {.port = options.port, .on_recording_sent = [&] { ending.release(); }}};
    const pid_t browser = open_in_browser(pages.url() + "perfetto");
    bool has_failed = browser == 0, runs = !has_failed;
    if (runs)
        complain(fmt::format("opening {}perfetto: this ends when the browser has the recording", pages.url()));
    while (!has_failed && !pages.has_ended() && !ending.wait_for(look_every))
        if (int status = 0; runs && ::waitpid(browser, &status, WNOHANG) == browser) {
            runs = false;   // as it does once the browser has the address
            has_failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
    if (has_failed)
        print_ways(options.run);
    return ending.code();
}

/// `drawpoint serve` and `drawpoint view` become this program with their words.
int dispatch(const std::vector<std::string>& words) {
    if (words.empty() || (words.front() != "serve" && words.front() != "view"))
        throw UsageError{"this is the part of drawpoint that `drawpoint serve` and `drawpoint view` run"};
    Invocation invocation{.command = words.front(), .line = "drawpoint", .arguments = {words.begin() + 1, words.end()}};
    for (const std::string& word : words)
        invocation.line += " " + shell_word(word);
    if (invocation.command == "serve") {
        const auto options = read_options<ServeOptions>(invocation, serve_description);
        return options ? serve_run(*options, invocation.line) : exit_ok;
    }
    const auto options = read_options<ViewOptions>(invocation, view_description);
    return options ? view_run(*options, invocation.line) : exit_ok;
}

}   // namespace
}   // namespace drawpoint::cli

int main(int count, char** words) { return drawpoint::cli::run_program(count, words, drawpoint::cli::dispatch); }
