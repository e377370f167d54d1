#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace drawpoint::cli {

class Captures;

/// Answers TensorFlow's profiler service, `tensorflow.ProfilerService/Profile`, which TensorBoard's "Capture profile"
/// and other clients of XProf call: with the captured part of the run as `xplane.pb`.
class CaptureServer {
public:
    /// Listens at once, and answers on threads of its own. `port` 0: any that is free. Throws Failure if it cannot. The
    /// captures must outlive it.
    CaptureServer(Captures&, const std::string& address, std::uint16_t port);
    /// Ends captures that go on, and waits until they are answered.
    ~CaptureServer();

    [[nodiscard]] const std::string& address() const noexcept { return address_; }   ///< "127.0.0.1:9012"

private:
    struct Impl;

    std::unique_ptr<Impl> impl_;
    std::string address_;
};

}   // namespace drawpoint::cli
