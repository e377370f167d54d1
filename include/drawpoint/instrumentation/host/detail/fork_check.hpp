#pragma once

#include <atomic>
#include <cstdint>

namespace drawpoint {

/// Notices that this process is a fork of the one in which the object was made. A fork has one thread: it must not wait
/// for the others, nor lock what they may have locked. Any thread.
class ForkCheck {
public:
    ForkCheck() noexcept : forks_{forks.load(std::memory_order_relaxed)} {}
    [[nodiscard]] bool is_forked() const noexcept { return forks.load(std::memory_order_relaxed) != forks_; }

private:
    /// Forks from the first process to this one, by `fork()`. Asking for the process id instead is a system call.
    static std::atomic<std::uint32_t> forks;
    static const int watched;
    std::uint32_t forks_;
};

}   // namespace drawpoint
