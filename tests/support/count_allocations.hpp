#pragma once

#include <cstdint>

namespace drawpoint::test {

// Linking count_allocations.cpp into a program replaces malloc and operator new with versions that count (not under
// sanitizers, whose own replacements would be disabled).

/// Whether allocations are counted in this build.
[[nodiscard]] bool counts_allocations() noexcept;
/// Starts or stops counting this thread's calls of malloc, calloc, realloc, aligned_alloc and operator new.
void count_this_thread(bool count) noexcept;
/// Lets one call of this thread fail, after `calls` more have succeeded, whether calls are counted or not.
void fail_allocation_after(std::uint64_t calls) noexcept;
/// Cancels that. Returns how many calls were left up to the one that fails, with that one; 0: it has failed.
std::uint64_t fail_no_allocation() noexcept;
/// Number of calls counted so far on all threads.
[[nodiscard]] std::uint64_t counted_allocations() noexcept;

/// From now on, counts calls from the shared library that contains `address` separately; works for 8 libraries. Returns
/// false if there is no such library or no room.
[[nodiscard]] bool count_library_apart(const void* address) noexcept;
/// Number of these calls so far on all threads that count.
[[nodiscard]] std::uint64_t allocations_counted_apart() noexcept;

/// Minor page faults of the process so far.
[[nodiscard]] std::uint64_t minor_faults() noexcept;

}   // namespace drawpoint::test
