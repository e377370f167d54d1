#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <system_error>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "pipeline/loader/reading/io_ring.hpp"
#include "pipeline/loader/reading/read_ahead.hpp"

namespace drawpoint {

/// One read through an IoRing at a time: opens the file if it is not open, sizes the buffer, reads piece by piece, and
/// starts again after a transient failure. One thread, that of the ring.
class RingJob {
public:
    /// `id`: of the job's operations.
    RingJob(ReadAhead& ahead, IoRing& ring, std::uint64_t id) noexcept : ahead_{&ahead}, ring_{&ring}, id_{id} {}

    /// Starts a read, while none runs. Returns the buffer if the read has ended, with its bytes or its error. Null: one
    /// operation of the job is queued, and advance() must be called with its result.
    [[nodiscard]] ReadBuffer* start(ReadBuffer&) noexcept;
    /// The queued operation ended with `result`. Returns as start() does.
    [[nodiscard]] ReadBuffer* advance(int result) noexcept;
    /// Makes the running read fail soon. Queues one operation `id`.
    void cancel(std::uint64_t id) noexcept;

    [[nodiscard]] bool is_running() const noexcept { return buffer_ != nullptr; }
    /// Whether the worker that waited for the running read gave up.
    [[nodiscard]] bool is_late() const noexcept {
        return is_running() && buffer_->late.load(std::memory_order_relaxed);
    }

private:
    // These return as start() does.
    ReadBuffer* open_or_read();   // throws what reading throws
    ReadBuffer* read_on() noexcept;
    ReadBuffer* fail(std::exception_ptr) noexcept;
    ReadBuffer* pause() noexcept;   // before the next attempt
    ReadBuffer* end() noexcept;

    [[nodiscard]] bool may_retry(const std::error_code&) const noexcept;
    void close() noexcept;
    [[nodiscard]] int descriptor() const noexcept { return opened_ >= 0 ? opened_ : range_.descriptor; }

    ReadAhead* ahead_;
    IoRing* ring_;
    std::uint64_t id_;

    ReadBuffer* buffer_ = nullptr;   // null: no read is running
    FileRange range_;
    int opened_ = -1;   // descriptor to be closed
    bool opening_ = false, pausing_ = false, cancelled_ = false;
    std::uint64_t done_ = 0;   // bytes
    std::size_t attempts_ = 1;
    __kernel_timespec pause_{};
};

}   // namespace drawpoint
