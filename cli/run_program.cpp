#include "cli/run_program.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "cli/program.hpp"

namespace drawpoint::cli {
namespace {

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

}   // namespace

int run_program(int count, char** words, int (*run)(const std::vector<std::string>&)) {
    fill_closed_streams();
    enlarge_thread_stacks();
    int code = exit_failed;
    try {
        code = run(std::vector<std::string>{words + 1, words + count});
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

}   // namespace drawpoint::cli
