#include "bench/experiment/steps.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/experiment/process.hpp"

namespace drawpoint::bench {

namespace {

void close_descriptor(int& descriptor) noexcept {
    if (descriptor >= 0)
        ::close(std::exchange(descriptor, -1));
}

/// One byte; false: the other end is closed.
bool receive(int socket, char& byte) noexcept {
    for (;;) {
        const ssize_t got = recv(socket, &byte, 1, 0);
        if (got >= 0 || errno != EINTR)
            return got == 1;
    }
}

/// Without a signal if the other end is closed, which the next receive() tells.
void transmit(int socket, const std::string& text) noexcept {
    while (send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

}   // namespace

Steps::Steps() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw std::system_error{errno, std::generic_category(), "socketpair"};
    own_ = ends[0];
    // Not the number that it has in the process: dup2() to itself would not clear that it is closed on exec.
    child_ = fcntl(ends[1], F_DUPFD_CLOEXEC, Process::channel_number + 1);
    const int error = errno;
    ::close(ends[1]);
    if (child_ < 0) {
        close_descriptor(own_);
        throw std::system_error{error, std::generic_category(), "fcntl"};
    }
}

Steps::~Steps() {
    close_descriptor(own_);
    close_descriptor(child_);
}

void Steps::close_childs_end() noexcept { close_descriptor(child_); }

bool Steps::wait(pid_t process) noexcept {
    // Readable once the process has ended; below 0, which poll() leaves out, where the system has no such descriptors.
    const int ended = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    std::array<pollfd, 2> either{
        {{.fd = own_, .events = POLLIN, .revents = 0}, {.fd = ended, .events = POLLIN, .revents = 0}}};
    while (poll(either.data(), either.size(), -1) < 0 && errno == EINTR) {
    }
    if (ended >= 0)
        ::close(ended);
    char byte = 0;
    return either[0].revents != 0 && receive(own_, byte);
}

void Steps::run(std::size_t runs) noexcept { transmit(own_, std::to_string(runs) + "\n"); }

void Steps::close() noexcept { close_descriptor(own_); }

void take_channel() {
    if (fcntl(Process::channel_number, F_SETFD, FD_CLOEXEC) != 0)
        throw std::runtime_error{"--steps is for a parent that has opened descriptor 3"};
}

std::size_t next_step() {
    constexpr int channel = Process::channel_number;
    transmit(channel, "\n");
    std::string text;
    for (char byte = 0; receive(channel, byte) && byte != '\n';)
        text += byte;
    if (text.empty())
        return 0;
    char* end = nullptr;
    const unsigned long long runs = std::strtoull(text.c_str(), &end, 10);
    if (*end != '\0' || runs == 0)
        throw std::runtime_error{"--steps: no number of runs: " + text};
    return runs;
}

}   // namespace drawpoint::bench
