#include "child.hpp"

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace drawpoint::bench {
namespace {

struct Request {
    enum class Kind : std::uint32_t { round, batch } kind;
    std::uint64_t epoch, count;   // count: passes of a round; the number of a batch
};

bool write_all(int file, const void* bytes, std::size_t size) {
    const auto* at = static_cast<const char*>(bytes);
    while (size > 0) {
        const ssize_t n = send(file, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

bool read_all(int file, void* bytes, std::size_t size) {
    auto* at = static_cast<char*>(bytes);
    while (size > 0) {
        const ssize_t n = read(file, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

std::int64_t cpu_ns() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1'000; };
    return ns(used.ru_utime) + ns(used.ru_stime);
}

Round run_round(Contender& contender, std::size_t first_epoch, std::size_t passes) {
    Round round;
    round.target_digest = 0xCBF29CE484222325;
    const std::int64_t begin_cpu = cpu_ns(), begin = now_ns();
    const auto see = [&](const BatchView& batch) {
        if (round.first_batch_ns == 0)
            round.first_batch_ns = now_ns() - begin;
        round.items += batch.targets.size();
        for (const std::int64_t target : batch.targets)
            round.target_digest = (round.target_digest ^ static_cast<std::uint64_t>(target)) * 0x100000001B3;
    };
    for (std::size_t p = 0; p < passes; ++p)
        contender.pass(first_epoch + p, p + 1 < passes, see);
    round.wall_ns = now_ns() - begin;
    round.cpu_ns = cpu_ns() - begin_cpu;
    return round;
}

bool send_batch(int socket, Contender& contender, const Request& request, std::size_t sample_values) {
    std::uint64_t number = 0;
    bool sent = false;
    contender.pass(request.epoch, false, [&](const BatchView& batch) {
        if (number++ != request.count)
            return;
        const std::uint64_t head[2] = {batch.targets.size(), sample_values};
        sent = write_all(socket, head, sizeof head) &&
               write_all(socket, batch.targets.data(), batch.targets.size_bytes()) &&
               write_all(socket, batch.data, head[0] * head[1] * sizeof(float));
    });
    return sent;
}

std::unique_ptr<Contender> make(std::string_view contender, std::string_view variant, const Workload& workload) {
    if (contender == "drawpoint")
        return make_drawpoint(workload);
#ifdef DRAWPOINT_BENCH_TORCH
    return make_torch_data(workload, variant == "same_kernel" ? TorchKernel::drawpoint : TorchKernel::aten);
#else
    throw std::runtime_error{fmt::format("{} {}: this build has no LibTorch", contender, variant)};
#endif
}

constexpr const char* serve_word = "--serve";

}   // namespace

Child::Child(const Entry& entry, const Workload& workload) : entry_{entry} {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::runtime_error{"socketpair failed"};
    const std::string words[] = {serve_word,
                                 std::to_string(ends[1]),
                                 entry.contender,
                                 entry.variant,
                                 workload.data.string(),
                                 std::to_string(workload.batch_size),
                                 std::to_string(workload.num_workers),
                                 std::to_string(workload.side),
                                 std::to_string(workload.seed)};
    std::vector<char*> arguments{const_cast<char*>("bench_loader")};
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        fcntl(ends[1], F_SETFD, 0);
        execv("/proc/self/exe", arguments.data());
        _exit(127);
    }
    close(ends[1]);
    socket_ = ends[0];
    std::uint64_t size = 0;
    receive(&size, sizeof size);
    description_.resize(size);
    receive(description_.data(), size);
}

Child::Child(Child&& other) noexcept
    : entry_{other.entry_},
      pid_{std::exchange(other.pid_, -1)},
      socket_{std::exchange(other.socket_, -1)},
      description_{std::move(other.description_)} {}

Child::~Child() {
    if (socket_ >= 0)
        close(socket_);   // the child reads the end and leaves
    if (pid_ > 0)
        waitpid(pid_, nullptr, 0);
}

Round Child::round(std::size_t first_epoch, std::size_t passes) {
    const Request request{Request::Kind::round, first_epoch, passes};
    send(&request, sizeof request);
    Round round;
    receive(&round, sizeof round);
    return round;
}

BatchCopy Child::batch(std::size_t epoch, std::size_t number) {
    const Request request{Request::Kind::batch, epoch, number};
    send(&request, sizeof request);
    std::uint64_t head[2];   // samples, values of a sample
    receive(head, sizeof head);
    BatchCopy copy{std::vector<float>(head[0] * head[1]), std::vector<std::int64_t>(head[0])};
    receive(copy.targets.data(), copy.targets.size() * sizeof(std::int64_t));
    receive(copy.data.data(), copy.data.size() * sizeof(float));
    return copy;
}

void Child::send(const void* bytes, std::size_t size) {
    if (!write_all(socket_, bytes, size))
        throw std::runtime_error{fmt::format("{} {} ended early", entry_.contender, entry_.variant)};
}

void Child::receive(void* bytes, std::size_t size) {
    if (!read_all(socket_, bytes, size))
        throw std::runtime_error{fmt::format("{} {} ended early", entry_.contender, entry_.variant)};
}

bool is_child(int argc, char** argv) noexcept { return argc == 10 && std::string_view{argv[1]} == serve_word; }

int serve(int, char** argv) {
    const std::string_view contender_name = argv[3], variant = argv[4];
    if (variant == "tuned") {   // freed batches stay in the heap: no page is faulted in twice
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
    }
    try {
        const int socket = std::stoi(argv[2]);
        const Workload workload{argv[5], std::stoul(argv[6]), std::stoul(argv[7]),
                                static_cast<std::uint32_t>(std::stoul(argv[8])), std::stoull(argv[9])};
        const std::unique_ptr<Contender> contender = make(contender_name, variant, workload);
        const std::string description = contender->describe();
        const std::uint64_t size = description.size();
        bool going = write_all(socket, &size, sizeof size) && write_all(socket, description.data(), size);
        for (Request request{}; going && read_all(socket, &request, sizeof request);) {
            if (request.kind == Request::Kind::round) {
                const Round round = run_round(*contender, request.epoch, request.count);
                going = write_all(socket, &round, sizeof round);
            } else {
                going = send_batch(socket, *contender, request, std::size_t{3} * workload.side * workload.side);
            }
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_loader: {} {}: {}\n", contender_name, variant, error.what());
        return 1;
    }
}

}   // namespace drawpoint::bench
