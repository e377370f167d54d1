#pragma once

#include <cstddef>

#include <sys/types.h>

namespace drawpoint::bench {

/// The parent's end of a channel to a process that runs in steps: told a number of runs, it runs them, and says so.
class Steps {
public:
    Steps();   ///< Throws std::system_error if there is no socket.
    ~Steps();
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    /// The end for the process that is started next.
    [[nodiscard]] int for_child() const noexcept { return child_; }
    /// After the process was started: its end is closed here, so that one notices when it ends.
    void close_childs_end() noexcept;
    /// Waits until the process is ready for the next step. Returns whether it is: false if it has ended, even if
    /// something that it started still has the channel.
    [[nodiscard]] bool wait(pid_t process) noexcept;
    /// Lets it run so many times.
    void run(std::size_t runs) noexcept;
    /// Lets it end.
    void close() noexcept;

private:
    int own_ = -1, child_ = -1;
};

/// In the process, before it opens or starts anything: keeps the channel from what it starts. Throws std::runtime_error
/// if there is none.
void take_channel();
/// Then: says that it is ready, and waits for a number of runs; 0: no more, or the parent has ended. Throws
/// std::runtime_error if something else comes.
[[nodiscard]] std::size_t next_step();

}   // namespace drawpoint::bench
