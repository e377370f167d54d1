#include "pipeline/loader/reading/read_ring.hpp"

#include <drawpoint/pipeline/loader/read_backend.hpp>

#if DRAWPOINT_HAS_IO_URING

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint {

namespace {

constexpr std::uint64_t wake_event = 1, nothing = 2, jobs_from = 16;   // of user data
constexpr std::uint64_t most_at_once = std::uint64_t{1} << 30;         // bytes of one read

/// Why the kernel does not let us, or 0.
int start_ring(io_uring& ring, unsigned entries) noexcept {
    const int started = ::io_uring_queue_init(entries, &ring, IORING_SETUP_CLAMP);
    if (started < 0)
        return -started;
    io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring);
    const bool enough = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_OPENAT) != 0 &&
                        ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                        ::io_uring_opcode_supported(probe, IORING_OP_ASYNC_CANCEL) != 0;
    if (probe != nullptr)
        ::io_uring_free_probe(probe);
    if (enough)
        return 0;
    ::io_uring_queue_exit(&ring);
    return ENOSYS;
}

/// One read on its way: opened, sized, read in as many pieces as it takes, perhaps all over again.
struct Job {
    ReadBuffer* buffer = nullptr;   // null: free
    FileRange range;
    int opened = -1;   // to be closed
    bool opening = false, pausing = false, cancelled = false;
    std::uint64_t done = 0, waits = 0;
    std::size_t attempts = 0;
    __kernel_timespec pause{};

    [[nodiscard]] int descriptor() const noexcept { return opened >= 0 ? opened : range.descriptor; }
};

class ReadRing final : public Readers {
public:
    /// Throws std::system_error when the kernel refuses.
    explicit ReadRing(ReadAhead& ahead);
    ~ReadRing() override;
    [[nodiscard]] bool grow() noexcept override;
    void wake() noexcept override;
    void join() noexcept override {
        if (thread_.joinable())
            thread_.join();
    }

private:
    void work() noexcept;
    void start(ReadBuffer&) noexcept;
    void open_or_read(Job&);   // throws what reading throws
    void read_on(Job&) noexcept;
    void advance(Job&, int result) noexcept;
    void failed(Job&, std::exception_ptr) noexcept;
    void finish(Job&) noexcept;
    void close(Job&) noexcept;
    std::size_t handle_completions() noexcept;
    void cancel_unwanted() noexcept;
    void await_wake() noexcept;
    [[nodiscard]] io_uring_sqe& entry(std::uint64_t user_data) noexcept;
    [[nodiscard]] std::uint64_t user_data(const Job& job) const noexcept {
        return jobs_from + static_cast<std::uint64_t>(&job - jobs_.data());
    }

    ReadAhead* ahead_;
    io_uring ring_{};
    int event_ = -1;
    std::uint64_t event_value_ = 0;
    bool event_awaited_ = false;
    std::vector<Job> jobs_;   // by number of the buffer
    std::size_t in_flight_ = 0;
    std::uint64_t waits_ = 0;   // times the thread slept: a read that ends without one was in memory
    std::thread thread_;
};

ReadRing::ReadRing(ReadAhead& ahead) : ahead_{&ahead}, jobs_(3 * ahead.concurrency()) {
    event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_ < 0)
        throw std::system_error{errno, std::generic_category(), "eventfd"};
    if (const int error =
            start_ring(ring_, static_cast<unsigned>(std::min<std::size_t>(ahead.concurrency() + 2, 1024)))) {
        ::close(event_);
        throw std::system_error{error, std::generic_category(), "io_uring_setup"};
    }
    // What cannot be done without waiting goes to threads of the kernel's: by default only four a core.
    std::array<unsigned, 2> most{static_cast<unsigned>(ahead.concurrency()), 0};
    (void)::io_uring_register_iowq_max_workers(&ring_, most.data());
}

ReadRing::~ReadRing() {
    join();
    ::io_uring_queue_exit(&ring_);
    ::close(event_);
}

bool ReadRing::grow() noexcept {
    if (thread_.joinable())
        return false;   // one does it all
    try {
        thread_ = std::thread{[this] { work(); }};
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

void ReadRing::wake() noexcept {
    const std::uint64_t one = 1;
    (void)!::write(event_, &one, sizeof one);
}

io_uring_sqe& ReadRing::entry(std::uint64_t user_data) noexcept {
    io_uring_sqe* one = ::io_uring_get_sqe(&ring_);
    while (one == nullptr) {   // full: the kernel takes them all
        ::io_uring_submit(&ring_);
        one = ::io_uring_get_sqe(&ring_);
    }
    ::io_uring_prep_nop(one);
    ::io_uring_sqe_set_data64(one, user_data);
    return *one;
}

void ReadRing::await_wake() noexcept {
    io_uring_sqe& one = entry(wake_event);
    ::io_uring_prep_read(&one, event_, &event_value_, sizeof event_value_, 0);
    ::io_uring_sqe_set_data64(&one, wake_event);
    event_awaited_ = true;
}

void ReadRing::start(ReadBuffer& buffer) noexcept {
    Job& job = jobs_[buffer.number];
    job = {.buffer = &buffer, .range = {}, .waits = waits_, .attempts = 1};
    ++in_flight_;
    try {
        if (const std::optional<FileRange> range = ahead_->retried().reads().location(buffer.index)) {
            job.range = *range;
            open_or_read(job);
        } else {
            ahead_->retried().read(buffer.index, buffer.bytes);
            finish(job);
        }
    } catch (...) {
        failed(job, std::current_exception());
    }
}

void ReadRing::open_or_read(Job& job) {
    job.done = 0;
    if (job.descriptor() < 0) {
        job.opening = true;
        io_uring_sqe& one = entry(user_data(job));
        ::io_uring_prep_openat(&one, AT_FDCWD, job.range.path, detail::open_for_reading, 0);
        ::io_uring_sqe_set_data64(&one, user_data(job));
        return;
    }
    std::uint64_t bytes = job.range.bytes;
    if (bytes == FileRange::whole) {
        const std::uint64_t size = detail::size_of_regular(job.descriptor(), job.range.path);
        bytes = size - std::min(size, job.range.offset);
    } else if (job.opened >= 0) {
        (void)detail::size_of_regular(job.descriptor(), job.range.path);
    }
    detail::resize_contents(job.buffer->bytes, bytes, job.range.path);
    read_on(job);
}

void ReadRing::read_on(Job& job) noexcept {
    std::vector<std::byte>& bytes = job.buffer->bytes;
    if (job.done == bytes.size())
        return finish(job);
    const auto count = static_cast<unsigned>(std::min<std::uint64_t>(bytes.size() - job.done, most_at_once));
    io_uring_sqe& one = entry(user_data(job));
    ::io_uring_prep_read(&one, job.descriptor(), bytes.data() + job.done, count, job.range.offset + job.done);
    ::io_uring_sqe_set_data64(&one, user_data(job));
}

void ReadRing::advance(Job& job, int result) noexcept {
    try {
        const char* const path = job.range.path != nullptr ? job.range.path : "";
        const bool opening = std::exchange(job.opening, false);
        if (opening && result >= 0)
            job.opened = result;
        if (job.cancelled)   // which may come too late for what has just ended, but not for what would follow
            throw std::system_error{std::make_error_code(std::errc::operation_canceled), "read"};
        if (std::exchange(job.pausing, false)) {
            ahead_->retried().count_retry();
            ++job.attempts;
            open_or_read(job);
        } else if (opening) {
            if (result < 0)
                detail::fail_io("cannot open", path, -result);
            open_or_read(job);
        } else if (result < 0) {
            detail::fail_io("cannot read", path, -result);
        } else if (result == 0) {
            detail::fail_io("cannot read: the file shrank meanwhile", path, EIO);
        } else {
            job.done += static_cast<std::uint64_t>(result);
            read_on(job);
        }
    } catch (...) {
        failed(job, std::current_exception());
    }
}

void ReadRing::failed(Job& job, std::exception_ptr error) noexcept {
    close(job);
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& cause) {
        const ReadRules& rules = ahead_->retried().rules();
        const std::chrono::nanoseconds pause = back_off(job.attempts);
        const bool again = is_transient(cause.code()) && job.attempts <= rules.retries && !job.cancelled &&
                           !ahead_->stopping() &&
                           (rules.deadline.count() == 0 || std::chrono::steady_clock::now() + pause <= job.buffer->due);
        if (again) {
            job.pausing = true;
            job.pause = {.tv_sec = pause.count() / 1'000'000'000, .tv_nsec = pause.count() % 1'000'000'000};
            io_uring_sqe& one = entry(user_data(job));
            ::io_uring_prep_timeout(&one, &job.pause, 0, 0);
            ::io_uring_sqe_set_data64(&one, user_data(job));
            return;
        }
        try {
            if (job.attempts > 1)
                error = std::make_exception_ptr(tried_in_vain(job.attempts, cause.code()));
        } catch (const std::bad_alloc&) {
        }
    } catch (...) {   // no failure of storage: as it is
    }
    job.buffer->error = std::move(error);
    finish(job);
}

void ReadRing::close(Job& job) noexcept {
    if (job.opened >= 0)
        ::close(std::exchange(job.opened, -1));
}

void ReadRing::finish(Job& job) noexcept {
    close(job);
    ReadBuffer& buffer = *std::exchange(job.buffer, nullptr);
    const ReadRules& rules = ahead_->retried().rules();
    if (!buffer.error && rules.deadline.count() > 0 && std::chrono::steady_clock::now() > buffer.due) {
        try {
            throw took_too_long(rules.deadline);
        } catch (...) {
            buffer.error = std::current_exception();
        }
    }
    buffer.times.end_ns = ahead_->clock().now_ns();
    buffer.blocked = job.waits != waits_;
    --in_flight_;
    ahead_->end_read(buffer);
}

std::size_t ReadRing::handle_completions() noexcept {
    std::size_t handled = 0;
    io_uring_cqe* one = nullptr;
    while (::io_uring_peek_cqe(&ring_, &one) == 0) {
        const std::uint64_t what = ::io_uring_cqe_get_data64(one);
        const int result = one->res;
        ::io_uring_cqe_seen(&ring_, one);
        ++handled;
        if (what == wake_event) {
            event_awaited_ = false;
            cancel_unwanted();
        } else if (what >= jobs_from) {
            advance(jobs_[what - jobs_from], result);
        }
    }
    return handled;
}

void ReadRing::cancel_unwanted() noexcept {
    const bool all = ahead_->stopping();
    for (Job& job : jobs_) {
        if (job.buffer == nullptr || job.cancelled || !(all || job.buffer->late.load(std::memory_order_relaxed)))
            continue;
        job.cancelled = true;
        io_uring_sqe& one = entry(nothing);
        ::io_uring_prep_cancel64(&one, user_data(job), 0);
        ::io_uring_sqe_set_data64(&one, nothing);
    }
}

void ReadRing::work() noexcept {
    await_wake();
    bool slept = false;
    for (;;) {
        const bool stopping = ahead_->stopping();
        if (stopping && in_flight_ == 0 && !event_awaited_)
            return;
        while (!stopping) {
            ReadBuffer* const buffer = ahead_->next_read(ReadAhead::Idle::returns, std::exchange(slept, false));
            if (buffer == nullptr)
                break;
            start(*buffer);
        }
        if (stopping)
            cancel_unwanted();
        else if (!event_awaited_)
            await_wake();
        ::io_uring_submit(&ring_);
        if (handle_completions() != 0)
            continue;
        if (!stopping) {
            if (ReadBuffer* const buffer = ahead_->next_read(ReadAhead::Idle::sleeps)) {
                start(*buffer);
                continue;
            }
            slept = true;
        }
        ++waits_;
        ::io_uring_submit_and_wait(&ring_, 1);
    }
}

}   // namespace

std::unique_ptr<Readers> make_read_ring(ReadAhead& ahead) {
    try {
        return std::make_unique<ReadRing>(ahead);
    } catch (const std::system_error&) {
        return nullptr;
    }
}

ReadBackend read_backend() {
    io_uring ring{};
    const int error = start_ring(ring, 8);
    if (error != 0)
        return {
            .io_uring = false, .name = "pread threads", .why = std::string{"io_uring_setup: "} + std::strerror(error)};
    ::io_uring_queue_exit(&ring);
    return {.io_uring = true, .name = "io_uring", .why = "the kernel has openat, read and cancel"};
}

}   // namespace drawpoint

#else

namespace drawpoint {

std::unique_ptr<Readers> make_read_ring(ReadAhead&) { return nullptr; }

ReadBackend read_backend() { return {.io_uring = false, .name = "pread threads", .why = "built without liburing"}; }

}   // namespace drawpoint

#endif
