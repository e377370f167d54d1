#pragma once

#include <cstddef>

/// Number of calls of operator new on this thread so far. This test program replaces the global operators to count
/// them.
std::size_t calls_of_operator_new() noexcept;
