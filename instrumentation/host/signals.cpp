#include <drawpoint/instrumentation/host/detail/signals.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace drawpoint {

Signals::Signals(std::function<void(int)> on_first) : on_first_{std::move(on_first)} {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (struct sigaction hang_up{}; sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP);   // nohup ignores it
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC);
    end_ = eventfd(0, EFD_CLOEXEC);
    if (signals_ < 0 || end_ < 0)
        throw std::system_error{errno, std::generic_category(), "signals"};
    thread_ = std::thread{[this] { wait(); }};
}

Signals::~Signals() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(end_, &one, sizeof one);
    thread_.join();
    close(signals_);
    close(end_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::wait() {
    for (;;) {
        std::array<pollfd, 2> files{pollfd{signals_, POLLIN, 0}, pollfd{end_, POLLIN, 0}};
        if (poll(files.data(), files.size(), -1) < 0 && errno == EINTR)
            continue;
        signalfd_siginfo info{};
        if (files[0].revents != 0 && read(signals_, &info, sizeof info) == sizeof info) {
            if (stopped_.exchange(true, std::memory_order_acq_rel))
                _exit(130);
            on_first_(static_cast<int>(info.ssi_signo));
        }
        if (files[1].revents != 0)
            return;
    }
}

}   // namespace drawpoint
