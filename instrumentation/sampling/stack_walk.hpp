#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint {

/// The state of the interrupted code, from a signal handler.
struct Interrupted {
    std::uint64_t pc = 0, sp = 0, fp = 0;
    bool in_system_call = false;   ///< the next instruction follows one that enters the kernel
};

/// Reads the third argument of a signal handler. Async-signal-safe.
[[nodiscard]] Interrupted interrupted_by(const void* context) noexcept;

/// The end of the readable part of the stack that contains `sp`, in a mapping that ends at `mapping_end`. The mapping
/// may also contain neighbours of the stack, which can be unmapped meanwhile, so the limit excludes the thread's
/// control block above its stack, and is at most 16 MiB away. To be called by that thread. Async-signal-safe.
[[nodiscard]] std::uint64_t stack_limit(std::uint64_t sp, std::uint64_t mapping_end) noexcept;

/// Walks frame pointers from `at` outwards, but not below its stack pointer nor at or above `stack_end`, up to which
/// the memory must be mapped (0: take only the innermost address). Writes addresses into `addresses`, innermost first,
/// and returns their number. Async-signal-safe.
[[nodiscard]] std::size_t walk_stack(const Interrupted& at, std::uint64_t stack_end,
                                     std::span<std::uint64_t> addresses) noexcept;

}   // namespace drawpoint
