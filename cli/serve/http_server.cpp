#include "cli/serve/http_server.hpp"

#include <algorithm>
#include <array>
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

constexpr std::size_t answering_threads = 4;
constexpr const char* page_type = "text/html; charset=utf-8";

/// "127.0.0.1" of "127.0.0.1:9464", "::1" of "[::1]:9464".
std::string_view host_of(std::string_view field) {
    if (field.starts_with('['))
        return field.substr(1, field.find(']') - 1);
    return field.substr(0, field.find(':'));
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
};

HttpServer::HttpServer(LiveRun& run, const Options& options) : impl_{std::make_unique<Impl>()} {
    httplib::Server& server = impl_->server;
    server.new_task_queue = [] { return new httplib::ThreadPool(answering_threads); };
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
        const std::string field = request.get_header_value("Host");
        const std::string_view host = host_of(field);
        if (is_any_address(address) || host == address || host == "localhost" || host == "127.0.0.1" || host == "::1")
            return httplib::Server::HandlerResponse::Unhandled;
        response.status = 403;
        response.set_content("This run is served to the address it listens on alone.\n", "text/plain");
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
    server.Get("/", [&run](const Request&, Response& response) { response.set_content(run.page(), page_type); });
    server.Get("/metrics", [&run](const Request& request, Response& response) {
        const bool open = request.get_header_value("Accept").find("application/openmetrics-text") != std::string::npos;
        if (open)
            response.set_content(open_metrics_of(run.metrics()), open_metrics_type);
        else
            response.set_content(run.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    });
    server.Get("/report.json",
               [&run](const Request&, Response& response) { response.set_content(run.report(), "application/json"); });
    server.Get("/run.pftrace", [&run, sent = options.on_recording_sent](const Request&, Response& response) {
        send_file(run.recording(), response, sent);
    });
    server.Get("/perfetto", [&run](const Request&, Response& response) {
        response.set_content(perfetto_page(std::filesystem::path{run.name()}.filename().string()), page_type);
    });

    errno = 0;
    const int port = options.port == 0                                    ? server.bind_to_any_port(options.address)
                     : server.bind_to_port(options.address, options.port) ? options.port
                                                                          : -1;
    if (port < 0)
        throw Failure{fmt::format("cannot listen on {}, port {}: {}", options.address, options.port,
                                  errno != 0 ? std::generic_category().message(errno) : "no such address")};
    const bool has_colons = options.address.find(':') != options.address.npos;
    url_ = fmt::format("http://{}:{}/", has_colons ? fmt::format("[{}]", options.address) : options.address, port);
    thread_ = std::thread{[this] { impl_->server.listen_after_bind(); }};
}

HttpServer::~HttpServer() {
    while (!impl_->server.is_running())   // stop() does nothing before
        std::this_thread::yield();
    impl_->server.stop();
    thread_.join();
}

}   // namespace drawpoint::cli
