#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint {

/// What a signal handler knows of the code it interrupted.
struct Interrupted {
    std::uint64_t pc = 0, sp = 0, fp = 0;
    bool in_system_call = false;   ///< right behind the instruction that enters the kernel
};

/// Reads the third argument of a signal handler. Async-signal-safe.
[[nodiscard]] Interrupted interrupted_by(const void* context) noexcept;

/// How far the stack that `sp` lies on may be read in a mapping that ends at `mapping_end`. The mapping may hold
/// neighbours of the stack, which may go while it stays: reads neither into the thread's own block, which lies above
/// its stack, nor 16 MiB on. Of the thread itself. Async-signal-safe.
[[nodiscard]] std::uint64_t stack_limit(std::uint64_t sp, std::uint64_t mapping_end) noexcept;

/// Walks frame pointers from `at` outwards, never below its stack pointer nor at or above `stack_end`, which must be
/// mapped up to there (0: takes the innermost address only). Returns how many addresses it put into `addresses`,
/// innermost first. Async-signal-safe.
[[nodiscard]] std::size_t walk_stack(const Interrupted& at, std::uint64_t stack_end,
                                     std::span<std::uint64_t> addresses) noexcept;

}   // namespace drawpoint
