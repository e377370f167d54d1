#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <liburing.h>

namespace drawpoint {

/// An io_uring. Operations are queued under an id of the caller's, start with the next submission and end in one
/// completion each. One thread at a time.
class IoRing {
public:
    struct Completion {
        std::uint64_t id;
        int result;   ///< a descriptor, a number of bytes, or a negative errno
    };

    /// Throws std::system_error where the kernel allows no ring or lacks an operation used here.
    /// `completions`: most operations that are queued or not looked at yet, so that none needs the kernel's memory.
    IoRing(unsigned entries, unsigned completions);
    ~IoRing();
    IoRing(const IoRing&) = delete;
    IoRing& operator=(const IoRing&) = delete;

    /// Upper limit of the threads on which the kernel runs operations that would block; its default is four per core.
    void limit_kernel_threads(unsigned most) noexcept;

    // What these point to must stay until the completion. A full queue is submitted first.
    void open(const char* path, int flags, std::uint64_t id) noexcept;
    /// At most 1 GiB of `to` is read.
    void read(int descriptor, std::span<std::byte> to, std::uint64_t offset, std::uint64_t id) noexcept;
    void pause(__kernel_timespec& time, std::uint64_t id) noexcept;
    /// Cancels the operation `which` if it has not ended; that still ends in a completion.
    void cancel(std::uint64_t which, std::uint64_t id) noexcept;

    void submit() noexcept;
    void submit_and_wait() noexcept;   ///< for at least one completion
    [[nodiscard]] std::optional<Completion> next_completion() noexcept;

private:
    [[nodiscard]] io_uring_sqe& free_entry() noexcept;

    io_uring ring_{};
};

}   // namespace drawpoint
