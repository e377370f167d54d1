#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <signal.h>
#include <termios.h>

namespace drawpoint::cli {

/// What a user or the system asks of a full-screen program. `stop`: Ctrl-C, SIGTERM, SIGHUP or SIGQUIT.
enum class Key : std::uint8_t { character, left, right, resized, stop };
struct KeyPress {
    Key key{};
    char character = 0;
};

struct ScreenSize {
    std::size_t width = 80, height = 24;
};
/// That of the terminal on stdout; the default if it is none.
[[nodiscard]] ScreenSize screen_size() noexcept;

/// The terminal as a screen of its own: the alternate screen, without cursor and echo. The destructor restores it, and
/// handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT do. Ctrl-Z stops the program with the terminal restored. At
/// most one at a time; make it before any other thread. All calls from one thread.
class Terminal {
public:
    /// Throws std::system_error if stdin or stdout is no terminal.
    Terminal();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    /// Replaces the screen's content by these lines, which must fit.
    void show(std::string_view lines);
    /// Waits for the next event, at most as long as said.
    [[nodiscard]] std::optional<KeyPress> wait(std::chrono::milliseconds);

private:
    void enter();
    void leave() noexcept;
    void stop_here();
    [[nodiscard]] std::optional<KeyPress> from_signal();
    [[nodiscard]] std::optional<KeyPress> from_input();

    int signals_ = -1;
    std::string typed_;   // and not taken yet
    sigset_t before_{};
};

}   // namespace drawpoint::cli
