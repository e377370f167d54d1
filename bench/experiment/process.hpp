#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

namespace drawpoint::bench {

/// Of user and system together.
[[nodiscard]] inline double cpu_seconds(const rusage& usage) noexcept {
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The last line that is not empty, without blanks at its end.
[[nodiscard]] std::string_view last_line(std::string_view output) noexcept;

/// Runs a command line as a process of its own, again and again: in a process group of its own, with default signals
/// and no input. What it leaves running in its group is ended with it. By one thread at a time.
class Process {
public:
    /// `name`: for messages. A line without characters that are special to a shell is run directly, any other one by
    /// /bin/sh. Throws NotRun if it is empty.
    Process(std::string name, std::string line);
    /// Runs a file with these words, of which the first one is its name; `line`: the same for messages.
    Process(std::string name, std::string line, std::string file, std::vector<std::string> words);
    ~Process();   ///< gives up what is running

    /// From now on, what it starts stays in this process's group, and is ended with that.
    void stay_in_group() noexcept { own_group_ = false; }

    struct Ended {
        std::chrono::duration<double> wall{};
        rusage usage{};
        std::string output;   ///< what it wrote to stdout, if that was asked for
    };
    /// `words`: put after those of the line. Throws NotRun, with the end of what it wrote to stderr, unless it ends
    /// with exit code 0; Cancelled; and std::system_error if the process cannot be waited for.
    [[nodiscard]] Ended run(bool keeps_output, const std::vector<std::string>& words = {}) {
        start(keeps_output, words);
        return finish();
    }
    /// The two halves of run(). `channel`: a descriptor that the process has as number `channel_number`; below 0: none.
    void start(bool keeps_output, const std::vector<std::string>& words, int channel = -1);
    [[nodiscard]] Ended finish();
    [[nodiscard]] pid_t running() const noexcept { return running_; }   ///< 0: nothing; by the thread that starts it
    /// Kills what is running, if anything is.
    void give_up() noexcept;
    static constexpr int channel_number = 3;

    /// Kills what is running, with all that it started, and lets nothing run later. Any thread.
    void cancel() noexcept;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& line() const noexcept { return line_; }

private:
    class Output;
    void spawn(const std::vector<std::string>& more, int channel);
    void reap(int& status, rusage& usage);

    std::string name_, line_, file_;
    std::vector<std::string> words_;
    bool by_shell_ = false, own_group_ = true;
    std::unique_ptr<Output> output_, error_output_;   // of the process that was started last
    std::chrono::steady_clock::time_point begin_;     // of it
    std::mutex mutex_;
    pid_t running_ = 0;   // 0: none
    bool cancelled_ = false;
};

}   // namespace drawpoint::bench
