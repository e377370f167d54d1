#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace drawpoint::cli {

class LiveRun;

/// Serves a run: `/` its page, `/metrics` for Prometheus, `/report.json`, `/run.pftrace` the recording, `/perfetto` a
/// page that hands it to Perfetto's. Nothing else, and nothing is changed by it. A request that names another host than
/// it listens on is refused, so that no page of another site can read a run through its visitor's browser (unless it
/// listens on all addresses, which have any name).
class HttpServer {
public:
    struct Options {
        std::string address = "127.0.0.1";
        std::uint16_t port = 0;                            ///< 0: any that is free
        std::function<void()> on_recording_sent = [] {};   ///< all of `/run.pftrace` was sent; on another thread
    };
    /// Listens at once, and answers on threads of its own. Throws Failure if it cannot. The run must outlive it.
    HttpServer(LiveRun&, const Options&);
    ~HttpServer();

    [[nodiscard]] const std::string& url() const noexcept { return url_; }   ///< "http://127.0.0.1:9464/"
    [[nodiscard]] bool has_ended() const noexcept;   ///< by an error of the system: it does not answer any more

private:
    struct Impl;

    std::unique_ptr<Impl> impl_;
    std::string url_;
    std::thread thread_;
};

}   // namespace drawpoint::cli
