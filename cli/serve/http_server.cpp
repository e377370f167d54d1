#include "cli/serve/http_server.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <istream>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "cli/program.hpp"
#include "cli/serve/live_run.hpp"
#include "cli/serve/open_metrics.hpp"
#include "cli/serve/perfetto_page.hpp"

namespace drawpoint::cli {
namespace {

using httplib::Request;
using httplib::Response;

constexpr std::size_t answering_threads = 32;   // a slow client holds one
// For a client, which has a thread meanwhile: to ask; to take a part of a long recording.
constexpr time_t longest_request_s = 1, longest_stall_s = 30;
constexpr const char* page_type = "text/html; charset=utf-8";

/// "127.0.0.1" of "127.0.0.1:9464", "::1" of "[::1]:9464", "localhost" of "LOCALHOST".
std::string host_of(std::string field) {
    std::ranges::transform(field, field.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (field.starts_with('['))
        return field.substr(1, field.find(']') - 1);
    return field.substr(0, field.find(':'));
}

/// Answers with a text. httplib would compress one that it has whole, which costs more than making it.
void send(Response& response, std::string text, const char* type) {
    const auto kept = std::make_shared<const std::string>(std::move(text));
    response.set_content_provider(kept->size(), type,
                                  [kept](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                      return offset <= kept->size() && length <= kept->size() - offset &&
                                             sink.write(kept->data() + offset, length);
                                  });
}

bool is_any_address(std::string_view address) { return address == "0.0.0.0" || address == "::"; }

/// Sends a file as it is now, piece by piece: a recording may be long, and may grow.
void send_file(const std::shared_ptr<std::istream>& file, Response& response, const std::function<void()>& on_sent) {
    const auto bytes = static_cast<std::size_t>(file->tellg());
    response.set_content_provider(
        bytes, "application/octet-stream",
        [file](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
            std::array<char, 1 << 16> piece;
            const std::size_t wanted = std::min(length, piece.size());
            file->seekg(static_cast<std::streamoff>(offset));
            return static_cast<bool>(file->read(piece.data(), static_cast<std::streamsize>(wanted))) &&
                   sink.write(piece.data(), wanted);
        },
        [on_sent](bool whole) {
            if (whole)
                on_sent();
        });
}

}   // namespace

struct HttpServer::Impl {
    httplib::Server server;
    std::atomic<bool> has_ended{false};
};

HttpServer::HttpServer(LiveRun& run, const Options& options) : impl_{std::make_unique<Impl>()} {
    httplib::Server& server = impl_->server;
    server.new_task_queue = [] { return new httplib::ThreadPool(answering_threads); };
    server.set_keep_alive_timeout(longest_request_s);
    server.set_read_timeout(longest_request_s);
    server.set_write_timeout(longest_stall_s);
    server.set_keep_alive_max_count(1);               // a kept connection has a thread that wakes 100 times a second
    server.set_socket_options([](socket_t socket) {   // without SO_REUSEPORT, by which two servers would share a port
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.set_default_headers(
        {{"Cache-Control", "no-store"},
         {"X-Content-Type-Options", "nosniff"},
         {"Cross-Origin-Resource-Policy", "same-origin"},
         {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                     "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"}});
    server.set_pre_routing_handler([address = options.address](const Request& request, Response& response) {
        // httplib does not compare ranges with sizes: whoever asks for a part gets all, as HTTP allows.
        const_cast<Request&>(request).ranges.clear();
        const std::string host = host_of(request.get_header_value("Host"));
        const bool is_read = request.method == "GET" || request.method == "HEAD";   // others are sent away unread
        if (is_read && (is_any_address(address) || host == address || host == "localhost" || host == "127.0.0.1" ||
                        host == "::1" || host.empty()))
            return httplib::Server::HandlerResponse::Unhandled;
        response.status = is_read ? 403 : 405;
        if (!is_read)
            response.set_header("Allow", "GET, HEAD");
        response.set_content(is_read ? "This run is served to the address it listens on alone.\n"
                                     : "This is for reading.\n",
                             "text/plain");
        return httplib::Server::HandlerResponse::Handled;
    });
    server.set_exception_handler([](const Request&, Response& response, const std::exception_ptr& thrown) {
        response.status = 500;
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
            response.set_content(fmt::format("{}\n", error.what()), "text/plain; charset=utf-8");
        } catch (...) {
        }
    });
    server.Get("/", [&run](const Request&, Response& response) { send(response, run.page(), page_type); });
    server.Get("/metrics", [&run](const Request& request, Response& response) {
        const bool open = request.get_header_value("Accept").find("application/openmetrics-text") != std::string::npos;
        if (open)
            send(response, open_metrics_of(run.metrics()), open_metrics_type);
        else
            send(response, run.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    });
    server.Get(R"(/report\.json)",   // paths are regular expressions
               [&run](const Request&, Response& response) { send(response, run.report(), "application/json"); });
    server.Get(R"(/run\.pftrace)", [&run, sent = options.on_recording_sent](const Request&, Response& response) {
        send_file(run.recording(), response, sent);
    });
    server.Get("/perfetto", [&run](const Request&, Response& response) {
        send(response, perfetto_page(std::filesystem::path{run.name()}.filename().string()), page_type);
    });

    errno = 0;
    const int port = options.port == 0                                    ? server.bind_to_any_port(options.address)
                     : server.bind_to_port(options.address, options.port) ? options.port
                                                                          : -1;
    if (port < 0)
        throw Failure{fmt::format("cannot listen on {}, port {}: {}", options.address, options.port,
                                  errno == EADDRINUSE || errno == EACCES ? std::generic_category().message(errno)
                                                                         : "no such address here")};
    const bool has_colons = options.address.find(':') != options.address.npos;
    url_ = fmt::format("http://{}:{}/", has_colons ? fmt::format("[{}]", options.address) : options.address, port);
    thread_ = std::thread{[this] {
        impl_->server.listen_after_bind();
        impl_->has_ended = true;
    }};
}

bool HttpServer::has_ended() const noexcept { return impl_->has_ended; }

HttpServer::~HttpServer() {
    while (!impl_->server.is_running() && !impl_->has_ended)   // stop() does nothing before
        std::this_thread::yield();
    impl_->server.stop();
    thread_.join();
}

}   // namespace drawpoint::cli
