#include "cli/top/terminal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace drawpoint::cli {
namespace {

constexpr std::string_view enter_codes = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J",   // screen, cursor, wrapping
    leave_codes = "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l";
constexpr std::array crashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr char ctrl_c = 3, ctrl_z = 26;

termios as_found{};                  // the terminal's settings
std::atomic<bool> restores{false};   // when the program crashes

void write_all(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t n = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
        if (n > 0)
            bytes.remove_prefix(static_cast<std::size_t>(n));
        else if (errno == EAGAIN) {
            pollfd room{STDOUT_FILENO, POLLOUT, 0};
            (void)::poll(&room, 1, -1);
        } else if (errno != EINTR)
            return;   // the terminal is gone
    }
}

/// Safe in a signal handler.
void restore() noexcept {
    write_all(leave_codes);
    (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &as_found);
}

extern "C" void restore_and_crash(int signal) {
    if (restores.exchange(false))
        restore();
    (void)::raise(signal);   // the handler was for one time
}

}   // namespace

Terminal::Terminal() {
    if (::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &as_found) != 0)
        throw std::system_error{ENOTTY, std::generic_category(), "terminal"};
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP})
        sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) {
        const int error = errno;
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        throw std::system_error{error, std::generic_category(), "signals"};
    }

    for (const int signal : crashes) {
        struct sigaction action{};
        action.sa_handler = restore_and_crash;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(signal, &action, nullptr);
    }
    enter();
}

Terminal::~Terminal() {
    leave();
    for (const int signal : crashes)
        (void)::signal(signal, SIG_DFL);
    ::close(signals_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Terminal::enter() {
    termios raw = as_found;
    raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
    raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    restores = true;
    write_all(enter_codes);
}

void Terminal::leave() noexcept {
    if (restores.exchange(false))
        restore();
}

void Terminal::stop_here() {
    leave();
    (void)::raise(SIGSTOP);
    enter();   // after SIGCONT
}

ScreenSize screen_size() noexcept {
    winsize found{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0)
        return {};
    return {found.ws_col, found.ws_row};
}

void Terminal::show(std::string_view lines) {
    std::string out = "\x1b[H";
    while (true) {
        const std::size_t end = lines.find('\n');
        // Before the text: behind a line as wide as the screen the cursor stands on its last column.
        out.append(end == lines.npos ? "\x1b[J" : "\x1b[K").append(lines.substr(0, end));
        if (end == lines.npos)
            break;
        out += "\r\n";
        lines.remove_prefix(end + 1);
    }
    write_all(out);
}

std::optional<KeyPress> Terminal::wait(std::chrono::milliseconds most) {
    if (!typed_.empty())
        return from_input();
    std::array<pollfd, 2> files{pollfd{signals_, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    if (::poll(files.data(), files.size(), static_cast<int>(most.count())) <= 0)
        return std::nullopt;
    if ((files[0].revents & POLLIN) != 0)
        return from_signal();
    if (files[1].revents == 0)
        return std::nullopt;
    std::array<char, 64> bytes{};
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n <= 0)
        return (files[1].revents & (POLLHUP | POLLERR)) != 0 || (n < 0 && errno != EINTR && errno != EAGAIN)
                   ? std::optional{KeyPress{Key::stop}}
                   : std::nullopt;
    typed_.append(bytes.data(), static_cast<std::size_t>(n));
    return from_input();
}

std::optional<KeyPress> Terminal::from_signal() {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info)
        return std::nullopt;
    if (info.ssi_signo == SIGTSTP)
        stop_here();
    return KeyPress{info.ssi_signo == SIGWINCH || info.ssi_signo == SIGTSTP ? Key::resized : Key::stop};
}

std::optional<KeyPress> Terminal::from_input() {
    const std::string_view text{typed_};
    if (text.size() >= 3 && text[0] == '\x1b' && (text[1] == '[' || text[1] == 'O')) {
        const std::size_t end = text.find_first_not_of("0123456789;", 2);   // of the sequence
        const char last = end < text.size() ? text[end] : '\0';
        typed_.erase(0, end == text.npos ? end : end + 1);
        return last == 'C'   ? std::optional{KeyPress{Key::right}}
               : last == 'D' ? std::optional{KeyPress{Key::left}}
                             : std::nullopt;
    }
    const char typed = typed_.front();
    typed_.erase(0, 1);
    if (typed == ctrl_c)
        return KeyPress{Key::stop};
    if (typed == ctrl_z) {
        stop_here();
        return KeyPress{Key::resized};
    }
    return typed == '\x1b' ? std::nullopt : std::optional{KeyPress{Key::character, typed}};
}

}   // namespace drawpoint::cli
