#pragma once

#include <cstddef>

/// Number of calls of operator new on this thread so far.
std::size_t allocations() noexcept;

/// Bytes that operator new allocated and operator delete has not freed, on all threads.
std::size_t allocated_bytes() noexcept;
