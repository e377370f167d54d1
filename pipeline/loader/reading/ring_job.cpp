#include "pipeline/loader/reading/ring_job.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include <unistd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>

#include "pipeline/loader/reading/read_retry.hpp"

namespace drawpoint {

ReadBuffer* RingJob::start(ReadBuffer& buffer) noexcept {
    *this = RingJob{*ahead_, *ring_, id_};
    buffer_ = &buffer;
    try {
        if (const std::optional<FileRange> range = ahead_->retried().reads().location(buffer.index)) {
            range_ = *range;
            return open_or_read();
        }
        ahead_->retried().read(buffer.index, buffer.bytes);
        return end();
    } catch (...) {
        return fail(std::current_exception());
    }
}

ReadBuffer* RingJob::open_or_read() {
    done_ = 0;
    if (descriptor() < 0) {
        opening_ = true;
        ring_->open(range_.path, detail::open_for_reading, id_);
        return nullptr;
    }
    std::uint64_t bytes = range_.bytes;
    if (bytes == FileRange::whole) {
        const std::uint64_t size = detail::size_of_regular(descriptor(), range_.path);
        bytes = size - std::min(size, range_.offset);
    } else if (opened_ >= 0) {
        (void)detail::size_of_regular(descriptor(), range_.path);
    }
    detail::resize_contents(buffer_->bytes, bytes, range_.path);
    return read_on();
}

ReadBuffer* RingJob::read_on() noexcept {
    const std::span<std::byte> rest = std::span{buffer_->bytes}.subspan(done_);
    if (rest.empty())
        return end();
    ring_->read(descriptor(), rest, range_.offset + done_, id_);
    return nullptr;
}

ReadBuffer* RingJob::advance(int result) noexcept {
    try {
        const char* const path = range_.path != nullptr ? range_.path : "";
        const bool opening = std::exchange(opening_, false);
        if (opening && result >= 0)
            opened_ = result;
        if (cancelled_)   // the operation may have ended before it was cancelled: no other one must follow
            throw std::system_error{std::make_error_code(std::errc::operation_canceled), "read"};
        if (std::exchange(pausing_, false)) {
            ahead_->retried().count_retry();
            ++attempts_;
            return open_or_read();
        }
        if (opening) {
            if (result < 0)
                detail::fail_io("cannot open", path, -result);
            return open_or_read();
        }
        if (result < 0)
            detail::fail_io("cannot read", path, -result);
        if (result == 0)
            detail::fail_io("cannot read: the file shrank meanwhile", path, EIO);
        done_ += static_cast<std::uint64_t>(result);
        return read_on();
    } catch (...) {
        return fail(std::current_exception());
    }
}

ReadBuffer* RingJob::fail(std::exception_ptr error) noexcept {
    close();
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& cause) {
        if (may_retry(cause.code()))
            return pause();
        try {
            if (attempts_ > 1)
                error = std::make_exception_ptr(tried_in_vain(attempts_, cause.code()));
        } catch (const std::bad_alloc&) {
        }
    } catch (...) {   // not a failure of storage: keep it as it is
    }
    buffer_->error = std::move(error);
    return end();
}

bool RingJob::may_retry(const std::error_code& error) const noexcept {
    const ReadRules& rules = ahead_->retried().rules();
    return is_transient(error) && attempts_ <= rules.retries && !cancelled_ && !ahead_->stopping() &&
           (rules.deadline.count() == 0 || std::chrono::steady_clock::now() + back_off(attempts_) <= buffer_->due);
}

ReadBuffer* RingJob::pause() noexcept {
    const std::chrono::nanoseconds time = back_off(attempts_);
    pausing_ = true;
    pause_ = {.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
    ring_->pause(pause_, id_);
    return nullptr;
}

void RingJob::cancel(std::uint64_t id) noexcept {
    if (!std::exchange(cancelled_, true))
        ring_->cancel(id_, id);
}

ReadBuffer* RingJob::end() noexcept {
    close();
    const ReadRules& rules = ahead_->retried().rules();
    if (!buffer_->error && rules.deadline.count() > 0 && std::chrono::steady_clock::now() > buffer_->due) {
        try {
            throw took_too_long(rules.deadline);
        } catch (...) {
            buffer_->error = std::current_exception();
        }
    }
    return std::exchange(buffer_, nullptr);
}

void RingJob::close() noexcept {
    if (opened_ >= 0)
        ::close(std::exchange(opened_, -1));
}

}   // namespace drawpoint
