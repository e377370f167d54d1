#pragma once

#include "contender.hpp"

#include <sys/types.h>

#include <string>
#include <type_traits>
#include <vector>

namespace drawpoint::bench {

/// Who is measured and how: one row of the table.
struct Entry {
    const char* contender;   ///< "drawpoint" or "torch-data"
    const char* variant;     ///< as_shipped, tuned (malloc keeps its memory), same_kernel (drawpoint's kernel in get())
};

/// One round as a contender saw it: some passes, one after the other.
struct Round {
    std::int64_t wall_ns = 0, cpu_ns = 0;
    std::int64_t first_batch_ns = 0;   ///< from asking for the first pass to its first batch in hand
    std::uint64_t items = 0;
    std::uint64_t target_digest = 0;   ///< of all targets in order: equal for all, or somebody delivered something else
};
static_assert(std::is_trivially_copyable_v<Round>);

/// One batch, copied.
struct BatchCopy {
    std::vector<float> data;
    std::vector<std::int64_t> targets;
};

/// A contender in a process of its own, so that its heap, its malloc settings and its threads touch no other's. Idle between
/// calls. One thread at a time.
class Child {
public:
    /// Starts this very program again, which must call `serve()`. Throws std::runtime_error naming the contender when it fails.
    Child(const Entry&, const Workload&);
    ~Child();
    Child(Child&&) noexcept;
    Child& operator=(Child&&) = delete;

    [[nodiscard]] const Entry& entry() const noexcept { return entry_; }
    [[nodiscard]] const std::string& description() const noexcept { return description_; }
    [[nodiscard]] Round round(std::size_t first_epoch, std::size_t passes);
    [[nodiscard]] BatchCopy batch(std::size_t epoch, std::size_t number);

private:
    void send(const void* bytes, std::size_t size);
    void receive(void* bytes, std::size_t size);

    Entry entry_;
    pid_t pid_ = -1;
    int socket_ = -1;
    std::string description_;
};

/// If this process was started by a `Child`: serves it to the end, and returns the exit code.
[[nodiscard]] bool is_child(int argc, char** argv) noexcept;
[[nodiscard]] int serve(int argc, char** argv);

}   // namespace drawpoint::bench
