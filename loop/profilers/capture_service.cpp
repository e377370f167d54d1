#include "loop/profilers/capture_service.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace drawpoint {
namespace {

constexpr int longest_start_ms = 10'000, longest_end_ms = 6'000, look_every_ms = 10;
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
        close_writing();
        ::close(ends_[0]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    [[nodiscard]] int reading() const noexcept { return ends_[0]; }
    [[nodiscard]] int writing() const noexcept { return ends_[1]; }
    void close_writing() noexcept {
        if (ends_[1] >= 0)
            ::close(ends_[1]);
        ends_[1] = -1;
    }

private:
    std::array<int, 2> ends_{};
};

/// Starts it in a process group of its own, so that Ctrl-C reaches the program that trains alone; with the usual
/// signals, since this thread may block some, and without the files of this process. Returns an error number.
int spawn(pid_t& id, const std::string& path, std::array<std::string, 7> words, int output) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::array<char*, 8> pointers{};
    for (std::size_t i = 0; i < words.size(); ++i)
        pointers[i] = words[i].data();
    std::vector<char*> variables;
    for (char** variable = environ; *variable; ++variable)
        if (!std::string_view{*variable}.starts_with("DRAWPOINT_"))   // options of the program that trains
            variables.push_back(*variable);
    variables.push_back(nullptr);
    const int error = ::posix_spawnp(&id, path.c_str(), &files, &attributes, pointers.data(), variables.data());
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

CaptureService::CaptureService(std::uint16_t port) {
    const std::string path = program();
    const std::string what = "captures on port " + std::to_string(port) + ": " + path;
    Pipe output;
    const int error = spawn(id_, path,
                            {path, "serve", std::to_string(::getpid()), "--no-http", "--until-end",
                             "--capture=" + std::to_string(port), "--listen=127.0.0.1"},
                            output.writing());
    if (error != 0)
        throw std::runtime_error{what + ": " + std::generic_category().message(error)};
    output.close_writing();
    if (writes(output.reading()))
        return;
    end();
    throw std::runtime_error{what + " does not listen"};
}

CaptureService::~CaptureService() { end(); }

void CaptureService::end() const noexcept {
    if (::waitpid(id_, nullptr, WNOHANG) != 0)   // it has ended, or somebody else has waited for it
        return;
    ::kill(id_, SIGTERM);   // it ends captures that go on with what they have
    for (int waited_ms = 0; waited_ms < longest_end_ms; waited_ms += look_every_ms) {
        if (::waitpid(id_, nullptr, WNOHANG) != 0)
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds{look_every_ms});
    }
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}   // namespace drawpoint
