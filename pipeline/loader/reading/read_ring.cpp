#include "pipeline/loader/reading/read_ring.hpp"

#include <drawpoint/pipeline/loader/reading/read_backend.hpp>

#if DRAWPOINT_HAS_IO_URING

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "pipeline/loader/reading/io_ring.hpp"
#include "pipeline/loader/reading/ring_job.hpp"

namespace drawpoint {

namespace {

constexpr std::uint64_t wake_event = 1, cancellation = 2, jobs_from = 16;   // ids of operations

/// An eventfd through which other threads wake the thread of the ring.
class WakeEvent {
public:
    /// Throws std::system_error when the kernel refuses.
    WakeEvent() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (descriptor_ < 0)
            throw std::system_error{errno, std::generic_category(), "eventfd"};
    }
    ~WakeEvent() { ::close(descriptor_); }
    WakeEvent(const WakeEvent&) = delete;
    WakeEvent& operator=(const WakeEvent&) = delete;

    void set() noexcept {
        const std::uint64_t one = 1;
        (void)!::write(descriptor_, &one, sizeof one);
    }
    /// Queues a read that ends once the event is set.
    void await(IoRing& ring) noexcept {
        ring.read(descriptor_, std::as_writable_bytes(std::span{&value_, 1}), 0, wake_event);
        awaited_ = true;
    }
    void arrived() noexcept { awaited_ = false; }   ///< that read ended
    [[nodiscard]] bool is_awaited() const noexcept { return awaited_; }

private:
    int descriptor_;
    std::uint64_t value_ = 0;
    bool awaited_ = false;
};

class ReadRing final : public Readers {
public:
    /// Throws std::system_error when the kernel refuses.
    explicit ReadRing(ReadAhead& ahead);
    ~ReadRing() override { join(); }
    [[nodiscard]] bool grow() noexcept override;
    void wake() noexcept override { event_.set(); }
    void join() noexcept override {
        if (thread_.joinable())
            thread_.join();
    }

private:
    void work() noexcept;
    void start(ReadBuffer&) noexcept;
    void finish(ReadBuffer&) noexcept;
    std::size_t handle_completions() noexcept;
    void cancel_unwanted() noexcept;

    ReadAhead* ahead_;
    WakeEvent event_;
    IoRing ring_;
    std::vector<RingJob> jobs_;   // by number of the buffer
    std::size_t in_flight_ = 0;
    std::uint64_t waits_ = 0;                     // times the thread slept
    std::vector<std::uint64_t> waits_at_start_;   // waits_ when each job's read started: unchanged, it was in memory
    std::thread thread_;
};

ReadRing::ReadRing(ReadAhead& ahead)
    : ahead_{&ahead},
      // Completed may be an operation and its cancellation for each buffer, and the event.
      ring_{static_cast<unsigned>(std::min<std::size_t>(ahead.concurrency() + 2, 1024)),
            static_cast<unsigned>(2 * 3 * ahead.concurrency() + 2)},
      waits_at_start_(3 * ahead.concurrency()) {
    ring_.limit_kernel_threads(static_cast<unsigned>(ahead.concurrency()));
    jobs_.reserve(waits_at_start_.size());
    for (std::size_t i = 0; i < waits_at_start_.size(); ++i)
        jobs_.emplace_back(ahead, ring_, jobs_from + i);
}

bool ReadRing::grow() noexcept {
    if (thread_.joinable())
        return false;   // one thread is enough
    try {
        thread_ = std::thread{[this] { work(); }};
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

void ReadRing::start(ReadBuffer& buffer) noexcept {
    waits_at_start_[buffer.number] = waits_;
    ++in_flight_;
    if (ReadBuffer* const ended = jobs_[buffer.number].start(buffer))
        finish(*ended);
}

void ReadRing::finish(ReadBuffer& buffer) noexcept {
    buffer.times.end_ns = ahead_->clock().now_ns();
    buffer.blocked = waits_at_start_[buffer.number] != waits_;
    --in_flight_;
    ahead_->end_read(buffer);
}

std::size_t ReadRing::handle_completions() noexcept {
    std::size_t handled = 0;
    while (const std::optional<IoRing::Completion> completion = ring_.next_completion()) {
        ++handled;
        if (completion->id == wake_event) {
            event_.arrived();
            cancel_unwanted();
        } else if (completion->id >= jobs_from) {
            if (ReadBuffer* const ended = jobs_[completion->id - jobs_from].advance(completion->result))
                finish(*ended);
        }
    }
    return handled;
}

void ReadRing::cancel_unwanted() noexcept {
    const bool all = ahead_->stopping();
    for (RingJob& job : jobs_)
        if (all ? job.is_running() : job.is_late())
            job.cancel(cancellation);
}

void ReadRing::work() noexcept {
    event_.await(ring_);
    bool slept = false;
    for (;;) {
        const bool stopping = ahead_->stopping();
        if (stopping && in_flight_ == 0 && !event_.is_awaited())
            return;
        while (!stopping) {
            ReadBuffer* const buffer = ahead_->next_read(ReadAhead::Idle::returns, std::exchange(slept, false));
            if (buffer == nullptr)
                break;
            start(*buffer);
        }
        if (stopping)
            cancel_unwanted();
        else if (!event_.is_awaited())
            event_.await(ring_);
        ring_.submit();
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
        ring_.submit_and_wait();
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
    try {
        const IoRing ring{8, 16};
    } catch (const std::system_error& error) {
        return {.io_uring = false, .name = "pread threads", .why = "io_uring_setup: " + error.code().message()};
    }
    return {.io_uring = true, .name = "io_uring", .why = "the kernel has openat, read and cancel"};
}

}   // namespace drawpoint

#else

namespace drawpoint {

std::unique_ptr<Readers> make_read_ring(ReadAhead&) { return nullptr; }

ReadBackend read_backend() { return {.io_uring = false, .name = "pread threads", .why = "built without liburing"}; }

}   // namespace drawpoint

#endif
