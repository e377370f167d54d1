#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <grpcpp/create_channel.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "profiler_service.grpc.pb.h"
#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using namespace std::chrono_literals;

const std::vector<std::string> endless{
    "profile",      "--data", "synthetic:100000000", "--image-size", "8", "--model", "none",
    "--compute-ms", "2",      "--batch-size",        "16",           "-o"};
const std::vector<std::string> short_run{"profile", "--data", "synthetic:512", "--image-size", "8",
                                         "--model", "none",   "--batch-size",  "16",           "-o"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::string& last) {
    arguments.push_back(last);
    return arguments;
}

/// A run that trains until it is killed, once its recording is begun.
struct LongRun {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    Program program{with(endless, file)};

    LongRun() {
        for (int i = 0; i < 300 && !std::filesystem::exists(file); ++i)
            std::this_thread::sleep_for(50ms);
    }
};

/// `drawpoint serve` on ports that are free, and clients of it.
class Server {
public:
    explicit Server(const std::string& run, std::vector<std::string> more = {})
        : program_{words(run, std::move(more))} {
        for (int i = 0; i < 300 && program_.running() && program_.printed().find("perfetto\n") == std::string::npos;
             ++i)
            std::this_thread::sleep_for(50ms);
        const std::string printed = program_.printed();
        BOOST_REQUIRE_MESSAGE(printed.starts_with("page     http://127.0.0.1:"), printed);
        http_.emplace(printed.substr(9, printed.find("/\n") - 9));
        if (const std::size_t at = printed.find("captures "); at != printed.npos)
            captures_ = printed.substr(at + 9, printed.find('\n', at) - at - 9);
    }

    [[nodiscard]] Program& program() { return program_; }
    [[nodiscard]] httplib::Client& http() { return *http_; }
    [[nodiscard]] std::string get(const std::string& path, const httplib::Headers& headers = {}) {
        const auto answer = http_->Get(path, headers);
        BOOST_REQUIRE(answer);
        BOOST_TEST(answer->status == 200);
        return answer->body;
    }
    [[nodiscard]] std::unique_ptr<tensorflow::ProfilerService::Stub> captures() const {
        return tensorflow::ProfilerService::NewStub(grpc::CreateChannel(captures_, grpc::InsecureChannelCredentials()));
    }

private:
    static std::vector<std::string> words(const std::string& run, std::vector<std::string> more) {
        std::vector<std::string> all{"serve", run, "--port", "0"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    Program program_;
    std::optional<httplib::Client> http_;
    std::string captures_;
};

std::uint64_t inode_of(const std::string& file) {
    struct stat found{};
    BOOST_REQUIRE(::stat(file.c_str(), &found) == 0);
    return found.st_ino;
}

/// One that was free just now.
std::string free_port() {
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0);
    BOOST_REQUIRE(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    ::close(probe);
    return std::to_string(ntohs(address.sin_port));
}

/// The values of all counters, with `_count` and `_sum` of summaries.
std::map<std::string, double> counters_of(const std::string& metrics) {
    std::map<std::string, double> all;
    std::istringstream lines{metrics};
    for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(0, line.find_last_of(' '));
        const std::string family = name.substr(0, name.find('{'));
        if (!line.starts_with('#') &&
            (family.ends_with("_total") || family.ends_with("_count") || family.ends_with("_sum")))
            all[name] = std::stod(line.substr(name.size() + 1));
    }
    return all;
}

BOOST_AUTO_TEST_SUITE(serve_command)

BOOST_AUTO_TEST_CASE(a_run_is_served_while_it_trains_and_when_it_was_killed) {
    LongRun run;
    Server server{run.file};
    const std::string page = server.get("/");
    BOOST_TEST(page.find("This run goes on.") != page.npos);
    BOOST_TEST(page.find("data-renews") != page.npos);
    const std::string recording = server.get("/run.pftrace");
    const std::string file = bytes_in(run.file);
    BOOST_TEST(!recording.empty());
    BOOST_TEST(recording == file.substr(0, recording.size()));   // which has grown since
    BOOST_TEST(server.get("/perfetto").find("run.pftrace in Perfetto") != std::string::npos);
    run.program.interrupt(SIGKILL);
    (void)run.program.wait();
    std::string ended;
    for (int i = 0; i < 20 && ended.find("ended without its last records") == ended.npos; ++i) {
        ended = server.get("/");
        std::this_thread::sleep_for(100ms);
    }
    BOOST_TEST(ended.find("This run ended without its last records") != ended.npos);
    BOOST_TEST(ended.find("data-renews") == ended.npos);
    std::filesystem::remove(run.file);
    BOOST_TEST(server.get("/run.pftrace").size() >= recording.size());
    server.program().interrupt(SIGINT);
    BOOST_TEST(server.program().wait().code == 130);
}

BOOST_AUTO_TEST_CASE(a_run_can_be_named_by_its_process) {
    LongRun run;
    std::this_thread::sleep_for(2s);   // until its first block is written
    Server server{std::to_string(run.program.id())};
    BOOST_TEST(server.get("/").find("<h1>" + run.file + "</h1>") != std::string::npos);
    BOOST_TEST(server.get("/run.pftrace").size() > 1000u);
}

BOOST_AUTO_TEST_CASE(what_is_served_of_a_run_that_ended_is_what_report_and_export_say) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    Server server{file};
    BOOST_TEST(server.get("/metrics") == run_program({"export", file, "--to", "prometheus", "-o", "-"}).out);
    auto served = nlohmann::json::parse(server.get("/report.json"));
    auto reported = nlohmann::json::parse(run_program({"report", file, "--json"}).out);
    BOOST_TEST(served["command"].get<std::string>().starts_with("drawpoint serve "));
    for (auto* const document : {&served, &reported})
        document->erase("command");
    BOOST_TEST(served == reported);
    BOOST_TEST(server.get("/").find("This run has ended.") != std::string::npos);
    BOOST_TEST(server.get("/run.pftrace") == bytes_in(file));
}

BOOST_AUTO_TEST_CASE(a_recording_that_is_written_anew_is_followed_to_its_end_whenever_it_is_asked_for) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    std::vector<std::string> words = with(endless, file);
    words.insert(words.end(), {"--recording-limit", "1MiB", "--steps", "2500"});
    Program run{words};
    for (int i = 0; i < 300 && !std::filesystem::exists(file); ++i)
        std::this_thread::sleep_for(50ms);
    Server server{file};
    Server by_process{std::to_string(run.id())};   // nobody asks them while it trains
    const std::uint64_t before = inode_of(file);
    BOOST_TEST(run.wait().code == 0);
    BOOST_TEST(inode_of(file) != before);
    const std::string reported = run_program({"export", file, "--to", "prometheus", "-o", "-"}).out;
    BOOST_TEST(counters_of(reported).at("drawpoint_steps_total") == 2500);
    for (Server* const one : {&server, &by_process}) {
        std::string metrics;
        for (int i = 0; i < 20 && metrics != reported; ++i, std::this_thread::sleep_for(100ms))
            metrics = one->get("/metrics");
        BOOST_TEST(metrics == reported);
        BOOST_TEST(one->get("/").find("This run has ended.") != std::string::npos);
        BOOST_TEST(one->get("/run.pftrace") == bytes_in(file));
    }
}

BOOST_AUTO_TEST_CASE(a_later_run_that_takes_the_files_name_is_not_taken_for_the_same) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    Program run{with(endless, file)};
    for (int i = 0; i < 300 && !std::filesystem::exists(file); ++i)
        std::this_thread::sleep_for(50ms);
    Server server{file};
    run.interrupt(SIGKILL);
    (void)run.wait();
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    std::string page;
    for (int i = 0; i < 20 && page.find("ended without its last records") == page.npos; ++i) {
        page = server.get("/");
        std::this_thread::sleep_for(100ms);
    }
    BOOST_TEST(page.find("ended without its last records") != page.npos);
}

BOOST_AUTO_TEST_CASE(counters_never_go_back) {
    LongRun run;
    Server server{run.file};
    std::map<std::string, double> before;
    std::size_t changes = 0;
    for (int i = 0; i < 60; ++i, std::this_thread::sleep_for(100ms)) {
        const auto now = counters_of(server.get("/metrics"));
        for (const auto& [name, value] : before) {
            BOOST_REQUIRE_MESSAGE(now.contains(name), name);
            BOOST_TEST(now.at(name) >= value, name << " went from " << value << " to " << now.at(name));
        }
        changes += now != before;
        before = now;
    }
    BOOST_TEST(changes >= 2u);
    BOOST_TEST(before.at("drawpoint_steps_total") > 0);
}

BOOST_AUTO_TEST_CASE(metrics_are_openmetrics_for_whoever_asks_for_them) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    Server server{file};
    const auto answer = server.http().Get("/metrics", {{"Accept", "application/openmetrics-text; version=1.0.0"}});
    BOOST_REQUIRE(answer);
    BOOST_TEST(answer->get_header_value("Content-Type").starts_with("application/openmetrics-text"));
    BOOST_TEST(answer->body.ends_with("\n# EOF\n"));
    BOOST_TEST(answer->body.find("# TYPE drawpoint_steps counter\ndrawpoint_steps_total 32\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(nothing_else_is_served_nor_to_pages_of_other_sites) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    Server server{file};
    for (const char* const path :
         {"/etc/passwd", "/../run.pftrace", "/run.pftrace/", "/%2e%2e/run.pftrace", "/runXpftrace"})
        BOOST_TEST(server.http().Get(path)->status == 404, path);
    BOOST_TEST(server.http().Post("/", "", "text/plain")->status == 405);
    BOOST_TEST(server.http().Delete("/run.pftrace")->status == 405);
    BOOST_TEST(std::filesystem::exists(file));
    for (const char* const host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example"})
        BOOST_TEST(server.http().Get("/", {{"Host", host}})->status == 403, host);
    for (const char* const host : {"localhost:9464", "LOCALHOST", ""})
        BOOST_TEST(server.http().Get("/", {{"Host", host}})->status == 200, host);
    const std::string metrics = server.get("/metrics"), recording = server.get("/run.pftrace");
    for (const char* const range : {"bytes=0-999999999", "bytes=999999-", "bytes=11000-3800000", "bytes=-0"}) {
        BOOST_TEST(server.http().Get("/metrics", {{"Range", range}})->body == metrics, range);
        BOOST_TEST(server.http().Get("/run.pftrace", {{"Range", range}})->body == recording, range);
    }
}

BOOST_AUTO_TEST_CASE(captures_are_of_the_time_asked_for_may_overlap_and_can_be_cancelled) {
    LongRun run;
    Server server{run.file, {"--capture", "0"}};
    const auto stub = server.captures();
    const auto capture = [&](std::uint64_t ms) {
        grpc::ClientContext context;
        tensorflow::ProfileRequest request;
        request.set_duration_ms(ms);
        tensorflow::ProfileResponse response;
        const grpc::Status status = stub->Profile(&context, request, &response);
        BOOST_TEST(status.ok(), status.error_message());
        BOOST_REQUIRE(response.tool_data_size() == 1);
        BOOST_TEST(response.tool_data(0).name() == "xplane.pb");
        return response.tool_data(0).data();
    };
    std::string longer;
    std::thread other{[&] { longer = capture(1500); }};
    const std::string shorter = capture(300);
    other.join();
    BOOST_TEST(shorter.find("/host:CPU") != shorter.npos);
    BOOST_TEST(shorter.find("step_num") != shorter.npos);
    BOOST_TEST(longer.size() > 2 * shorter.size());
    {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + 200ms);
        tensorflow::ProfileRequest request;
        request.set_duration_ms(60'000);
        tensorflow::ProfileResponse response;
        BOOST_TEST(stub->Profile(&context, request, &response).error_code() == grpc::DEADLINE_EXCEEDED);
    }
    BOOST_TEST(!capture(100).empty());   // it goes on
    run.program.interrupt(SIGKILL);
    (void)run.program.wait();
    grpc::ClientContext context;
    tensorflow::ProfileResponse response;
    const grpc::Status status = stub->Profile(&context, {}, &response);
    BOOST_TEST(status.error_code() == grpc::UNAVAILABLE);
    BOOST_TEST(status.error_message().find("has ended") != std::string::npos, status.error_message());
}

BOOST_AUTO_TEST_CASE(until_end_ends_with_the_run) {
    LongRun run;
    Server server{run.file, {"--until-end"}};
    BOOST_TEST(server.program().running());
    run.program.interrupt(SIGKILL);
    (void)run.program.wait();
    BOOST_TEST(server.program().wait().code == 0);
}

BOOST_AUTO_TEST_CASE(profile_answers_captures_by_a_process_of_its_own_that_ends_with_it) {
    const TemporaryFolder folder;
    const std::string port = free_port();
    const std::vector<std::string> arguments{"--profiler", "xla", "--profiler-port", port};
    std::vector<std::string> words = with(endless, folder.file("run.pftrace"));
    words.insert(words.end(), arguments.begin(), arguments.end());
    Program run{words};
    const auto channel = grpc::CreateChannel("127.0.0.1:" + port, grpc::InsecureChannelCredentials());
    BOOST_REQUIRE_MESSAGE(channel->WaitForConnected(std::chrono::system_clock::now() + 30s), run.printed());
    std::this_thread::sleep_for(1s);   // until its first block is written
    const auto stub = tensorflow::ProfilerService::NewStub(channel);
    grpc::ClientContext context;
    tensorflow::ProfileRequest request;
    request.mutable_opts()->set_duration_ms(300);
    tensorflow::ProfileResponse response;
    const grpc::Status status = stub->Profile(&context, request, &response);
    BOOST_TEST(status.ok(), status.error_message());
    BOOST_TEST(response.tool_data_size() == 1);
    BOOST_TEST(bytes_in("/proc/" + std::to_string(run.id()) + "/maps").find("libgrpc") == std::string::npos);
    run.interrupt(SIGKILL);   // it cannot say that it ends
    (void)run.wait();
    auto state = channel->GetState(false);
    for (int i = 0; i < 100 && state == GRPC_CHANNEL_READY; ++i, state = channel->GetState(false))
        std::this_thread::sleep_for(100ms);
    BOOST_TEST(state != GRPC_CHANNEL_READY);
}

BOOST_AUTO_TEST_CASE(a_capture_that_outlasts_the_run_gets_what_there_was) {
    const TemporaryFolder folder;
    const std::string port = free_port();
    std::vector<std::string> words = with(endless, folder.file("run.pftrace"));
    words.insert(words.end(), {"--steps", "1500", "--profiler", "xla", "--profiler-port", port});
    Program run{words};
    const auto channel = grpc::CreateChannel("127.0.0.1:" + port, grpc::InsecureChannelCredentials());
    BOOST_REQUIRE(channel->WaitForConnected(std::chrono::system_clock::now() + 30s));
    const auto stub = tensorflow::ProfilerService::NewStub(channel);
    grpc::ClientContext context;
    tensorflow::ProfileRequest request;
    request.set_duration_ms(60'000);
    tensorflow::ProfileResponse response;
    const grpc::Status status = stub->Profile(&context, request, &response);
    BOOST_TEST(status.ok(), status.error_message());
    BOOST_TEST(response.tool_data_size() == 1);
    BOOST_TEST(run.wait().code == 0);
}

std::vector<nlohmann::json> records_in(const std::string& file) {
    std::vector<nlohmann::json> all;
    std::ifstream lines{file};
    for (std::string line; std::getline(lines, line) && !lines.eof();)   // the last one may be on its way
        all.push_back(nlohmann::json::parse(line));
    return all;
}

/// Waits until a log has so many lines, or the program has ended.
void wait_for_lines(const std::string& file, std::size_t lines, Program& program) {
    for (int i = 0; i < 300 && program.running() && records_in(file).size() < lines; ++i)
        std::this_thread::sleep_for(100ms);
}

BOOST_AUTO_TEST_CASE(profile_logs_while_it_trains_what_export_says_of_it_later) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace"), log = folder.file("run.jsonl");
    std::vector<std::string> words = with(endless, file);
    words.insert(words.end(), {"--steps", "1500", "--log", "jsonl=" + log, "--log", "csv=" + folder.file("run.csv"),
                               "--log", "prometheus=" + folder.file("run.prom")});
    Program run{words};
    wait_for_lines(log, 20, run);
    BOOST_TEST(run.running());
    const auto begun = records_in(log);
    BOOST_TEST(begun.size() >= 20u);
    const Result ended = run.wait();
    BOOST_TEST(ended.code == 0, ended.err);
    BOOST_TEST(ended.err.find("wrote " + log) != std::string::npos, ended.err);
    auto logged = records_in(log);
    BOOST_TEST(run_program({"export", file, "--to", "jsonl", "-o", folder.file("later.jsonl")}).code == 0);
    auto later = records_in(folder.file("later.jsonl"));
    BOOST_TEST(logged.front()["settings"]["num-workers"] == later.front()["settings"]["num-workers"]);
    BOOST_TEST(!logged.front()["settings"].contains("verdict"));
    const auto is_of_settings = [](const nlohmann::json& record) { return record.contains("settings"); };
    BOOST_TEST(std::erase_if(logged, is_of_settings) == 2u);   // the second ones have what was not known
    BOOST_TEST(std::erase_if(later, is_of_settings) == 1u);
    BOOST_TEST((logged == later));
    BOOST_TEST(bytes_in(folder.file("run.prom")) == run_program({"export", file, "--to", "prometheus", "-o", "-"}).out);
}

BOOST_AUTO_TEST_CASE(a_log_has_the_end_of_a_run_that_was_killed) {
    const TemporaryFolder folder;
    const std::string log = folder.file("run.jsonl");
    std::vector<std::string> words = with(endless, folder.file("run.pftrace"));
    words.insert(words.end(), {"--log", "jsonl=" + log});
    Program run{words};
    wait_for_lines(log, 5, run);
    run.interrupt(SIGKILL);
    (void)run.wait();
    const auto has_report = [&] {
        const auto records = records_in(log);
        return std::ranges::any_of(
            records, [](const nlohmann::json& record) { return record.value("text", "") == "drawpoint/report"; });
    };
    for (int i = 0; i < 100 && !has_report(); ++i)
        std::this_thread::sleep_for(100ms);
    BOOST_TEST(has_report());
}

BOOST_AUTO_TEST_CASE(serve_logs_a_run_that_somebody_else_began) {
    LongRun run;
    const TemporaryFolder folder;
    const std::string log = folder.file("run.jsonl");
    Program server{{"serve", std::to_string(run.program.id()), "--no-http", "--until-end", "--log", "jsonl=" + log}};
    wait_for_lines(log, 5, server);
    BOOST_TEST(server.printed() == "log      jsonl=" + log + "\n");
    const auto records = records_in(log);
    BOOST_REQUIRE(records.size() >= 5u);
    BOOST_TEST(records[1]["step"] == 1);
    server.interrupt(SIGTERM);   // then it logs what there is by now
    BOOST_TEST(server.wait().code == 130);
    BOOST_TEST(records_in(log).back()["text"] == "drawpoint/verdict");
    run.program.interrupt(SIGKILL);
    (void)run.program.wait();
    const Result whole =
        run_program({"serve", run.file, "--no-http", "--until-end", "--log", "csv=" + log, "--log", "jsonl=/dev/full"});
    BOOST_TEST(whole.code == 1);   // one log is whole, one cannot be
    BOOST_TEST(whole.err.find("/dev/full") != std::string::npos, whole.err);
    BOOST_TEST(whole.err.find("wrote " + log) != std::string::npos, whole.err);
}

BOOST_AUTO_TEST_CASE(a_run_is_logged_when_it_ends_if_nobody_else_could) {
    const TemporaryFolder folder;
    const std::string log = folder.file("run.jsonl");
    std::vector<std::string> words = with(short_run, folder.file("run.pftrace"));
    words.insert(words.end(), {"--log", "jsonl=" + log, "--profiler", "none"});
    BOOST_TEST(run_program(words).code == 0);
    BOOST_TEST(records_in(log).front().contains("settings"));
    BOOST_TEST(records_in(log).back()["text"] == "drawpoint/verdict");
}

BOOST_AUTO_TEST_CASE(a_recording_without_steps_did_not_end_well) {
    const TemporaryFolder folder;
    std::ofstream{folder.file("empty.pftrace")};
    Server server{folder.file("empty.pftrace")};
    BOOST_TEST(server.get("/").find("The recording has no steps.") != std::string::npos);
    BOOST_TEST(server.get("/metrics").find("\ndrawpoint_run_ended 0\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_served_is_named) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    check_complaint(run_program({"serve", folder.file("missing.pftrace")}), 1, {"missing.pftrace"});
    check_complaint(run_program({"serve", "999999999"}), 1, {"999999999"});
    check_complaint(run_program({"serve", file, "--no-http"}), 2, {"--no-http", "--capture", "--log"});
    check_complaint(run_program({"serve", file, "--port", "70000"}), 2, {"--port", "70000"});
    check_complaint(run_program({"serve", file, "--capture=x"}), 2, {"--capture", "'x'"});
    check_complaint(run_program({"serve", file, "--listen", "not an address"}), 1, {"not an address"});
    check_complaint(run_program({"view"}), 2, {"RUN"});
    check_complaint(run_program({"view", "--no-browser", folder.file("missing.pftrace")}), 1, {"missing.pftrace"});
    check_complaint(run_program(with({"profile", "--data", "synthetic:64", "--profiler-port", "9012", "-o"}, file)), 2,
                    {"--profiler-port", "--profiler xla"});
    Server server{file};
    const std::string printed = server.program().printed();
    const std::string port = printed.substr(26, printed.find("/\n") - 26);
    check_complaint(run_program({"serve", file, "--port", port}), 1, {"port " + port, "in use"});
    check_complaint(run_program({"serve", file, "--port", "0", "--capture", port}), 1, {"--capture " + port});
    check_complaint(run_program({"serve", file, "--no-http", "--capture", "0"}), 1, {file, "has ended"});
}

BOOST_AUTO_TEST_CASE(view_says_what_to_do_where_there_is_no_browser) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program(with(short_run, file)).code == 0);
    const Result shown = run_program({"view", "--no-browser", file});
    BOOST_TEST(shown.code == 0, shown.err);
    BOOST_TEST(shown.out.find(file) != shown.out.npos);
    BOOST_TEST(shown.out.find("ui.perfetto.dev") != shown.out.npos);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
