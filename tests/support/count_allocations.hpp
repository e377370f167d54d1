#pragma once

#include <cstdint>

namespace drawpoint::test {

// Linking count_allocations.cpp into a program replaces malloc and operator new by counting ones (not under sanitizers, whose
// own replacements they would undo).

/// Whether allocations are counted in this build.
[[nodiscard]] bool counts_allocations() noexcept;
/// From now on this thread's calls of malloc, calloc, realloc, aligned_alloc and operator new count, or no longer do.
void count_this_thread(bool count) noexcept;
/// Of this thread's calls, counted or not, the one after `calls` more fails, once.
void fail_allocation_after(std::uint64_t calls) noexcept;
/// Takes that back if it has not happened.
void fail_no_allocation() noexcept;
/// Calls counted so far, of all threads.
[[nodiscard]] std::uint64_t counted_allocations() noexcept;

/// From now on, calls that come from the shared library which holds `address` are counted apart; of 8 libraries at most. False:
/// there is no such library, or no room.
[[nodiscard]] bool count_library_apart(const void* address) noexcept;
/// Those calls so far, of all counting threads.
[[nodiscard]] std::uint64_t allocations_counted_apart() noexcept;

/// Minor page faults of the process so far.
[[nodiscard]] std::uint64_t minor_faults() noexcept;

}   // namespace drawpoint::test
