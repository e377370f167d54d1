#include <drawpoint/instrumentation/host/detail/serve_process.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace drawpoint {
namespace {

constexpr int longest_start_ms = 10'000;
constexpr std::chrono::milliseconds look_every{10};
constexpr const char* program_name = "drawpoint-serve";

/// A path, or a name to look for on the PATH.
std::string program() {
    if (const char* const named = std::getenv("DRAWPOINT_SERVE"); named && *named)
        return named;
    std::error_code unknown;
    const auto beside = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / program_name;
    return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : program_name;
}

class Pipe {
public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
            throw std::system_error{errno, std::generic_category(), "pipe"};
    }
    ~Pipe() {
        for (const int end : ends_)
            if (end >= 0)
                ::close(end);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    [[nodiscard]] int reading() const noexcept { return ends_[0]; }
    [[nodiscard]] int writing() const noexcept { return ends_[1]; }
    [[nodiscard]] int take_reading() noexcept { return std::exchange(ends_[0], -1); }
    [[nodiscard]] int take_writing() noexcept { return std::exchange(ends_[1], -1); }

private:
    std::array<int, 2> ends_{};
};

/// Starts it in a process group of its own, so that Ctrl-C reaches the program that trains alone; with the usual
/// signals, since this thread may block some, and without other files of this process. Returns an error number.
int spawn(pid_t& id, std::vector<std::string> words, int input, int output) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::vector<char*> variables;
    for (char** variable = environ; *variable; ++variable)
        if (!std::string_view{*variable}.starts_with("DRAWPOINT_"))   // options of the program that trains
            variables.push_back(*variable);
    variables.push_back(nullptr);
    const int error = ::posix_spawnp(&id, pointers[0], &files, &attributes, pointers.data(), variables.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    return error;
}

/// Whether it wrote something before it ended and before that time was over.
bool writes(int reading) {
    pollfd file{reading, POLLIN, 0};
    char first = 0;
    while (::poll(&file, 1, longest_start_ms) < 0 && errno == EINTR) {
    }
    return (file.revents & POLLIN) != 0 && ::read(reading, &first, 1) == 1;
}

}   // namespace

ServeProcess::ServeProcess(const std::string& what, const std::vector<std::string>& options,
                           std::chrono::seconds longest)
    : longest_{longest} {
    const std::string path = program();
    std::vector<std::string> words{path, "serve", std::to_string(::getpid()), "--no-http", "--until-eof"};
    words.insert(words.end(), options.begin(), options.end());
    bool is_ready = false;
    {
        Pipe input, output;
        if (const int error = spawn(id_, std::move(words), input.reading(), output.writing()); error != 0)
            throw std::runtime_error{what + ": " + path + ": " + std::generic_category().message(error)};
        input_ = input.take_writing();
        ::close(output.take_writing());
        is_ready = writes(output.reading());
        output_ = output.take_reading();   // it may have more to say
    }
    if (is_ready)
        return;
    end();
    throw std::runtime_error{what + ": " + path + " does not start"};
}

ServeProcess::~ServeProcess() { end(); }

/// Of a child that somebody else has waited for, nothing is known.
bool ServeProcess::has_ended(int options) noexcept {
    int status = 0;
    pid_t ended = 0;
    do
        ended = ::waitpid(id_, &status, options);
    while (ended < 0 && errno == EINTR);
    if (ended == id_ && WIFEXITED(status))
        code_ = WEXITSTATUS(status);
    if (ended != 0)
        id_ = 0;
    return ended != 0;
}

std::optional<int> ServeProcess::end() noexcept {
    if (input_ >= 0)
        ::close(std::exchange(input_, -1));
    const auto last = std::chrono::steady_clock::now() + longest_;
    while (id_ != 0 && !has_ended(WNOHANG)) {
        if (std::chrono::steady_clock::now() >= last) {
            ::kill(id_, SIGKILL);
            (void)has_ended(0);
        } else {
            std::this_thread::sleep_for(look_every);
        }
    }
    if (output_ >= 0)
        ::close(std::exchange(output_, -1));
    return code_;
}

}   // namespace drawpoint
