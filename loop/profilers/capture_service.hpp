#pragma once

#include <cstdint>

#include <sys/types.h>

namespace drawpoint {

/// The program `drawpoint-serve` beside this process, answering requests to capture what it records. So nothing of it
/// runs here. It ends with this object, which waits for captures that go on to be answered with what they have, or when
/// this process has ended in whatever way.
class CaptureService {
public:
    /// Waits until it listens on this port of 127.0.0.1. The program is `DRAWPOINT_SERVE`, or lies beside this one, or
    /// is on the PATH. Throws std::runtime_error saying why it does not listen; its own complaint is on stderr.
    explicit CaptureService(std::uint16_t port);
    ~CaptureService();
    CaptureService(const CaptureService&) = delete;
    CaptureService& operator=(const CaptureService&) = delete;

private:
    void end() const noexcept;

    pid_t id_ = 0;
};

}   // namespace drawpoint
