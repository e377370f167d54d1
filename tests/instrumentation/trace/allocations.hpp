#pragma once

#include <cstddef>

/// Calls of operator new on this thread so far.
std::size_t allocations() noexcept;

/// Bytes that operator new gave and operator delete did not take back, of all threads.
std::size_t allocated_bytes() noexcept;
