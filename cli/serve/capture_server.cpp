#include "cli/serve/capture_server.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "cli/program.hpp"
#include "cli/serve/capture.hpp"
#include "profiler_service.grpc.pb.h"

namespace drawpoint::cli {
namespace {

constexpr std::chrono::seconds longest_answer{5};
constexpr std::uint64_t usual_ms = 1000, most_ms = 3'600'000;

class Service final : public tensorflow::ProfilerService::Service {
public:
    explicit Service(Captures& captures) : captures_{&captures} {}

    grpc::Status Profile(grpc::ServerContext* context, const tensorflow::ProfileRequest* request,
                         tensorflow::ProfileResponse* response) override {
        const std::uint64_t asked_ms =
            request->opts().duration_ms() != 0 ? request->opts().duration_ms() : request->duration_ms();
        const std::chrono::milliseconds length{std::min(asked_ms != 0 ? asked_ms : usual_ms, most_ms)};
        try {
            auto space = captures_->capture(length, [context] { return context->IsCancelled(); });
            if (!space)
                return grpc::Status::CANCELLED;
            response->set_empty_trace(space->empty());
            if (!space->empty()) {
                tensorflow::ProfileToolData& file = *response->add_tool_data();
                file.set_name("xplane.pb");
                file.set_data(std::move(*space));
            }
            return grpc::Status::OK;
        } catch (const std::exception& error) {
            return {grpc::StatusCode::UNAVAILABLE, error.what()};
        }
    }

private:
    Captures* captures_;
};

}   // namespace

struct CaptureServer::Impl {
    Captures* captures;
    Service service;
    std::unique_ptr<grpc::Server> server;
};

CaptureServer::CaptureServer(Captures& captures, const std::string& address, std::uint16_t port)
    : impl_{new Impl{.captures = &captures, .service = Service{captures}, .server = nullptr}} {
    const std::string host = address.find(':') != address.npos ? fmt::format("[{}]", address) : address;
    ::setenv("GRPC_VERBOSITY", "NONE", 0);   // what it would say of a port that is taken is in our own complaint
    int bound = 0;
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);   // or two servers would share the port
    builder.SetMaxSendMessageSize(-1);
    builder.AddListeningPort(fmt::format("{}:{}", host, port), grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&impl_->service);
    impl_->server = builder.BuildAndStart();
    if (!impl_->server || bound == 0)
        throw Failure{fmt::format("--capture {}: cannot listen on {}", port, host)};
    address_ = fmt::format("{}:{}", host, bound);
}

CaptureServer::~CaptureServer() {
    impl_->captures->stop();
    impl_->server->Shutdown(std::chrono::system_clock::now() + longest_answer);
}

}   // namespace drawpoint::cli
