#include "child.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "process_tree.hpp"

namespace drawpoint::bench {
namespace {

constexpr int most_silence_ms = 180'000;
constexpr std::int64_t least_work_ns = 100'000'000;   // CPU time meanwhile of a child that takes long, but works

}   // namespace

Child::Child(std::vector<std::string> command, const nlohmann::json& work) {
    int requests[2],
        answers[2];   // a socket, so that writing to a child that has ended is an error instead of a signal
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) != 0 || pipe2(answers, O_CLOEXEC) != 0)
        throw NotRun{"no pipe to be had"};
    command.push_back(work.dump());
    std::vector<char*> arguments;
    for (std::string& word : command)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        setpgid(0, 0);   // so that its worker processes can be ended with it
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);   // the parent waits for its signals in a thread
        dup2(requests[1], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(requests[1]);
    close(answers[1]);
    to_ = requests[0];
    from_ = answers[0];
    try {
        const nlohmann::json hello = read_line();
        if (hello.contains("not_run"))
            throw NotRun{hello["not_run"].get<std::string>()};
        settings_ = hello.at("settings");
    } catch (...) {
        stop();
        throw;
    }
}

Child::Child(Child&& other) noexcept
    : settings_{std::move(other.settings_)},
      pid_{std::exchange(other.pid_, -1)},
      to_{std::exchange(other.to_, -1)},
      from_{std::exchange(other.from_, -1)},
      buffer_{std::move(other.buffer_)} {}

Child::~Child() { stop(); }

void Child::stop() noexcept {
    if (to_ >= 0)
        close(to_);   // the child sees the end of its input and exits …
    if (pid_ > 0) {
        int patience_ms = 5'000;
        for (; waitpid(pid_, nullptr, WNOHANG) == 0 && patience_ms > 0; patience_ms -= 10)
            poll(nullptr, 0, 10);
        kill(-pid_, SIGKILL);   // … or is killed with its workers
        if (patience_ms <= 0)
            waitpid(pid_, nullptr, 0);
    }
    if (from_ >= 0)
        close(from_);
    pid_ = to_ = from_ = -1;
}

Passes Child::passes(std::size_t first_epoch, std::size_t number) {
    const ProcessUse before = process_tree_use(pid_);
    const nlohmann::json answer = ask({{"do", "round"}, {"epoch", first_epoch}, {"passes", number}});
    const ProcessUse after = process_tree_use(pid_);
    Passes passes;
    answer.at("wall_ns").get_to(passes.wall_ns);
    answer.at("first_batch_ns").get_to(passes.first_batch_ns);
    answer.at("items").get_to(passes.items);
    answer.at("batches").get_to(passes.batches);
    passes.bound_ns = answer.value("bound_ns", std::int64_t{0});
    passes.cpu_ns = after.cpu_ns - before.cpu_ns;
    passes.minor_faults = after.minor_faults - before.minor_faults;
    if (passes.items == 0 || passes.wall_ns <= 0)
        throw NotRun{"delivered nothing"};
    return passes;
}

double Child::cpu_seconds() const { return static_cast<double>(process_tree_use(pid_).cpu_ns) * 1e-9; }

std::int64_t Child::first_batch_ns(std::size_t epoch) {
    return ask({{"do", "first_batch"}, {"epoch", epoch}}).at("wall_ns");
}

std::vector<BatchCopy> Child::batches(std::size_t epoch, const std::vector<std::size_t>& numbers) {
    std::vector<BatchCopy> copies;
    nlohmann::json head = ask({{"do", "batches"}, {"epoch", epoch}, {"batches", numbers}});
    while (true) {
        BatchCopy& copy = copies.emplace_back();
        head.at("targets").get_to(copy.targets);
        copy.data.resize(head.at("values").get<std::size_t>());
        const std::size_t size = copy.data.size() * sizeof(float);
        while (buffer_.size() < size)
            read_some();
        std::memcpy(copy.data.data(), buffer_.data(), size);
        buffer_.erase(0, size);
        if (copies.size() == numbers.size())
            return copies;
        head = read_line();
    }
}

nlohmann::json Child::ask(const nlohmann::json& request) {
    const std::string line = request.dump() + "\n";
    if (send(to_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        throw NotRun{"ended early"};
    return read_line();
}

nlohmann::json Child::read_line() {
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) == std::string::npos)
        read_some();
    nlohmann::json line = nlohmann::json::parse(buffer_.substr(0, end), nullptr, false);
    buffer_.erase(0, end + 1);
    if (!line.is_object())
        throw NotRun{"answered what is no JSON"};
    if (line.contains("error"))
        throw NotRun{line["error"].get<std::string>()};
    return line;
}

void Child::read_some() {
    pollfd readable{from_, POLLIN, 0};
    std::int64_t used_ns = 0;
    while (poll(&readable, 1, most_silence_ms) == 0)
        if (const std::int64_t now_ns = process_tree_use(pid_).cpu_ns;
            now_ns - std::exchange(used_ns, now_ns) < least_work_ns)
            throw NotRun{fmt::format("no answer, and no work, for {} s", most_silence_ms / 1000)};
    const std::size_t size = buffer_.size(), step = std::size_t{1} << 20;
    buffer_.resize(size + step);
    const ssize_t n = read(from_, buffer_.data() + size, step);
    buffer_.resize(size + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n == 0 || (n < 0 && errno != EINTR))
        throw NotRun{"ended early"};
}

}   // namespace drawpoint::bench
