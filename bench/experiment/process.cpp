#include "bench/experiment/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drawpoint/bench/experiment/contender.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

constexpr std::string_view special_to_shells = "\"'\\`$|&;<>()*?[]#~=%!{}\n";

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    constexpr const char* blanks = " \t";
    for (std::size_t from = line.find_first_not_of(blanks); from != std::string::npos;) {
        const std::size_t to = line.find_first_of(blanks, from);
        words.push_back(line.substr(from, to - from));
        from = line.find_first_not_of(blanks, to);
    }
    return words;
}

/// How a process is started. `output` below 0: its output is discarded.
class SpawnSettings {
public:
    SpawnSettings(int output, int error_output, int channel, bool own_group) {
        posix_spawnattr_init(&attributes);
        posix_spawn_file_actions_init(&actions);
        sigset_t all, none;
        sigfillset(&all);
        sigemptyset(&none);
        const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
        posix_spawnattr_setflags(&attributes,
                                 static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (output < 0)
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        else
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, error_output, STDERR_FILENO);
        if (channel >= 0)   // last, because one of the others may have its number
            posix_spawn_file_actions_adddup2(&actions, channel, Process::channel_number);
    }
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;

    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
};

}   // namespace

/// A file in memory that receives what a command writes.
class Process::Output {
public:
    Output() : descriptor_{memfd_create("output", MFD_CLOEXEC)} {
        if (descriptor_ < 0)
            throw std::system_error{errno, std::generic_category(), "memfd_create"};
    }
    ~Output() { close(descriptor_); }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// The last line that is not empty.
    [[nodiscard]] std::string last_line() const {
        std::array<char, 1024> room;
        const off_t size = lseek(descriptor_, 0, SEEK_END);
        const off_t from = std::max<off_t>(0, size - static_cast<off_t>(room.size()));
        const ssize_t got = pread(descriptor_, room.data(), room.size(), from);
        return printable(bench::last_line({room.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))}));
    }

    [[nodiscard]] std::string all() const {
        std::string text(static_cast<std::size_t>(std::max<off_t>(0, lseek(descriptor_, 0, SEEK_END))), '\0');
        const ssize_t got = pread(descriptor_, text.data(), text.size(), 0);
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return text;
    }

private:
    int descriptor_;
};

std::string_view last_line(std::string_view output) noexcept {
    const std::size_t end = output.find_last_not_of("\r\n \t");
    output = output.substr(0, end == output.npos ? 0 : end + 1);
    return output.substr(output.find_last_of("\r\n") + 1);
}

Process::Process(std::string name, std::string line)
    : name_{std::move(name)},
      line_{std::move(line)},
      by_shell_{line_.find_first_of(special_to_shells) != std::string::npos} {
    words_ = by_shell_ ? std::vector<std::string>{"/bin/sh", "-c", line_} : words_of(line_);
    if (words_.empty())
        throw NotRun{fmt::format("{}: the command is empty", name_)};
    file_ = words_.front();
}

Process::Process(std::string name, std::string line, std::string file, std::vector<std::string> words)
    : name_{std::move(name)}, line_{std::move(line)}, file_{std::move(file)}, words_{std::move(words)} {}

Process::~Process() { give_up(); }

void Process::give_up() noexcept {
    if (running_ == 0)
        return;
    kill(own_group_ ? -running_ : running_, SIGKILL);
    try {
        (void)finish();
    } catch (const std::exception&) {   // it was killed
    }
}

void Process::start(bool keeps_output, const std::vector<std::string>& words, int channel) {
    error_output_ = std::make_unique<Output>();
    output_ = keeps_output ? std::make_unique<Output>() : nullptr;
    begin_ = std::chrono::steady_clock::now();
    spawn(words, channel);
}

Process::Ended Process::finish() {
    if (running_ == 0)
        throw std::logic_error{name_ + ": nothing is running"};
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(running_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    Ended ended{.wall = std::chrono::steady_clock::now() - begin_};
    int status = 0;
    reap(status, ended.usage);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                                    : fmt::format("ended with exit code {}", WEXITSTATUS(status));
        const std::string last = error_output_->last_line();
        throw NotRun{fmt::format("{}: {} {}{}{}", name_, printable(line_), how, last.empty() ? "" : ": ", last)};
    }
    if (output_)
        ended.output = output_->all();
    return ended;
}

void Process::cancel() noexcept {
    const std::lock_guard lock{mutex_};
    cancelled_ = true;
    if (running_ > 0)
        kill(own_group_ ? -running_ : running_, SIGKILL);
}

void Process::spawn(const std::vector<std::string>& more, int channel) {
    const SpawnSettings settings{output_ ? output_->descriptor() : -1, error_output_->descriptor(), channel,
                                 own_group_};
    std::vector<std::string> words = words_;
    if (by_shell_ && !more.empty()) {
        words.back() += " \"$@\"";
        words.emplace_back("sh");
    }
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::lock_guard lock{mutex_};
    if (cancelled_)
        throw Cancelled{};
    const int failed =
        posix_spawnp(&running_, file_.c_str(), &settings.actions, &settings.attributes, pointers.data(), environ);
    if (failed != 0) {
        running_ = 0;
        throw NotRun{
            fmt::format("{}: {}: {}", name_, printable(file_), printable(std::generic_category().message(failed)))};
    }
}

/// Only now the process is gone, and its number may be another's.
void Process::reap(int& status, rusage& usage) {
    const std::lock_guard lock{mutex_};
    const pid_t process = std::exchange(running_, 0);
    if (own_group_)   // what it left behind would disturb later turns
        kill(-process, SIGKILL);
    if (wait4(process, &status, 0, &usage) != process)
        throw std::system_error{errno, std::generic_category(), name_};
    if (cancelled_)
        throw Cancelled{};
}

}   // namespace drawpoint::bench
