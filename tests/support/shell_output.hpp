#pragma once

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <sys/wait.h>

namespace drawpoint::test {

struct ShellOutput {
    int status = -1;      ///< exit code; -1: it was ended by a signal
    std::string output;   ///< stdout and stderr
};

/// Runs a line by the shell. Throws std::runtime_error if it cannot be started.
inline ShellOutput run_by_shell(const std::string& line) {
    ShellOutput ended;
    std::FILE* pipe = popen((line + " 2>&1").c_str(), "r");
    if (pipe == nullptr)
        throw std::runtime_error{"cannot start " + line};
    std::array<char, 4096> room;
    for (std::size_t got; (got = std::fread(room.data(), 1, room.size(), pipe)) != 0;)
        ended.output.append(room.data(), got);
    const int status = pclose(pipe);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ended;
}

}   // namespace drawpoint::test
