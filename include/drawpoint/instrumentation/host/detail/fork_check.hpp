#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace drawpoint {

/// Notices that this process is a fork of the one in which the object was made. A fork has one thread: it must not wait
/// for the others, nor lock what they may have locked.
class ForkCheck {
public:
    ForkCheck() noexcept : process_{::getpid()} {}
    [[nodiscard]] bool is_forked() const noexcept { return ::getpid() != process_; }   ///< a system call

private:
    pid_t process_;
};

}   // namespace drawpoint
