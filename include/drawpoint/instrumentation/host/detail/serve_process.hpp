#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace drawpoint {

/// The program `drawpoint-serve` beside this process, which follows what it records: so nothing of it runs here. It
/// ends with this object, or when this process has ended in whatever way. One thread at a time.
class ServeProcess {
public:
    /// Starts it with these options (docs/cli.md, serve) and waits until it is ready. `longest`: how long it may take
    /// to end. The program is `DRAWPOINT_SERVE`, or lies beside this one, or is on the PATH. Throws std::runtime_error
    /// that begins with `what` it is for; its own complaint is on stderr.
    ServeProcess(const std::string& what, const std::vector<std::string>& options, std::chrono::seconds longest);
    ~ServeProcess();
    ServeProcess(const ServeProcess&) = delete;
    ServeProcess& operator=(const ServeProcess&) = delete;

    /// Asks it to end, which it does once captures that go on are answered with what they have and logs are written,
    /// and waits; one that takes too long is killed. Returns its exit code; nullopt: it was killed. Idempotent.
    std::optional<int> end() noexcept;

private:
    [[nodiscard]] bool has_ended(int options) noexcept;

    std::chrono::seconds longest_;
    pid_t id_ = 0;
    int input_ = -1, output_ = -1;   // ends of pipes: it ends when the first is closed
    std::optional<int> code_;
};

}   // namespace drawpoint
